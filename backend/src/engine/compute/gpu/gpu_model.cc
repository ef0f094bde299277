// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_model.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/compute/gpu/gpu_compute.h"
#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr int64_t kMostTokens = 1024;  // of a source, and of a sequence
constexpr size_t kStepTokens = 128;    // and outputs; a step of more takes several passes

[[noreturn]] void RefuseType(const std::string& why) {
  throw Error(ErrorCode::kUnsupported, "the GPU's kernels cannot run this model: " + why);
}

// As CTranslate2 resolves compute_type, except that "auto" keeps int8 weights.
ComputeTypes TypesOf(const Weights& weights) {
  const ElementType stored = weights.file().Get("decoder/layer_0/ffn/linear_0/weight").type;
  const bool stored_int8 = stored == ElementType::kInt8;
  static const std::map<std::string, ComputeTypes> known = {
      {"float32", {kFloat32, false}},     {"float", {kFloat32, false}},
      {"float16", {kFloat16, false}},     {"bfloat16", {kBfloat16, false}},
      {"int8", {kFloat16, true}},         {"int8_float16", {kFloat16, true}},
      {"int8_float32", {kFloat32, true}}, {"int8_bfloat16", {kBfloat16, true}}};
  const std::string& name = weights.compute_type();
  const bool emulated = weights.device().kind == Device::Kind::kCpu;
  if (emulated && (name == "auto" || name == "default")) {  // as CTranslate2 computes beside it
    const bool int8 = weights.loop_type() == ElementType::kInt8;
    return {int8 ? kFloat16 : kFloat32, int8};
  }
  if (name == "auto") return {kFloat16, stored_int8};
  if (name == "default") {
    if (stored == ElementType::kFloat32) return {kFloat32, false};
    return {stored == ElementType::kBfloat16 ? kBfloat16 : kFloat16, stored_int8};
  }
  const auto found = known.find(name);
  if (found == known.end()) RefuseType("compute_type is \"" + name + '"');
  return found->second;
}

GpuLimits LimitsOf(const Weights& weights) {
  GpuLimits limits;
  limits.sequences = 512;
  limits.step_tokens = limits.outputs = kStepTokens;
  limits.source_tokens =
      static_cast<size_t>(std::min(kMostTokens, weights.source_positions().value_or(kMostTokens)));
  limits.target_tokens =
      static_cast<size_t>(std::min(kMostTokens, weights.target_positions().value_or(kMostTokens)));
  limits.encoded_tokens = limits.source_tokens;
  return limits;
}

}  // namespace

GpuEngine::GpuEngine(const GpuPlace& place, const Weights& weights, const GpuLimits& limits)
    : decoder(place, weights.file(), TypesOf(weights), weights.files().layer_norm_epsilon, limits) {
}

GpuModel::GpuModel(std::shared_ptr<const Weights> weights, const GpuPlace& place)
    : DeviceModel(std::move(weights)), limits_(LimitsOf(this->weights())) {
  try {
    engine_ = std::make_shared<GpuEngine>(place, this->weights(), limits_);
    for (const VocabularyMap* map : this->weights().AllMaps()) {
      if (!map->fixed()) continue;
      const size_t before = engine_->decoder.weight_bytes();
      const int name = engine_->decoder.AddList({map->numbered().begin(), map->numbered().end()});
      lists_[map] = {name, engine_->decoder.weight_bytes() - before};
    }
  } catch (const Error& error) {  // a lack of memory is not an error of the files
    if (error.code() != ErrorCode::kUnavailable) throw;
    if (DeviceLoss::Of(place.library, place.ordinal).error()) throw;
    throw Error(ErrorCode::kUnsupported, error.what());
  }
  packed_bytes_ = engine_->decoder.weight_bytes();
}

std::unique_ptr<LoopCompute> GpuModel::NewCompute(RowMemory* memory) const {
  return std::make_unique<GpuCompute>(*this, memory);
}

std::optional<std::string> GpuModel::WhyNot(size_t encoded_tokens, size_t limit) const {
  if (encoded_tokens > limits_.source_tokens) {
    return "its source has " + std::to_string(encoded_tokens) +
           " tokens, and loops on a GPU run at most " + std::to_string(limits_.source_tokens);
  }
  if (limit > limits_.target_tokens) {
    return "its answer may have " + std::to_string(limit) +
           " tokens, and loops on a GPU give at most " + std::to_string(limits_.target_tokens);
  }
  return std::nullopt;
}

ElementType GpuModel::weight_type() const {
  const ComputeTypes types = TypesOf(weights());
  if (types.int8_weights) return ElementType::kInt8;
  if (types.activations == kFloat32) return ElementType::kFloat32;
  return types.activations == kFloat16 ? ElementType::kFloat16 : ElementType::kBfloat16;
}

size_t GpuModel::MapBytes(const VocabularyMap& map) const {
  const auto found = lists_.find(&map);
  return found == lists_.end() ? 0 : found->second.bytes;
}

size_t GpuModel::FloatsOf(size_t tokens) const {
  const size_t slots = Slots::PagesOf(tokens) * Slots::kPageSlots;
  return slots * engine_->decoder.slot_bytes() / sizeof(float);
}

std::optional<int> GpuModel::ListOf(const VocabularyMap* map) const {
  if (map == nullptr) return std::nullopt;
  return lists_.at(map).name;
}

std::string GpuModel::Description() const {
  return "by our own kernels on GPU " + engine_->decoder.device();
}

}  // namespace ct2triton::gpu
