// SPDX-License-Identifier: Apache-2.0
//
// An experiment: the int8 products of a decoder step on one thread, against a pair of threads that
// split the panels of each product and meet at a spinning barrier. Prints milliseconds of a step,
// with so many other processes that keep a core busy each.
//
//     pair_of_threads [WIDTH LAYERS FEED_FORWARD VOCABULARY]
#include <immintrin.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "engine/products/kernel_choice.h"
#include "engine/products/packed_linear.h"
#include "steady_clock.h"
#include "step_products.h"

namespace ct2triton {
namespace {

using products::PackedLinear;
using products::QuantizedRows;

// Where two threads wait for each other: spinning for a while, then giving the core away.
class SpinBarrier {
 public:
  SpinBarrier(uint32_t threads, int spins) : threads_(threads), spins_(spins) {}
  void Wait() {
    const uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spin = 0; turn_.load(std::memory_order_acquire) == turn; ++spin) {
      if (spin < spins_) {
        _mm_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  const uint32_t threads_;
  const int spins_;
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> turn_{0};
};

// The products of a step, one after the other, on random weights.
class ProductChain {
 public:
  explicit ProductChain(const ProductShapes& shapes)
      : kernel_(products::DefaultKernel(products::WeightType::kInt8)) {
    std::mt19937 random(1);  // the weights
    for (const auto& [outputs, inputs] : shapes) {
      std::vector<int8_t> weight(static_cast<size_t>(outputs * inputs));
      for (int8_t& each : weight) each = static_cast<int8_t>(random());
      const std::vector<float> scale(static_cast<size_t>(outputs), 127.0F);
      layers_.emplace_back();
      layers_.back().push_back(PackedLinear(
          {products::WeightType::kInt8, weight.data(), scale.data(), nullptr, outputs, inputs},
          kernel_));
      for (const auto& [begin, end] : Halves(outputs)) {
        std::vector<int64_t> half(static_cast<size_t>(end - begin));
        for (size_t i = 0; i < half.size(); ++i) half[i] = begin + static_cast<int64_t>(i);
        layers_.back().push_back(layers_.back().front().Select(half));
      }
    }
  }

  // Milliseconds of a step by so many threads, each with all products.
  double Alone_ms(int64_t rows, int steps, uint32_t threads) const {
    return Time_ms(threads, steps, [&](uint32_t) {
      thread_local std::vector<float> in, out;
      thread_local QuantizedRows quantized;
      for (size_t layer = 0; layer < layers_.size(); ++layer) {
        Whole(layer, rows, &in, &out, &quantized);
      }
    });
  }

  // Milliseconds of a step by a pair of threads.
  double Paired_ms(int64_t rows, int steps, int spins) const {
    SpinBarrier barrier(2, spins);
    // What a product gives, in two halves, and what the next one does.
    std::vector<std::vector<float>> halves(
        4, std::vector<float>(static_cast<size_t>(rows * MostOutputs()), 0.5F));
    return Time_ms(2, steps, [&](uint32_t thread) {
      thread_local std::vector<float> in;
      thread_local QuantizedRows quantized;
      for (size_t layer = 0; layer < layers_.size(); ++layer) {
        Half(layer, rows, thread, &halves, &in, &quantized);
        barrier.Wait();
      }
    });
  }

 private:
  template <typename Step>
  static double Time_ms(uint32_t threads, int steps, const Step& step) {
    SpinBarrier start(threads, 1000);
    const auto run = [&](uint32_t thread) {
      step(thread);  // warms up
      start.Wait();
      const uint64_t begin_ns = SteadyNow_ns();
      for (int i = 0; i < steps; ++i) step(thread);
      return static_cast<double>(SteadyNow_ns() - begin_ns) / 1e6 / steps;
    };
    std::vector<std::thread> others;
    for (uint32_t thread = 1; thread < threads; ++thread) {
      others.emplace_back([&, thread] { run(thread); });
    }
    const double ms = run(0);
    for (auto& other : others) other.join();
    return ms;
  }

  std::vector<std::pair<int64_t, int64_t>> Halves(int64_t outputs) const {
    const int64_t panels = (outputs + kernel_.panel_outputs - 1) / kernel_.panel_outputs;
    const int64_t middle = (panels + 1) / 2 * kernel_.panel_outputs;
    return {{0, middle}, {middle, outputs}};
  }
  int64_t MostOutputs() const {
    int64_t most = 0;
    for (const auto& layer : layers_) most = std::max(most, layer.front().outputs());
    return most;
  }

  void Whole(size_t index, int64_t rows, std::vector<float>* in, std::vector<float>* out,
             QuantizedRows* quantized) const {
    const PackedLinear& layer = layers_[index].front();
    in->resize(static_cast<size_t>(rows * layer.inputs()));
    out->resize(static_cast<size_t>(rows * MostOutputs()), 0.5F);
    std::copy_n(out->begin(), in->size(), in->begin());
    quantized->Assign(kernel_, products::Rounding::kOnce, in->data(), rows, layer.inputs());
    layer.Apply(*quantized, out->data());
  }

  // Reads what both threads wrote for the product before, and writes half of this one. Two sets of
  // halves take turns, so that one barrier for each product is enough.
  void Half(size_t index, int64_t rows, uint32_t thread, std::vector<std::vector<float>>* halves,
            std::vector<float>* in, QuantizedRows* quantized) const {
    const PackedLinear& layer = layers_[index][1 + thread];
    const size_t from = index % 2 * 2;
    in->resize(static_cast<size_t>(rows * layer.inputs()));
    const size_t middle = in->size() / 2;
    std::copy_n((*halves)[from].begin(), middle, in->begin());
    std::copy_n((*halves)[from + 1].begin(), in->size() - middle, in->begin() + middle);
    quantized->Assign(kernel_, products::Rounding::kOnce, in->data(), rows, layer.inputs());
    layer.Apply(*quantized, (*halves)[2 - from + thread].data());
  }

  const products::Kernel& kernel_;
  std::vector<std::vector<PackedLinear>> layers_;  // each whole, then its halves
};

// Processes that keep a core busy each, until the end of this object.
class Neighbours {
 public:
  explicit Neighbours(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t work = 0;; work = work + 1) continue;
      }
      children_.push_back(child);
    }
  }
  ~Neighbours() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  std::vector<pid_t> children_;
};

void Print(const ProductChain& chain, int64_t rows, int neighbours) {
  const Neighbours busy(neighbours);
  const int steps = 30;
  std::printf("| %d | %lld | %.2f | %.2f |", neighbours, static_cast<long long>(rows),
              Median([&] { return chain.Alone_ms(rows, steps, 1); }),
              Median([&] { return chain.Alone_ms(rows, steps, 2); }));
  for (const int spins : {500, 20'000}) {
    std::printf(" %.2f |", Median([&] { return chain.Paired_ms(rows, steps, spins); }));
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace ct2triton

int main(int count, char** arguments) {
  const auto size = [&](int at, int64_t usual) {
    return count > at ? std::atoll(arguments[at]) : usual;
  };
  const ct2triton::ProductChain chain(
      ct2triton::StepShapes(size(1, 512), size(2, 6), size(3, 2048), size(4, 32'000)));
  std::printf(
      "| busy neighbours | rows | one thread, ms | two threads, a step each | a pair, 500 "
      "spins | a pair, 20,000 spins |\n|---:|---:|---:|---:|---:|---:|\n");
  for (const int neighbours : {0, 1, 2}) {
    for (const int64_t rows : {1, 4, 8}) ct2triton::Print(chain, rows, neighbours);
  }
  return 0;
}
