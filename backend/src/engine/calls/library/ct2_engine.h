// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/calls/call_engine.h"
#include "engine/calls/library/ct2_model.h"
#include "engine/search/search_options.h"

namespace ct2triton {

class Ct2Engine final : public CallEngine {
 public:
  explicit Ct2Engine(std::shared_ptr<const Ct2Model> model);

  std::vector<RowResult> Run(const std::vector<const CheckedRow*>& rows, CallWatcher* watcher,
                             RunTimes* times) override;

 private:
  using Rows = std::vector<const CheckedRow*>;
  using Replica = Ct2Model::Replica;
  using Results = std::vector<ctranslate2::TranslationResult>;

  Replica& ReplicaFor(const SearchOptions& search);
  Results Call(const Rows& rows, const ctranslate2::TranslationOptions& options);
  Results CallBeyondLimits(const Rows& rows, int64_t largest_limit,
                           std::vector<bool>* reached_limit);
  RowResult ToRowResult(const CheckedRow& row, ctranslate2::TranslationResult result) const;

  const std::shared_ptr<const Ct2Model> model_;
  const std::unique_ptr<Replica> replica_;
  // For the vocabulary map, made at its first use. CTranslate2 4.8.5 mixes up tokens when one
  // replica is used with several sets of candidates: it keeps the numbering of the first one
  // (src/layers/decoder.cc, Decoder::update_output_layer).
  std::unique_ptr<Replica> mapped_replica_;
};

}  // namespace ct2triton
