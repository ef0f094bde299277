// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/ct2_model.h"

#include <new>
#include <stdexcept>

#include "engine/calls/library/ct2_engine.h"
#include "engine/calls/library/trial_translation.h"
#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::StorageView;
using ctranslate2::models::SequenceToSequenceModel;

ctranslate2::ComputeType ComputeTypeByName(const std::string& name) {
  try {
    return ctranslate2::str_to_compute_type(name);
  } catch (const std::exception& error) {
    ThrowInvalid("parameter compute_type: " + std::string(error.what()));
  }
}

std::shared_ptr<const ctranslate2::models::Model> Load(const std::string& directory,
                                                       const Device& device,
                                                       const std::string& compute_type) {
  const auto type = ComputeTypeByName(compute_type);
  try {
    return ctranslate2::models::Model::load(directory, LibraryDevice(device), device.index, type,
                                            /*use_flash_attention=*/false,
                                            /*tensor_parallel=*/false);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::invalid_argument& error) {
    ThrowInvalid("CTranslate2 cannot load " + directory + " with compute_type \"" + compute_type +
                 "\" on " + device.Name() + ": " + error.what());
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnavailable, "CTranslate2 cannot load " + directory + " on " +
                                             device.Name() + ": " + error.what());
  }
}

// The library does not export the rank of a tensor, but `dim` throws beyond it.
size_t Elements(const StorageView& value) {
  size_t elements = 1;
  try {
    for (long i = 0;; ++i) elements *= static_cast<size_t>(value.dim(i));
  } catch (const std::invalid_argument&) {
    return elements;
  }
}

std::vector<float> Floats(const StorageView& numbers, size_t count) {
  const auto found = numbers.to(ctranslate2::DataType::FLOAT32).to(ctranslate2::Device::CPU);
  const auto* first = found.data<float>();
  return {first, first + count};
}

}  // namespace

ctranslate2::Device LibraryDevice(const Device& device) {
  return device.kind == Device::Kind::kCpu ? ctranslate2::Device::CPU : ctranslate2::Device::CUDA;
}

Ct2Model::Ct2Model(const std::string& directory, const Device& device,
                   const std::string& compute_type)
    : directory_(directory), device_(device), model_(Load(directory, device, compute_type)) {
  NewReplica();  // refuses every other kind of model, which makes the cast below right
  const auto* model = static_cast<const SequenceToSequenceModel*>(model_.get());
  if (model->num_source_vocabularies() != 1) {
    throw Error(ErrorCode::kUnsupported,
                directory + " has " + std::to_string(model->num_source_vocabularies()) +
                    " source vocabularies (factors); only one is supported");
  }
  source_ = &model->get_source_vocabulary();
  target_ = &model->get_target_vocabulary();
}

std::unique_ptr<CallEngine> Ct2Model::NewEngine() const {
  return std::make_unique<Ct2Engine>(std::static_pointer_cast<const Ct2Model>(shared_from_this()));
}

void Ct2Model::Try(const VocabularyMap* map, int64_t end_id) const {
  TryTranslation(*this, map, end_id);
}

std::vector<GreedyTruth> Ct2Model::FollowGreedily(
    const std::vector<const CheckedRow*>& rows) const {
  std::vector<Tokens> sources, prefixes;
  for (const CheckedRow* row : rows) {
    sources.push_back(ToTokens(row->source, source()));
    prefixes.push_back(ToTokens(row->prefix, target()));
  }
  std::vector<GreedyTruth> truths(rows.size());
  ctranslate2::TranslationOptions options;
  options.beam_size = 1;
  options.return_logits_vocab = true;
  options.end_token = std::vector<size_t>();  // so that all rows run to the limit
  options.min_decoding_length = 0;
  options.max_decoding_length = static_cast<size_t>(rows.front()->limit_tokens);
  options.callback = [&](const ctranslate2::GenerationStepResult& step) {
    if (step.step < rows.at(step.batch_id)->forced_ids) return false;
    truths[step.batch_id].chosen.push_back(static_cast<int32_t>(step.token_id));
    return false;
  };
  const auto results = NewReplica()->translate(sources, prefixes, options);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const StorageView& logits : results.at(i).logits.at(0)) {
      truths[i].logits.push_back(Floats(logits, target().size()));
    }
  }
  return truths;
}

std::unique_ptr<Ct2Model::Replica> Ct2Model::NewReplica() const {
  try {
    return model_->as_sequence_to_sequence();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnsupported,
                directory_ + " is not an encoder-decoder model: " + error.what());
  }
}

// Two names may refer to one variable.
size_t Ct2Model::Bytes(const std::set<std::string>& names) const {
  std::set<const StorageView*> counted;
  size_t bytes = 0;
  for (const std::string& name : names) {
    const auto* value = model_->get_variable_if_exists(name);
    if (value == nullptr || !counted.insert(value).second) continue;
    bytes += Elements(*value) * value->item_size();
  }
  return bytes;
}

size_t Ct2Model::ElementSize(const std::string& name) const {
  const auto* value = model_->get_variable_if_exists(name);
  return value == nullptr ? 0 : value->item_size();
}

Ct2Model::Tokens Ct2Model::ToTokens(const Ids& ids, const ctranslate2::Vocabulary& vocabulary) {
  Tokens tokens;
  tokens.reserve(ids.size());
  for (const int64_t id : ids) tokens.push_back(vocabulary.to_token(static_cast<size_t>(id)));
  return tokens;
}

Ids Ct2Model::ToIds(const Tokens& tokens, const ctranslate2::Vocabulary& vocabulary) {
  Ids ids;
  ids.reserve(tokens.size());
  for (const auto& token : tokens) ids.push_back(static_cast<int64_t>(vocabulary.to_id(token)));
  return ids;
}

}  // namespace ct2triton
