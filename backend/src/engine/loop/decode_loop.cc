// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/decode_loop.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "engine/team.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {

DecodeLoop::DecodeLoop(std::shared_ptr<const DeviceModel> model, std::shared_ptr<LoopCaches> caches)
    : model_(std::move(model)),
      caches_(std::move(caches)),
      compute_(model_->NewCompute(&caches_->memory)),
      encoder_(*model_, compute_.get(), &caches_->encodings),
      rules_(model_->weights()) {}

DecodeLoop::~DecodeLoop() = default;

std::vector<LoopRow> DecodeLoop::Admit(const std::vector<const CheckedRow*>& rows) {
  const uint64_t start_ns = SteadyNow_ns();
  const size_t parts = Team::PartsByHelpers();
  std::vector<std::unique_ptr<RunningRow>> admitted;
  std::vector<const CheckedRow*> to_encode;
  std::vector<LoopRow> names;
  for (const CheckedRow* row : rows) {
    admitted.push_back(std::make_unique<RunningRow>(next_row_++, *row, *model_,
                                                    rules_.Get(row->search), compute_.get()));
    names.push_back(admitted.back()->name());
    if (!admitted.back()->ended()) to_encode.push_back(row);
  }
  SourceEncoder::Counts counts;
  auto encodings = encoder_.Encode(to_encode, &counts);
  if (!rows_.empty()) counters_.joined_rows += admitted.size();
  rows_.reserve(rows_.size() + admitted.size());
  auto encoding = encodings.begin();
  for (auto& row : admitted) {
    if (!row->ended()) row->set_encoding(std::move(*encoding++));
    rows_.push_back(std::move(row));
  }
  counts.AddTo(&counters_);
  counters_.encode_ns += SteadyNow_ns() - start_ns;
  counters_.helped_parts += Team::PartsByHelpers() - parts;
  return names;
}

void DecodeLoop::Step(LoopListener* listener) {
  const uint64_t start_ns = SteadyNow_ns();
  const size_t parts = Team::PartsByHelpers();
  std::vector<Choosing> choosing;
  std::vector<StepSequence> feed = NextFeed(&choosing);
  if (!feed.empty()) {
    std::vector<OutputRules> rules;
    for (const Choosing& row : choosing) row.row->AddRules(&rules);
    Choose(choosing, compute_->Step(feed, rules), &feed);
    ++counters_.steps;
    const GpuWork work = compute_->TakeWork();
    counters_.gpu_passes += work.passes;
    counters_.gpu_passes_ahead += work.passes_ahead;
    counters_.gpu_host_choices += work.host_choices;
  }
  for (const StepSequence& row : feed) {
    counters_.step_rows += row.count > 0 ? 1 : 0;
    counters_.step_tokens += row.count;
    counters_.draft_tokens += row.outputs > 1 ? row.outputs - 1 : 0;
  }
  Accept(listener);
  counters_.step_ns += SteadyNow_ns() - start_ns;
  counters_.helped_parts += Team::PartsByHelpers() - parts;
}

std::vector<bool> DecodeLoop::WhoTakesPart() {
  std::vector<StepCost> costs;
  for (const auto& row : rows_) costs.push_back(row->Cost());
  return budget_.Choose(costs);
}

// The rows in order, without those that end without a step or skip this step. `choosing`: of these,
// the rows without further forced tokens.
std::vector<StepSequence> DecodeLoop::NextFeed(std::vector<Choosing>* choosing) {
  const std::vector<bool> takes_part = WhoTakesPart();
  std::vector<StepSequence> feed;
  feed.reserve(rows_.size());
  StepRoom room = model_->step_room();
  size_t claims = 0;  // of rows on the room for forced tokens, which they share
  for (size_t i = 0; i < rows_.size(); ++i) {
    const bool feeds = takes_part[i] && !rows_[i]->ended();
    claims += feeds && rows_[i]->FeedsSeveral() ? 1 : 0;
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto& row = rows_[i];
    row->Skip();
    if (row->ended() || !takes_part[i]) continue;
    const size_t fed = feed.size();
    const bool claims_room = row->FeedsSeveral();
    const size_t share = claims_room ? (room.forced + claims - 1) / claims : 0;
    claims -= claims_room ? 1 : 0;
    const size_t count = row->AddTo(&feed, &room, share);
    if (count > 0) choosing->push_back({row.get(), fed, count});
  }
  return feed;
}

// `found`: of the outputs of these rows, in order. A row whose results come later skips this step.
void DecodeLoop::Choose(const std::vector<Choosing>& rows, const std::vector<Found>& found,
                        std::vector<StepSequence>* feed) {
  const Found* next = found.data();
  for (const Choosing& row : rows) {
    if (next->later) {
      row.row->Skip();
      (*feed)[row.fed].count = 0;
      next += row.count;
      continue;
    }
    row.row->Choose(next);
    for (size_t i = 0; i < row.count; ++i) counters_.written_rows += next++->written ? 1 : 0;
  }
}

// Allocates no memory, so it cannot fail.
void DecodeLoop::Accept(LoopListener* listener) noexcept {
  for (const auto& row : rows_) counters_.draft_tokens_kept += row->Accept(listener);
  const auto ended =
      std::remove_if(rows_.begin(), rows_.end(), [](const auto& row) { return row->ended(); });
  rows_.erase(ended, rows_.end());
  if (rows_.empty()) compute_->Rest();
}

void DecodeLoop::Remove(LoopRow row) noexcept {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [row](const auto& running) { return running->name() == row; });
  if (found != rows_.end()) rows_.erase(found);
  if (rows_.empty()) compute_->Rest();
}

}  // namespace ct2triton
