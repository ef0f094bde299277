// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_encoder.h"

#include <string>
#include <typeinfo>

#include "error.h"

namespace ct2triton {
namespace {

constexpr size_t kMostRows = 64;

using ctranslate2::DataType;
using ctranslate2::models::EncoderDecoderReplica;
using ctranslate2::models::SequenceToSequenceReplica;

// Only this kind of replica has the function that is called here. It is asked by the name of its
// type, since the type information must be the library's, and none of ours.
EncoderDecoderReplica* AsEncoder(SequenceToSequenceReplica* replica) {
  const std::string name = typeid(*replica).name();
  if (name != "N11ctranslate26models21EncoderDecoderReplicaE" ||
      dynamic_cast<void*>(replica) != static_cast<void*>(replica)) {
    throw Error(ErrorCode::kUnsupported,
                "the decode loop cannot encode: CTranslate2 runs this model with a " + name);
  }
  return static_cast<EncoderDecoderReplica*>(replica);
}

}  // namespace

DeviceEncoder::DeviceEncoder(const DeviceModel& model, const Tensors& tensors)
    : SourceEncoder(model, kMostRows),
      model_(model),
      tensors_(tensors),
      replica_(model.library().NewReplica()),
      encoder_(AsEncoder(replica_.get())),
      memory_(tensors.Empty()) {}

const Tensor& DeviceEncoder::Run(const SourceIds& ids) {
  Tensor lengths(DataType::INT32, model_.device());
  encoder_->encode({ids}, memory_, lengths);
  if (memory_.dim(0) != static_cast<long>(ids.size()) ||
      memory_.dim(2) != static_cast<long>(model_.memory_width())) {
    throw Error(ErrorCode::kInternal, "CTranslate2's encoder gave an unexpected size");
  }
  return memory_;
}

std::vector<std::shared_ptr<Encoding>> DeviceEncoder::Make(const SourceIds& ids,
                                                           std::vector<Making> makings,
                                                           CachePool* pool) {
  const Tensor& encoded = Run(ids);
  const long longest = encoded.dim(1);
  std::vector<std::shared_ptr<Encoding>> made;
  for (size_t i = 0; i < makings.size(); ++i) {
    const auto tokens = static_cast<long>(makings[i].tokens);
    Tensor memory = tensors_.Pick(encoded, tensors_.Numbers({static_cast<int32_t>(i)}));
    if (tokens < longest) {
      memory = std::move(tensors_.Split(memory, 1, {tokens, longest - tokens}).front());
    }
    CacheBlock block = pool->Reserve(model_.SourceCacheFloats(makings[i].tokens));
    made.push_back(std::make_shared<DeviceEncoding>(std::move(makings[i].place), makings[i].tokens,
                                                    std::move(block), std::move(memory)));
  }
  ctranslate2::synchronize_stream(model_.device());  // other threads may read them from now on
  return made;
}

}  // namespace ct2triton
