// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_encoder.h"

namespace ct2triton {
namespace {

constexpr size_t kMostRows = 64;

}  // namespace

DeviceEncoder::DeviceEncoder(const DecoderModel& model, const Tensors& tensors)
    : SourceEncoder(model, kMostRows), tensors_(tensors) {}

size_t DeviceEncoder::KindOf(const CheckedRow& /*row*/) const { return 0; }

std::vector<std::shared_ptr<Encoding>> DeviceEncoder::Make(const SourceIds& ids,
                                                           std::vector<Making> makings,
                                                           CachePool* pool) {
  const Tensor& encoded = EncodeByLibrary(ids);
  const long longest = encoded.dim(1);
  std::vector<std::shared_ptr<Encoding>> made;
  for (size_t i = 0; i < makings.size(); ++i) {
    const auto tokens = static_cast<long>(makings[i].tokens);
    Tensor memory = tensors_.Pick(encoded, tensors_.Numbers({static_cast<int32_t>(i)}));
    if (tokens < longest) {
      memory = std::move(tensors_.Split(memory, 1, {tokens, longest - tokens}).front());
    }
    CacheBlock block = pool->Reserve(model().SourceCacheFloats(makings[i].tokens));
    made.push_back(std::make_shared<DeviceEncoding>(std::move(makings[i].place), makings[i].tokens,
                                                    std::move(block), std::move(memory)));
  }
  ctranslate2::synchronize_stream(model().device());  // other threads may read them from now on
  return made;
}

}  // namespace ct2triton
