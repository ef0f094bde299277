// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/source_encoder.h"

#include <algorithm>
#include <map>
#include <new>
#include <string>
#include <typeinfo>

#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::DataType;
using ctranslate2::StorageView;
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

SourceEncoder::SourceEncoder(const DecoderModel& model)
    : model_(model), replica_(model.weights().NewReplica()), encoder_(AsEncoder(replica_.get())) {}

std::vector<std::shared_ptr<const Encoding>> SourceEncoder::Encode(
    const std::vector<const CheckedRow*>& rows, CachePool* pool, Counts* counts) {
  // More rows together gain nothing, and lose from 16 on, when they leave the processor's caches.
  constexpr size_t kMostRows = 8;
  std::map<size_t, std::vector<Group>> by_length;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& groups = by_length[model_.EncodedTokens(*rows[i])];
    if (groups.empty() || groups.back().size() == kMostRows) groups.emplace_back();
    groups.back().push_back(i);
  }
  std::vector<std::shared_ptr<const Encoding>> encodings(rows.size());
  for (const auto& [length, groups] : by_length) {
    for (const Group& group : groups) {
      EncodeGroup(group, rows, pool, &encodings);
      ++counts->calls;
      counts->tokens += group.size() * length;
    }
  }
  return encodings;
}

void SourceEncoder::EncodeGroup(const Group& group, const std::vector<const CheckedRow*>& rows,
                                CachePool* pool,
                                std::vector<std::shared_ptr<const Encoding>>* encodings) {
  const size_t tokens = model_.EncodedTokens(*rows[group.front()]);
  const size_t layer_floats = tokens * 2 * model_.inner_width();
  std::vector<std::vector<size_t>> ids;
  std::vector<std::shared_ptr<Encoding>> shares;
  for (const size_t i : group) {
    ids.push_back(SourceIds(*rows[i]));
    shares.push_back(std::make_shared<Encoding>(pool->Take(layer_floats * model_.layers().size()),
                                                tokens, layer_floats));
  }
  StorageView memory(DataType::FLOAT32, ctranslate2::Device::CPU);
  StorageView lengths(DataType::INT32, ctranslate2::Device::CPU);
  encoder_->encode({ids}, memory, lengths);
  const bool expected =
      memory.dim(0) == static_cast<long>(group.size()) &&
      memory.dim(1) == static_cast<long>(tokens) &&
      memory.dim(2) == static_cast<long>(model_.layers()[0].source.keys->inputs());
  if (!expected) throw Error(ErrorCode::kInternal, "CTranslate2's encoder gave an unexpected size");
  const StorageView& encoded = memory;
  Project(encoded.data<float>(), shares);
  for (size_t k = 0; k < group.size(); ++k) (*encodings)[group[k]] = shares[k];
}

void SourceEncoder::Project(const float* memory,
                            const std::vector<std::shared_ptr<Encoding>>& encodings) {
  const size_t tokens = encodings.front()->tokens();
  const size_t floats = tokens * 2 * model_.inner_width();
  for (size_t layer = 0; layer < model_.layers().size(); ++layer) {
    const Linear& project = *model_.layers()[layer].source.keys;
    if (encodings.size() == 1) {
      project.Apply(memory, tokens, encodings.front()->layer(layer), nullptr);
      continue;
    }
    const float* keys = keys_.Room(encodings.size() * floats);
    project.Apply(memory, encodings.size() * tokens, keys_.data(), nullptr);
    for (const auto& encoding : encodings) {
      std::copy(keys, keys + floats, encoding->layer(layer));
      keys += floats;
    }
  }
}

// As CTranslate2 makes them from tokens: of a token that stands twice, the first id.
std::vector<size_t> SourceEncoder::SourceIds(const CheckedRow& row) const {
  const auto& files = model_.weights().files();
  const auto& vocabulary = model_.weights().source();
  std::vector<size_t> ids;
  if (files.add_source_bos) ids.push_back(vocabulary.to_id(files.bos_token));
  for (const int64_t id : row.source) {
    ids.push_back(vocabulary.to_id(vocabulary.to_token(static_cast<size_t>(id))));
  }
  if (files.add_source_eos) ids.push_back(vocabulary.to_id(files.eos_token));
  return ids;
}

}  // namespace ct2triton
