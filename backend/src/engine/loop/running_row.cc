// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/running_row.h"

#include <algorithm>
#include <utility>

#include "engine/finish.h"
#include "engine/loop/beam_search.h"
#include "engine/loop/sampler.h"
#include "engine/loop/several_draws.h"

namespace ct2triton {
namespace {

// Ids as CTranslate2 makes them from tokens: of a token that stands twice, the first.
int64_t ByName(int64_t id, const ctranslate2::Vocabulary& vocabulary) {
  return static_cast<int64_t>(vocabulary.to_id(vocabulary.to_token(static_cast<size_t>(id))));
}

// The token that starts the decoder, and the forced ones.
Ids FirstIds(const CheckedRow& row, const Weights& weights) {
  const auto& vocabulary = weights.target();
  Ids ids;
  if (!weights.NeedsPrefix()) {
    ids.push_back(static_cast<int64_t>(vocabulary.to_id(*weights.files().decoder_start_token)));
  }
  for (const int64_t id : row.prefix) ids.push_back(ByName(id, vocabulary));
  return ids;
}

Outputs Forced(const Ids& first_ids, const SearchRules& rules, size_t limit) {
  Outputs forced;
  for (size_t i = 1; i < first_ids.size() && i <= limit; ++i) {
    forced.push_back(rules.Output(first_ids[i]));
  }
  return forced;
}

}  // namespace

RunningRow::RunningRow(LoopRow name, const CheckedRow& row, const DecoderModel& model,
                       const std::shared_ptr<const SearchRules>& rules, CachePool* pool)
    : name_(name), row_(row), model_(model), rules_(rules), search_(GreedySearch(rules, {}, 0)) {
  Ids first_ids = FirstIds(row, model.weights());
  const auto limit = static_cast<size_t>(row.limit_tokens);
  Outputs forced = Forced(first_ids, *rules, limit);
  std::optional<PrefixBias> bias;
  if (row.search->Biased()) {
    bias.emplace(std::exchange(forced, {}), row.search->options().prefix_bias_beta);
    first_ids.resize(1);
  }
  MakeSearch(forced, limit, bias);
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
  capacity_ = model.CacheTokens(row);
  cache_ = pool->Take(capacity_ * model.TokenFloats());
}

void RunningRow::MakeSearch(const Outputs& forced, size_t limit,
                            const std::optional<PrefixBias>& bias) {
  const auto sampler = Sampler::Of(row_);
  const auto settings = BeamSettings::Of(*row_.search);
  if (row_.search->BeamSearches()) {
    search_ = std::make_unique<BeamSearch>(rules_, settings, forced, limit, sampler, bias);
  } else if (settings.hypotheses > 1) {
    search_ = std::make_unique<SeveralDraws>(rules_, settings.hypotheses, forced, limit, sampler,
                                             model_.kernels());
  } else {
    search_.emplace<GreedySearch>(rules_, forced, limit, sampler);
  }
}

// Its forced tokens reach its limit: it ends without having run.
void RunningRow::EndForced(const Outputs& forced) {
  const auto settings = BeamSettings::Of(*row_.search);
  result_ = ResultOf(settings.beams > 1
                         ? BeamSearch::ResultsOfForced(*rules_, settings, forced)
                         : std::vector<WideSearch::Hypothesis>(settings.hypotheses, {forced, 0}),
                     forced.size());
}

WideSearch* RunningRow::beams() const {
  const auto* wide = std::get_if<std::unique_ptr<WideSearch>>(&search_);
  return wide == nullptr ? nullptr : wide->get();
}

double RunningRow::StepCost() const {
  constexpr double kTokensPerRow = 100;
  const auto strands = static_cast<double>(beams() == nullptr ? 1 : beams()->beams());
  return strands * (1 + static_cast<double>(position_) / kTokensPerRow);
}

size_t RunningRow::AddTo(std::vector<StepRow>* feed) {
  if (has_chosen_ && greedy() == nullptr) {
    feeding_ = 1;
    for (size_t i = 0; i < feed_.size(); ++i) {
      feed->push_back({&feed_[i], 1, position_, cache_.data(), capacity_, encoding_.get(), true,
                       beams()->slots(i)});
    }
    return feed_.size();
  }
  const size_t left = feed_.size() - fed_;
  feeding_ = std::min(left, kForcedTokensPerStep);
  const bool last = feeding_ == left;
  feed->push_back(
      {feed_.data() + fed_, feeding_, position_, cache_.data(), capacity_, encoding_.get(), last});
  return last ? 1 : 0;
}

int64_t RunningRow::AnswerId(int32_t output) const {
  return ByName(rules_->Id(output), model_.weights().target());
}

void RunningRow::Choose(const Chooser::Found* found, size_t outputs) {
  next_result_.reset();
  if (greedy() != nullptr) return ChooseGreedily(found->choice);
  std::vector<float*> logits;
  for (size_t i = 0; i < beams()->beams(); ++i) logits.push_back(found[i].logits);
  beams()->Choose(logits, outputs, model_.log_softmax());
  if (beams()->Ends()) next_result_ = ResultOf(beams()->Results(), beams()->length() + 1);
}

void RunningRow::ChooseGreedily(const Choice& choice) {
  choice_ = choice;
  if (!greedy()->EndsWith(choice)) return;
  Ids answer = answer_;
  answer.push_back(AnswerId(choice.output));
  next_result_.emplace();
  next_result_->steps = static_cast<int64_t>(answer.size());
  next_result_->hypotheses.push_back(FinishHypothesis(row_, std::move(answer)));
  next_result_->hypotheses.back().score = greedy()->ScoreWith(choice);
}

RowResult RunningRow::ResultOf(const std::vector<WideSearch::Hypothesis>& hypotheses,
                               size_t steps) const {
  RowResult result;
  result.steps = static_cast<int64_t>(steps);
  for (const auto& hypothesis : hypotheses) {
    Ids ids;
    for (const int32_t output : hypothesis.outputs) ids.push_back(AnswerId(output));
    result.hypotheses.push_back(FinishHypothesis(row_, std::move(ids)));
    if (row_.search->options().return_scores) result.hypotheses.back().score = hypothesis.score;
  }
  return result;
}

void RunningRow::Accept(LoopListener* listener) noexcept {
  if (!ended()) {
    if (feeding_ == 0) return;
    position_ += feeding_;
    fed_ += feeding_;
    if (!has_chosen_ && fed_ < feed_.size()) return Skip();
    AcceptChoice();
    result_ = std::move(next_result_);
    feeding_ = 0;
  }
  ReportGrowth(listener);
  if (ended()) listener->RowEnded(name_, std::move(*result_));
}

// feed_ and answer_ have room.
void RunningRow::AcceptChoice() noexcept {
  has_chosen_ = true;
  fed_ = 0;
  if (auto* search = std::get_if<GreedySearch>(&search_)) {
    search->Accept(choice_);
    answer_.push_back(AnswerId(choice_.output));
    feed_.assign(1, static_cast<int32_t>(rules_->Id(choice_.output)));
    return;
  }
  beams()->Accept();
  feed_.clear();
  for (size_t i = 0; i < beams()->beams(); ++i) {
    feed_.push_back(static_cast<int32_t>(rules_->Id(beams()->last(i))));
  }
}

void RunningRow::ReportGrowth(LoopListener* listener) noexcept {
  const auto& search = *row_.search;
  size_t certain = answer_.size();
  if (!search.options().return_end_token) {
    while (certain > 0 && search.IsEnd(answer_[certain - 1])) --certain;
  }
  while (reported_ < certain) listener->RowGrew(name_, answer_[reported_++]);
}

}  // namespace ct2triton
