// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/ct2_engine.h"

#include <algorithm>
#include <map>
#include <new>

#include "engine/calls/library/call_options.h"
#include "engine/calls/library/greedy_progress.h"
#include "engine/search/finish.h"
#include "engine/search/search_options.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

using Rows = std::vector<const CheckedRow*>;

int64_t LargestLimit(const Rows& rows) {
  int64_t largest = 0;
  for (const auto* row : rows) largest = std::max(largest, row->limit_tokens);
  return largest;
}

// In tokens, including the end token.
int64_t LongestHypothesis(const ctranslate2::TranslationResult& result) {
  size_t longest = 0;
  for (const auto& tokens : result.hypotheses) longest = std::max(longest, tokens.size());
  return static_cast<int64_t>(longest);
}

// For each token, the first position with the most of its attention.
Ids MostAttended(const std::vector<std::vector<float>>& attention) {
  Ids positions;
  for (const auto& weights : attention) {
    positions.push_back(std::max_element(weights.begin(), weights.end()) - weights.begin());
  }
  return positions;
}

void KeepBest(size_t count, ctranslate2::TranslationResult* result) {
  if (result->hypotheses.size() > count) result->hypotheses.resize(count);
  if (result->scores.size() > count) result->scores.resize(count);
  if (result->attention.size() > count) result->attention.resize(count);
}

}  // namespace

Ct2Engine::Ct2Engine(std::shared_ptr<const Ct2Model> model)
    : model_(std::move(model)), replica_(model_->NewReplica()) {}

std::vector<RowResult> Ct2Engine::Run(const Rows& rows, CallWatcher* watcher, RunTimes* times) {
  const SearchOptions& search = *rows.front()->search;
  const int64_t largest_limit = LargestLimit(rows);
  auto options = CallOptions(search, largest_limit, model_->target());
  GreedyProgress progress(rows, model_->target(), watcher);
  if (search.EndsRowsAlone()) {
    options.callback = [&](const ctranslate2::GenerationStepResult& step) {
      return progress.Step(step);
    };
  }
  times->compute_start_ns = SteadyNow_ns();
  std::vector<bool> reached_limit(rows.size(), false);
  Results results = search.MayOverrun() ? CallBeyondLimits(rows, largest_limit, &reached_limit)
                                        : Call(rows, options);
  times->compute_end_ns = SteadyNow_ns();
  std::vector<RowResult> answers;
  answers.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    answers.push_back(progress.reported(i) ? RowResult()
                                           : ToRowResult(*rows[i], std::move(results[i])));
    answers.back().reached_limit = reached_limit[i];
  }
  return answers;
}

Ct2Engine::Replica& Ct2Engine::ReplicaFor(const SearchOptions& search) {
  if (!search.UsesLibraryMap()) return *replica_;
  if (!mapped_replica_ || !search.map()->fixed()) {
    mapped_replica_ = model_->NewReplica();
  }
  return *mapped_replica_;
}

Ct2Engine::Results Ct2Engine::Call(const Rows& rows,
                                   const ctranslate2::TranslationOptions& options) {
  auto& replica = ReplicaFor(*rows.front()->search);
  std::vector<Ct2Model::Tokens> source, prefix;
  for (const auto* row : rows) {
    source.push_back(Ct2Model::ToTokens(row->source, model_->source()));
    prefix.push_back(Ct2Model::ToTokens(row->prefix, model_->target()));
  }
  try {
    return replica.translate(source, prefix, options);
  } catch (const std::bad_alloc&) {  // in CTranslate2 or in its callback
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, std::string("CTranslate2 failed: ") + error.what());
  }
}

Ct2Engine::Results Ct2Engine::CallBeyondLimits(const Rows& rows, int64_t largest_limit,
                                               std::vector<bool>* reached_limit) {
  const SearchOptions& search = *rows.front()->search;
  Results results =
      Call(rows, CallOptions(search, largest_limit, model_->target(), Keep::kAllFinished));
  std::map<int64_t, std::vector<size_t>> to_repeat;  // by limit
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t limit = rows[i]->limit_tokens;
    (*reached_limit)[i] = LongestHypothesis(results[i]) >= limit;
    if (limit < largest_limit && (*reached_limit)[i]) {
      to_repeat[limit].push_back(i);
    } else {
      KeepBest(static_cast<size_t>(search.options().num_hypotheses), &results[i]);
    }
  }
  for (const auto& [limit, positions] : to_repeat) {
    Rows again;
    for (const size_t i : positions) again.push_back(rows[i]);
    Results repeated = Call(again, CallOptions(search, limit, model_->target()));
    for (size_t k = 0; k < positions.size(); ++k) results[positions[k]] = std::move(repeated[k]);
  }
  return results;
}

RowResult Ct2Engine::ToRowResult(const CheckedRow& row,
                                 ctranslate2::TranslationResult result) const {
  RowResult answer;
  answer.steps = LongestHypothesis(result);
  for (size_t h = 0; h < result.hypotheses.size(); ++h) {
    Hypothesis hypothesis =
        FinishHypothesis(row, Ct2Model::ToIds(result.hypotheses[h], model_->target()),
                         row.search->CallTakesEndsOff() ? EndToken::kTakenOff : EndToken::kThere);
    // Calls have only the attention of the model's own heads.
    const bool known = !row.alignment && h < result.attention.size();
    AddAlignments(row, known ? MostAttended(result.attention[h]) : Ids(), &hypothesis);
    answer.hypotheses.push_back(std::move(hypothesis));
    if (h < result.scores.size()) answer.hypotheses.back().score = result.scores[h];
  }
  if (answer.hypotheses.empty())
    throw Error(ErrorCode::kInternal, "CTranslate2 gave no hypothesis");
  return answer;
}

}  // namespace ct2triton
