// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/calls/call_library.h"
#include "rows/row.h"

namespace ct2triton {

// CTranslate2's name of the device.
ctranslate2::Device LibraryDevice(const Device& device);

class Ct2Model final : public LibraryModel {
 public:
  using Replica = ctranslate2::models::SequenceToSequenceReplica;
  using Tokens = std::vector<std::string>;

  Ct2Model(const std::string& directory, const Device& device, const std::string& compute_type);

  std::unique_ptr<CallEngine> NewEngine() const override;
  std::vector<GreedyTruth> FollowGreedily(
      const std::vector<const CheckedRow*>& rows) const override;
  void Try(const VocabularyMap* map, int64_t end_id) const override;
  size_t Bytes(const std::set<std::string>& names) const override;
  size_t ElementSize(const std::string& name) const override;

  // A replica that only the calling thread may use and destroy.
  std::unique_ptr<Replica> NewReplica() const;

  const std::string& directory() const { return directory_; }
  const Device& device() const { return device_; }
  const ctranslate2::Vocabulary& source() const { return *source_; }
  const ctranslate2::Vocabulary& target() const { return *target_; }

  static Tokens ToTokens(const Ids& ids, const ctranslate2::Vocabulary& vocabulary);
  // The first ID of a token that occurs twice.
  static Ids ToIds(const Tokens& tokens, const ctranslate2::Vocabulary& vocabulary);

 private:
  const std::string directory_;
  const Device device_;
  const std::shared_ptr<const ctranslate2::models::Model> model_;
  const ctranslate2::Vocabulary* source_ = nullptr;
  const ctranslate2::Vocabulary* target_ = nullptr;
};

}  // namespace ct2triton
