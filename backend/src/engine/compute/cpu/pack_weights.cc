// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/pack_weights.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <system_error>
#include <vector>

#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/products/round_up.h"
#include "engine/model/weight_rows.h"
#include "error.h"

namespace ct2triton {
namespace {

// Bytes that a thread reads and packs at a time; they fit its cache.
constexpr int64_t kBlockBytes = 256 << 10;

// Runs `take` on several threads, this one among them. After all have ended, throws what one of
// them threw.
void OnThreads(size_t threads, const std::function<void()>& take) {
  std::vector<std::future<void>> others;
  try {
    while (others.size() + 1 < threads) others.push_back(std::async(std::launch::async, take));
  } catch (const std::system_error&) {  // no more threads: the started ones do all the work
  }
  take();
  for (auto& other : others) other.get();
}

std::vector<float> BiasOf(const ModelFile& file, const std::string& scope, int64_t outputs) {
  auto bias = file.Floats(scope + "/bias");
  if (bias.empty() || static_cast<int64_t>(bias.size()) == outputs) return bias;
  throw Error(ErrorCode::kUnsupported, "the decode loop cannot read model.bin: its variable " +
                                           scope + "/bias has " + std::to_string(bias.size()) +
                                           " numbers for " + std::to_string(outputs) + " outputs");
}

}  // namespace

std::shared_ptr<const products::PackedLinear> PackWeights(const ModelFile& file,
                                                          const std::string& scope,
                                                          ElementType type,
                                                          products::SharedPages* pages,
                                                          size_t threads) {
  const bool bytes = type == ElementType::kInt8;
  const WeightRows rows(file, scope, type);
  const auto& kernel =
      products::DefaultKernel(bytes ? products::WeightType::kInt8 : products::WeightType::kFloat32);
  const auto bias = BiasOf(file, scope, rows.outputs());
  auto packed =
      std::make_shared<products::PackedLinear>(kernel, rows.outputs(), rows.inputs(), pages);
  const int64_t row_bytes = rows.inputs() * kernel.weight_bytes;
  const int64_t step = products::RoundUp<int64_t>(std::max<int64_t>(kBlockBytes / row_bytes, 1),
                                                  kernel.panel_outputs);
  std::atomic<int64_t> next{0};
  const auto take = [&] {
    WeightRows::Block block;
    for (int64_t first; (first = next.fetch_add(step)) < rows.outputs();) {
      const int64_t count = std::min(step, rows.outputs() - first);
      rows.Read(first, count, &block);
      packed->Fill(first, count, block.rows.data(), bytes ? block.scales.data() : nullptr,
                   bias.empty() ? nullptr : bias.data() + first);
    }
  };
  const auto blocks = static_cast<size_t>((rows.outputs() + step - 1) / step);
  OnThreads(std::min(std::max<size_t>(threads, 1), blocks), take);
  return packed;
}

}  // namespace ct2triton
