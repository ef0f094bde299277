// SPDX-License-Identifier: Apache-2.0
//
// The engine's interface to the rest of the backend: one model on one device, with the options of
// one Triton model. Checks rows, and hides CTranslate2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "engine/device.h"
#include "rows/checked_row.h"
#include "rows/id_view.h"
#include "rows/row_names.h"

namespace ct2triton {

class CallModel;
class LoopModel;
class SearchOptions;
class VocabularyMap;
class Weights;

class LoadedModel {
 public:
  // Loads the model in `directory`, or shares weights that are loaded already. `threads`: for
  // CTranslate2 while it loads. max_search_tokens of `engine` is resolved, not 0. If the loop
  // cannot run the model, calls do; with `decoding` "loop" they do so only without kernels for the
  // GPU, and otherwise the load fails. Throws Error: kNotFound
  // (files), kInvalidArgument (options this model cannot serve), kUnsupported (library or device).
  LoadedModel(const std::string& directory, const Device& device, const DecodingOptions& defaults,
              const EngineOptions& engine, size_t threads);

  // Checks the rows of one request against the model and the request's options. `options` null: the
  // model's defaults. Throws Error(kInvalidArgument), with the row's name.
  std::vector<CheckedRow> Check(const std::vector<RowInput>& rows, const DecodingOptions* options,
                                const RowNames& names = RowNames()) const;

  const std::shared_ptr<const Weights>& weights() const { return weights_; }
  const Device& device() const;
  // CTranslate2's own model, for calls; null: calls are refused.
  const std::shared_ptr<CallModel>& calls() const { return calls_; }
  // The state that the model's loops share; null: all rows run in calls.
  const std::shared_ptr<const LoopModel>& loop() const { return loop_; }
  // Why a requested loop is missing; empty: there is one, or none was requested.
  const std::string& loop_refusal() const { return loop_refusal_; }
  const DecodingOptions& defaults() const { return defaults_; }
  // The option, else <pad> or <blank> of the vocabulary, else the end token.
  int64_t pad_id() const;
  std::optional<int64_t> padding_to_strip() const;  // like pad_id(), but never the end token
  int64_t longest_source() const;                   // in IDs
  bool has_vocabulary_map() const;
  std::vector<std::string_view> SourceTokens(const Ids& ids) const;
  std::vector<std::string_view> TargetTokens(const Ids& ids) const;
  int64_t unknown_source_id() const;   // unknown token of the source vocabulary
  int64_t unknown_id() const;          // of the target vocabulary
  size_t weight_bytes() const;         // including packed copies for loops and CTranslate2's model
  size_t call_bytes() const;           // of these, those of CTranslate2's model
  uint64_t call_loads() const;         // how often CTranslate2's model was loaded
  int64_t vocabulary_size() const;     // the larger of source and target
  std::string Description() const;     // for the log: library, device, effective compute type
  std::string MapDescription() const;  // ", vocabulary map of ..."; empty without one

 private:
  using Searches = std::map<const VocabularyMap*, std::shared_ptr<const SearchOptions>>;

  void TryLoop();
  void ChooseAlignment();
  std::string WhyCalls(const SearchOptions& search) const;
  void RequireLoopIfNeeded(const SearchOptions& search) const;
  std::string WeightWidth() const;
  void PlanRun(CheckedRow* row, const std::string& name) const;

  const EngineOptions engine_;
  const std::shared_ptr<const Weights> weights_;
  const DecodingOptions defaults_;
  std::shared_ptr<CallModel> calls_;
  const Searches default_searches_;  // by map; null: whole vocabulary
  std::shared_ptr<const LoopModel> loop_;
  std::string loop_refusal_;
  std::shared_ptr<const AlignmentHeads> alignment_;  // null: the model's own
};

}  // namespace ct2triton
