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

// A row of a loop: its search, its cache, and what it brings into the next step. A step is two
// things: Choose, which may fail and changes nothing that shows, and Accept, which cannot fail.
class RunningRow {
 public:
  // Takes the row's cache from `compute`. The model and `row` must be there as long.
  RunningRow(LoopRow name, const CheckedRow& row, const DeviceModel& model,
             const std::shared_ptr<const SearchRules>& rules, LoopCompute* compute);

  LoopRow name() const { return name_; }
  const CheckedRow& row() const { return row_; }
  // Nothing more is to be computed: its forced tokens reach its limit, or it ended at this step.
  bool ended() const { return result_.has_value(); }
  void set_encoding(std::shared_ptr<const Encoding> encoding) { encoding_ = std::move(encoding); }

  // Of its beams, each with the tokens that it attends to and the candidates that it draws from.
  // Measured: a token of the past costs about 1/100 of a row. A draft is left out: all drafts of a
  // step are bounded.
  StepCost Cost() const;
  // It takes no part in this step.
  void Skip() noexcept { feeding_ = 0; }
  // Adds the tokens that it brings into the next step. Returns how many of what the step gives it
  // will choose from: one of a greedy row and of each token of its draft, one of each beam, none
  // while forced tokens follow.
  size_t AddTo(std::vector<StepSequence>* feed, StepRoom* room);
  // Adds how each of these is chosen from.
  void AddRules(std::vector<OutputRules>* rules) const;
  // found: what the step gave, one for each that AddTo counted.
  void Choose(const Found* found);
  // What the step did becomes true, and is reported; nothing of a row that took no part. Returns
  // how many of its tokens were of a draft.
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
  std::unique_ptr<RowAlignment> alignment_;  // null: the row asks for none
  Search search_;
  int64_t kept_ = 0;           // tokens of the draft, so far
  Ids answer_;                 // of a greedy row, so far; has room for all that may come
  size_t reported_ = 0;        // ids of the answer
  std::vector<int32_t> feed_;  // ids of tokens that are not in the cache yet: the forced ones, then
                               // the last one of each beam
  std::vector<int32_t> tokens_;  // of this step: of these, then of the draft
  size_t prompt_ = 0;            // see StepSequence
  size_t fed_ = 0;               // of the forced ones, so many are in the cache by now
  size_t feeding_ = 0;           // so many more will be after this step; 0: it takes no part
  bool has_chosen_ = false;
  size_t position_ = 0;  // tokens in the cache
  size_t capacity_ = 0;  // tokens that fit
  std::unique_ptr<RowCache> cache_;
  std::shared_ptr<const Encoding> encoding_;
  std::optional<RowResult> next_result_;  // it ends with this step
  std::optional<RowResult> result_;
};

}  // namespace ct2triton
