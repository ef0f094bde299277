// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/host_model.h"

#include <utility>

#include "engine/compute/cpu/host_compute.h"
#include "error.h"

namespace ct2triton {

HostModel::HostModel(std::shared_ptr<const Weights> weights, LayerPacker* packer,
                     const Wrapper& wrap, const ListMemory& lists)
    : DeviceModel(std::move(weights)) {
  const LinearMaker make = [packer, &wrap](const LinearSpec& spec) {
    auto linear = packer->Make(spec);
    return wrap ? wrap(std::move(linear), spec) : std::move(linear);
  };
  const LayerStack::Parts parts = {this->weights().file(), make,
                                   this->weights().files().layer_norm_epsilon, row_kernel()};
  const StackShape encoder = ReadEncoder(parts.file);
  projection_ = make({"decoder/projection"});
  encoder_ = std::make_unique<const LayerStack>(encoder, parts, packer->Table(encoder.embeddings));
  decoder_ = std::make_unique<const LayerStack>(shape(), parts, packer->Table(shape().embeddings));
  if (decoder_->layers()[0].source->keys->inputs() != encoder.width) {
    throw Error(ErrorCode::kUnsupported,
                "the decode loop cannot run this model: its decoder does not take its encoder's "
                "output");
  }
  model_bytes_ = packer->bytes() + encoder_->position_bytes() + decoder_->position_bytes();
  auto projections = std::make_unique<ListProjections>(*projection_, lists);
  for (const VocabularyMap* map : this->weights().AllMaps()) {
    if (map->fixed()) projections->Add(*map);
  }
  lists_ = std::move(projections);
}

std::unique_ptr<LoopCompute> HostModel::NewCompute(RowMemory* memory) const {
  return std::make_unique<HostCompute>(*this, memory);
}

}  // namespace ct2triton
