// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/device.h"
#include "rows/row.h"

namespace ct2triton {

// The device as CTranslate2 names it.
ctranslate2::Device LibraryDevice(const Device& device);

// A model as CTranslate2 itself loads it: its weights and vocabularies on one device. Immutable,
// shared by all threads.
class LibraryModel {
 public:
  using Replica = ctranslate2::models::SequenceToSequenceReplica;
  using Tokens = std::vector<std::string>;

  // Throws Error, with the reason, where the files, the compute type or the device do not fit, or
  // the model is no encoder-decoder model of one source vocabulary.
  LibraryModel(const std::string& directory, const Device& device, const std::string& compute_type);
  LibraryModel(const LibraryModel&) = delete;
  LibraryModel& operator=(const LibraryModel&) = delete;

  // A runner for the calling thread, which alone may use and destroy it.
  std::unique_ptr<Replica> NewReplica() const;

  const std::string& directory() const { return directory_; }
  const Device& device() const { return device_; }
  const ctranslate2::models::Model& model() const { return *model_; }
  const ctranslate2::Vocabulary& source() const { return *source_; }
  const ctranslate2::Vocabulary& target() const { return *target_; }
  // Of the memory of the variables with these names.
  size_t Bytes(const std::set<std::string>& names) const;

  static Tokens ToTokens(const Ids& ids, const ctranslate2::Vocabulary& vocabulary);
  // Of a token that stands twice, the first id.
  static Ids ToIds(const Tokens& tokens, const ctranslate2::Vocabulary& vocabulary);

 private:
  const std::string directory_;
  const Device device_;
  const std::shared_ptr<const ctranslate2::models::Model> model_;
  const ctranslate2::Vocabulary* source_ = nullptr;
  const ctranslate2::Vocabulary* target_ = nullptr;
};

}  // namespace ct2triton
