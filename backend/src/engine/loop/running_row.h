// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "engine/compute/device_model.h"
#include "engine/compute/loop_compute.h"
#include "engine/compute/row_alignment.h"
#include "engine/compute/step_sequence.h"
#include "engine/loop/loop_engine.h"
#include "engine/loop/shared_encodings.h"
#include "engine/loop/step_budget.h"
#include "engine/search/beam_search.h"
#include "engine/search/drafted_search.h"
#include "engine/search/search_rules.h"
#include "engine/search/wide_search.h"
#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

// A row of a loop: its search, its cache, and its tokens for the next step. A step has two parts:
// Choose, which may fail and changes no visible state, and Accept, which cannot fail.
class RunningRow {
 public:
  // Takes the row's cache from `compute`. The model and `row` must outlive it.
  RunningRow(LoopRow name, const CheckedRow& row, const DeviceModel& model,
             const std::shared_ptr<const SearchRules>& rules, LoopCompute* compute);

  LoopRow name() const { return name_; }
  // Whether nothing more must be computed: its forced tokens reach its limit, or it ended at this
  // step.
  bool ended() const { return result_.has_value(); }
  void set_encoding(std::shared_ptr<const Encoding> encoding) { encoding_ = std::move(encoding); }

  // Cost of its beams, each with the tokens that it attends to and the candidates that it draws
  // from. A past token costs about 1/100 of a row (measured). Drafts do not count: their tokens per
  // step are bounded.
  StepCost Cost();
  // Leaves it out of this step.
  void Skip() noexcept { feeding_ = 0; }
  // Whether it has several forced tokens for the next step.
  bool FeedsSeveral() const;
  // Adds its tokens for the next step. Returns the number of outputs it will choose from: one for a
  // greedy row and for each token of its draft, one per beam, none while forced tokens follow.
  // `most_forced`: of the room for them.
  size_t AddTo(std::vector<StepSequence>* feed, StepRoom* room, size_t most_forced);
  // Adds the rules of each of these choices.
  void AddRules(std::vector<OutputRules>* rules) const;
  // found: results of the step, one for each output that AddTo counted.
  void Choose(const Found* found);
  // Applies and reports the results of the step; nothing for a row that was left out. Returns the
  // number of accepted draft tokens.
  size_t Accept(LoopListener* listener) noexcept;

 private:
  using Search = std::variant<DraftedSearch, std::unique_ptr<WideSearch>>;

  DraftedSearch* greedy() { return std::get_if<DraftedSearch>(&search_); }
  WideSearch* beams() const;
  void MakeSearch(const Outputs& forced, size_t limit, BeamBias bias);
  void EndForced(const Outputs& forced);
  size_t AddDraft(StepRoom* room);
  void ChooseGreedily(const Found* found);
  void MakeAlignment();
  Hypothesis Finished(Ids ids, const Ids& positions) const;
  int64_t Shown(int64_t id, int64_t position) const;
  RowResult ResultOf(const std::vector<WideSearch::Hypothesis>& hypotheses, size_t steps) const;
  int64_t AnswerId(int32_t output) const;
  size_t AcceptChoice() noexcept;
  size_t AcceptGreedy() noexcept;
  void ReportGrowth(LoopListener* listener) noexcept;

  const LoopRow name_;
  const CheckedRow& row_;
  const DeviceModel& model_;
  const std::shared_ptr<const SearchRules> rules_;
  const double draw_cost_;
  double turn_ = 0;                          // see StepCost
  std::unique_ptr<RowAlignment> alignment_;  // null: not requested
  Search search_;
  int64_t kept_ = 0;           // accepted draft tokens
  Ids answer_;                 // of a greedy row, so far; has its final capacity
  size_t reported_ = 0;        // IDs of the answer
  std::vector<int32_t> feed_;  // ids of tokens that are not in the cache yet: the forced ones, then
                               // the last one of each beam
  std::vector<int32_t> tokens_;  // of this step: of feed_, then of the draft
  size_t prompt_ = 0;            // see StepSequence
  size_t fed_ = 0;               // tokens of feed_ in the cache
  size_t feeding_ = 0;           // tokens of feed_ that this step adds; 0: left out
  bool has_chosen_ = false;
  size_t position_ = 0;  // tokens in the cache
  size_t capacity_ = 0;  // tokens that fit
  std::unique_ptr<RowCache> cache_;
  std::shared_ptr<const Encoding> encoding_;
  std::optional<RowResult> next_result_;  // set if it ends with this step
  std::optional<RowResult> result_;
};

}  // namespace ct2triton
