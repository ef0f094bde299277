// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/running_row.h"

#include <algorithm>
#include <random>
#include <utility>

#include "engine/compute/random_stream.h"
#include "engine/compute/sampler.h"
#include "engine/loop/loop_support.h"
#include "engine/search/alternatives.h"
#include "engine/search/finish.h"
#include "engine/search/several_draws.h"

namespace ct2triton {
namespace {

Outputs Forced(const Ids& first_ids, const SearchRules& rules, size_t limit) {
  Outputs forced;
  for (size_t i = 1; i < first_ids.size() && i <= limit; ++i) {
    forced.push_back(rules.Output(first_ids[i]));
  }
  return forced;
}

// Extra cost of a step of the row because it draws: its candidates are sorted.
double DrawCost(const CheckedRow& row, const Weights& weights) {
  constexpr double kCandidatesPerRow = 2000;
  if (!row.search->Draws()) return 1;
  const auto wanted = row.search->options().sampling_topk;
  const auto candidates = wanted > 0 ? static_cast<size_t>(wanted) : weights.target().size();
  return 1 + static_cast<double>(candidates) / kCandidatesPerRow;
}

Outputs DraftOf(const CheckedRow& row, const SearchRules& rules, const Weights& weights) {
  Outputs outputs;
  for (const int64_t id : row.draft) outputs.push_back(rules.Output(weights.target().by_name(id)));
  return outputs;
}

uint64_t KeyOf(const CheckedRow& row) {
  const int64_t seed = row.search->options().sampling_seed;
  if (seed < 0) {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
  uint64_t key = MixedKey(row.source.size(), static_cast<uint64_t>(seed));
  for (const Ids* ids : {&row.source, &row.prefix}) {
    for (const int64_t id : *ids) key = MixedKey(key, static_cast<uint64_t>(id));
  }
  return key;
}

// None: the row draws no tokens. With `sampling_seed`, the seed and the row's ids are the key, so
// that rows of one seed draw independently; without, each row has a key of its own.
std::optional<Sampler> SamplerOf(const CheckedRow& row) {
  if (!row.search->Draws()) return std::nullopt;
  return Sampler(row.search->options(), KeyOf(row));
}

}  // namespace

RunningRow::RunningRow(LoopRow name, const CheckedRow& row, const DeviceModel& model,
                       const std::shared_ptr<const SearchRules>& rules, LoopCompute* compute)
    : name_(name),
      row_(row),
      model_(model),
      rules_(rules),
      draw_cost_(DrawCost(row, model.weights())),
      search_(DraftedSearch({rules, {}, 0}, {})) {
  Ids first_ids = FirstIds(row, model.weights());
  const auto limit = static_cast<size_t>(row.limit_tokens);
  Outputs forced = Forced(first_ids, *rules, limit);
  BeamBias bias;
  if (row.search->Biased()) {
    bias.prefix.emplace(std::exchange(forced, {}), row.search->options().prefix_bias_beta);
    first_ids.resize(1);
  }
  MakeAlignment();
  MakeSearch(forced, limit, std::move(bias));
  if (greedy() != nullptr) {
    answer_.reserve(limit);
    answer_.assign(first_ids.begin() + 1,
                   first_ids.begin() + 1 + static_cast<std::ptrdiff_t>(forced.size()));
  }
  if (forced.size() >= limit) {
    EndForced(forced);
    return;
  }
  feed_.reserve(std::max(first_ids.size(), static_cast<size_t>(row.search->Copies())));
  feed_.assign(first_ids.begin(), first_ids.end());
  capacity_ = CacheTokens(row, model.weights());
  cache_ = compute->NewCache(capacity_, limit);
}

void RunningRow::MakeSearch(const Outputs& forced, size_t limit, BeamBias bias) {
  Outputs draft = DraftOf(row_, *rules_, model_.weights());
  const float draft_bias = row_.search->options().draft_bias;
  if (draft_bias > 0) {
    bias.draft = std::make_shared<const DraftBias>(draft, forced.size(), draft_bias);
  }
  const auto sampler = SamplerOf(row_);
  const auto settings = BeamSettings::Of(*row_.search);
  if (row_.search->options().return_alternatives) {
    search_ =
        std::make_unique<Alternatives>(*rules_, settings, forced, limit, sampler, alignment_.get());
    prompt_ = forced.size();
  } else if (row_.search->BeamSearches()) {
    search_ = std::make_unique<BeamSearch>(rules_, settings, forced, limit, sampler,
                                           std::move(bias), AlignedSlots{alignment_.get()});
  } else if (settings.hypotheses > 1) {
    search_ = std::make_unique<SeveralDraws>(rules_, settings.hypotheses, forced, limit, sampler,
                                             AlignedSlots{alignment_.get()});
  } else {
    search_.emplace<DraftedSearch>(
        GreedySearch(rules_, forced, limit, sampler, std::move(bias.draft)),
        Draft(std::move(draft)));
  }
}

void RunningRow::MakeAlignment() {
  if (!row_.search->LoopAligns()) return;
  const size_t first = model_.weights().files().add_source_bos ? 1 : 0;
  alignment_ = std::make_unique<RowAlignment>(
      row_.alignment ? *row_.alignment : model_.shape().alignment, first, row_.source.size(),
      CacheTokens(row_, model_.weights()));
}

// Its forced tokens reach its limit, so it ends without a decode step.
void RunningRow::EndForced(const Outputs& forced) {
  const auto settings = BeamSettings::Of(*row_.search);
  const bool pushes_back = settings.beams > 1 && !row_.search->options().return_alternatives;
  result_ =
      ResultOf(pushes_back ? BeamSearch::ResultsOfForced(*rules_, settings, forced)
                           : std::vector<WideSearch::Hypothesis>(settings.hypotheses, {forced, 0}),
               forced.size());
}

WideSearch* RunningRow::beams() const {
  const auto* wide = std::get_if<std::unique_ptr<WideSearch>>(&search_);
  return wide == nullptr ? nullptr : wide->get();
}

StepCost RunningRow::Cost() {
  constexpr double kTokensPerRow = 100;
  const auto strands = static_cast<double>(beams() == nullptr ? 1 : beams()->beams());
  return {strands * (draw_cost_ + static_cast<double>(position_) / kTokensPerRow),
          row_.search->Copies() > 1, &turn_};
}

bool RunningRow::FeedsSeveral() const {
  const bool is_search = has_chosen_ && !std::holds_alternative<DraftedSearch>(search_);
  return !is_search && feed_.size() - fed_ > 1;
}

size_t RunningRow::AddTo(std::vector<StepSequence>* feed, StepRoom* room, size_t most_forced) {
  if (has_chosen_ && greedy() == nullptr) {
    feeding_ = 1;
    for (size_t i = 0; i < feed_.size(); ++i) {
      feed->push_back({&feed_[i], 1, position_, cache_.get(), encoding_->source(), 1,
                       beams()->slots(i), 0, alignment_.get()});
    }
    return feed_.size();
  }
  const size_t left = feed_.size() - fed_;
  feeding_ = std::min(left, 1 + std::min(room->forced, most_forced));
  room->forced -= feeding_ - 1;
  const auto next = feed_.begin() + static_cast<std::ptrdiff_t>(fed_);
  tokens_.assign(next, next + static_cast<std::ptrdiff_t>(feeding_));
  size_t outputs = 0;
  if (feeding_ == left) outputs = 1 + AddDraft(room);
  feed->push_back({tokens_.data(), tokens_.size(), position_, cache_.get(), encoding_->source(),
                   outputs, nullptr, prompt_, alignment_.get()});
  return outputs;
}

// Returns the number of draft tokens added.
size_t RunningRow::AddDraft(StepRoom* room) {
  if (greedy() == nullptr) return 0;
  const Outputs& tried = greedy()->Try(std::min(room->drafts, capacity_ - position_ - feeding_));
  room->drafts -= tried.size();
  for (const int32_t output : tried) tokens_.push_back(static_cast<int32_t>(rules_->Id(output)));
  return tried.size();
}

void RunningRow::AddRules(std::vector<OutputRules>* rules) const {
  if (const auto* search = std::get_if<DraftedSearch>(&search_)) return search->AddRules(rules);
  beams()->AddRules(rules);
}

int64_t RunningRow::AnswerId(int32_t output) const {
  return model_.weights().target().by_name(rules_->Id(output));
}

void RunningRow::Choose(const Found* found) {
  next_result_.reset();
  if (greedy() != nullptr) return ChooseGreedily(found);
  beams()->Choose(found);
  if (beams()->Ends()) next_result_ = ResultOf(beams()->Results(), beams()->length() + 1);
}

void RunningRow::ChooseGreedily(const Found* found) {
  greedy()->Choose(found);
  if (!greedy()->Ends()) return;
  const auto& chosen = greedy()->chosen();
  Ids answer = answer_;
  for (const Choice& choice : chosen) answer.push_back(AnswerId(choice.output));
  next_result_.emplace();
  next_result_->steps = static_cast<int64_t>(answer.size());
  next_result_->draft_tokens_kept = kept_ + static_cast<int64_t>(chosen.size()) - 1;
  const Ids positions = PositionsOf({alignment_.get()}, nullptr, answer.size());
  next_result_->hypotheses.push_back(Finished(std::move(answer), positions));
  next_result_->hypotheses.back().score = greedy()->Score();
}

Hypothesis RunningRow::Finished(Ids ids, const Ids& positions) const {
  Hypothesis hypothesis = FinishHypothesis(row_, std::move(ids));
  for (size_t i = 0; i < std::min(hypothesis.ids.size(), positions.size()); ++i) {
    hypothesis.ids[i] = Shown(hypothesis.ids[i], positions[i]);
  }
  AddAlignments(row_, positions, &hypothesis);
  return hypothesis;
}

// An ID of the output. Of chosen tokens, only unknown ones may still be replaced.
int64_t RunningRow::Shown(int64_t id, int64_t position) const {
  const Weights& weights = model_.weights();
  if (!row_.search->options().replace_unknowns || !IsUnknown(id, weights)) return id;
  return IdOfSource(row_, position, weights);
}

RowResult RunningRow::ResultOf(const std::vector<WideSearch::Hypothesis>& hypotheses,
                               size_t steps) const {
  RowResult result;
  result.steps = static_cast<int64_t>(steps);
  for (const auto& hypothesis : hypotheses) {
    Ids ids;
    for (const int32_t output : hypothesis.outputs) ids.push_back(AnswerId(output));
    result.hypotheses.push_back(Finished(std::move(ids), hypothesis.positions));
    if (row_.search->options().return_scores) result.hypotheses.back().score = hypothesis.score;
  }
  return result;
}

size_t RunningRow::Accept(LoopListener* listener) noexcept {
  size_t kept = 0;
  if (!ended()) {
    if (feeding_ == 0) return 0;
    position_ += feeding_;
    fed_ += feeding_;
    feeding_ = 0;
    if (!has_chosen_ && fed_ < feed_.size()) return 0;
    kept = AcceptChoice();
    result_ = std::move(next_result_);
  }
  ReportGrowth(listener);
  if (ended()) listener->RowEnded(name_, std::move(*result_));
  return kept;
}

// feed_ and answer_ have enough capacity.
size_t RunningRow::AcceptChoice() noexcept {
  has_chosen_ = true;
  fed_ = 0;
  if (greedy() != nullptr) return AcceptGreedy();
  beams()->Accept();
  feed_.clear();
  for (size_t i = 0; i < beams()->beams(); ++i) {
    feed_.push_back(static_cast<int32_t>(rules_->Id(beams()->last(i))));
  }
  return 0;
}

// Accepted draft tokens are in the cache; the entries after them are overwritten.
size_t RunningRow::AcceptGreedy() noexcept {
  greedy()->Accept();
  const auto& chosen = greedy()->chosen();
  for (const Choice& choice : chosen) answer_.push_back(AnswerId(choice.output));
  feed_.assign(1, static_cast<int32_t>(rules_->Id(chosen.back().output)));
  const size_t kept = chosen.size() - 1;
  position_ += kept;
  kept_ += static_cast<int64_t>(kept);
  return kept;
}

void RunningRow::ReportGrowth(LoopListener* listener) noexcept {
  const auto& search = *row_.search;
  size_t certain = answer_.size();
  if (!search.options().return_end_token) {
    while (certain > 0 && search.IsEnd(answer_[certain - 1])) --certain;
  }
  for (; reported_ < certain; ++reported_) {
    const int64_t id = answer_[reported_];
    listener->RowGrew(name_, alignment_ ? Shown(id, alignment_->PositionOf(reported_)) : id);
  }
}

}  // namespace ct2triton
