// SPDX-License-Identifier: Apache-2.0
//
// An experiment: the products of a decoder step by oneDNN's matmul on one thread, with weights in
// the layout that oneDNN asks for, reordered once. Stands beside float_products, and is no part of
// the build: it needs oneDNN, of which CTranslate2's library has a copy of its own inside.
//
//     python -m venv onednn && onednn/bin/pip install onednn-cpu-gomp onednn-devel-cpu-gomp
//     c++ -O3 -std=c++17 tests/native/onednn_products.cc -o onednn_products -Ionednn/include \
//         -Lonednn/lib -ldnnl -Wl,-rpath,$PWD/onednn/lib
//     OMP_NUM_THREADS=1 ./onednn_products [WIDTH LAYERS FEED_FORWARD VOCABULARY]
//
// Bytes are multiplied as they are: what makes them of floats, and the scale of each row, are left
// out, as is what rounds floats to bfloat16. The backend's own kernels do that in their time.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>
#include <unordered_map>

#include "step_products.h"

namespace ct2triton {
namespace {

using dnnl::memory;
using Type = memory::data_type;

struct Way {
  const char* name;
  Type in;
  Type weights;
};
constexpr Way kWays[] = {{"float32", Type::f32, Type::f32},
                         {"bfloat16", Type::bf16, Type::bf16},
                         {"int8", Type::u8, Type::s8}};

// All products of a step for so many rows.
class Chain {
 public:
  Chain(const ProductShapes& shapes, int64_t rows, const Way& way) : engine_(kCpu, 0) {
    for (const auto& [outputs, inputs] : shapes) Append(outputs, inputs, rows, way);
  }
  void Run() {
    for (auto& layer : layers_) layer.product.execute(stream_, layer.arguments);
    stream_.wait();
  }

 private:
  static constexpr auto kCpu = dnnl::engine::kind::cpu;

  struct Layer {
    dnnl::matmul product;
    std::unordered_map<int, memory> arguments;
  };

  void Append(int64_t outputs, int64_t inputs, int64_t rows, const Way& way) {
    const auto any = memory::format_tag::any;
    const auto plain = memory::format_tag::ab;
    dnnl::primitive_attr scaled;
    if (way.weights == Type::s8) scaled.set_scales_mask(DNNL_ARG_WEIGHTS, 1 << 1);
    const dnnl::matmul::primitive_desc about(engine_, {{rows, inputs}, way.in, plain},
                                             {{inputs, outputs}, way.weights, any},
                                             {{rows, outputs}, Type::f32, plain}, scaled);
    memory weights(about.weights_desc(), engine_);
    dnnl::reorder(Random({inputs, outputs}), weights).execute(stream_, RandomOf(weights));
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(about.src_desc(), engine_)},
                                                 {DNNL_ARG_WEIGHTS, weights},
                                                 {DNNL_ARG_DST, memory(about.dst_desc(), engine_)}};
    std::memset(arguments.at(DNNL_ARG_SRC).get_data_handle(), 0x3f, about.src_desc().get_size());
    if (way.weights == Type::s8) {
      memory scales({{outputs}, Type::f32, memory::format_tag::a}, engine_);
      std::fill_n(static_cast<float*>(scales.get_data_handle()), outputs, 1.0F / 127);
      arguments.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, scales);
    }
    layers_.push_back({dnnl::matmul(about), std::move(arguments)});
  }

  // Weights as a model has them: an output's inputs side by side.
  memory Random(const memory::dims& size) {
    plain_ = memory({size, Type::f32, memory::format_tag::ba}, engine_);
    auto* values = static_cast<float*>(plain_.get_data_handle());
    std::uniform_real_distribution<float> uniform(-100, 100);
    for (int64_t i = 0; i < size[0] * size[1]; ++i) values[i] = uniform(random_);
    return plain_;
  }
  std::unordered_map<int, memory> RandomOf(memory& weights) {
    return {{DNNL_ARG_FROM, plain_}, {DNNL_ARG_TO, weights}};
  }

  dnnl::engine engine_;
  dnnl::stream stream_{engine_};
  std::minstd_rand random_{1};
  memory plain_;
  std::vector<Layer> layers_;
};

}  // namespace
}  // namespace ct2triton

int main(int count, char** arguments) {
  using namespace ct2triton;
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (threads == nullptr || std::string(threads) != "1") {
    std::fprintf(stderr, "set OMP_NUM_THREADS=1: one thread is measured\n");
    return 1;
  }
  const auto shapes = StepShapes(count, arguments);
  const auto* version = dnnl_version();
  std::printf("oneDNN %d.%d.%d: ms of a step, 1e9 multiply-adds/s\n\n", version->major,
              version->minor, version->patch);
  std::printf("| rows |");
  for (const Way& way : kWays) std::printf(" %s |", way.name);
  std::printf("\n|---:|---:|---:|---:|\n");
  for (const int64_t rows : {1, 4, 8, 24, 48, 96}) {
    std::printf("| %lld |", static_cast<long long>(rows));
    for (const Way& way : kWays) {
      Chain chain(shapes, rows, way);
      const double ms = Median([&] { return Time_ms(rows < 24 ? 8 : 3, [&] { chain.Run(); }); });
      std::printf(" %.2f, %.0f |", ms, static_cast<double>(rows * Weights(shapes)) / ms / 1e6);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  return 0;
}
