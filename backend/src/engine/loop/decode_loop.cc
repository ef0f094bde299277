// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/decode_loop.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "engine/finish.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// What the library throws, as an Error that says so.
template <typename Action>
auto OfLibrary(const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, std::string("CTranslate2 failed: ") + error.what());
  }
}

// Ids as CTranslate2 makes them from tokens: of a token that stands twice, the first.
int64_t ByName(int64_t id, const ctranslate2::Vocabulary& vocabulary) {
  return static_cast<int64_t>(vocabulary.to_id(vocabulary.to_token(static_cast<size_t>(id))));
}

}  // namespace

struct DecodeLoop::Running {
  Running(LoopRow name, const CheckedRow* row, GreedySearch search, Ids answer)
      : name(name), row(row), search(std::move(search)), answer(std::move(answer)) {}

  LoopRow name;
  const CheckedRow* row;
  GreedySearch search;
  Ids answer;                 // so far; has room for all that may come
  size_t reported = 0;        // ids of the answer
  std::vector<int32_t> feed;  // ids of tokens that are not in the cache yet, forced ones at first
  size_t fed = 0;             // of these, so many are by now
  size_t feeding = 0;         // so many more will be after this step
  size_t position = 0;        // tokens in the cache
  size_t capacity = 0;        // tokens that fit
  CacheBlock cache;
  std::shared_ptr<const Encoding> encoding;
  // The answer of a row whose forced tokens reach its limit: it ends without having run.
  std::optional<RowResult> result;
};

// What a step chose for a row, before it is made true.
struct DecodeLoop::Outcome {
  Choice choice;
  int64_t id = 0;                   // as the decoder takes it
  int64_t answer_id = 0;            // as it stands in the answer
  std::optional<RowResult> result;  // the row ends with it
};

DecodeLoop::DecodeLoop(std::shared_ptr<const DecoderModel> model,
                       std::shared_ptr<LoopCaches> caches)
    : model_(std::move(model)),
      caches_(std::move(caches)),
      encoder_(*model_),
      step_(*model_),
      chooser_(*model_),
      rules_(model_->weights()) {}

DecodeLoop::~DecodeLoop() = default;

std::unique_ptr<DecodeLoop::Running> DecodeLoop::Begin(const CheckedRow& row) {
  const Weights& weights = model_->weights();
  const auto& vocabulary = weights.target();
  Ids ids;
  if (!weights.NeedsPrefix()) {
    ids.push_back(static_cast<int64_t>(vocabulary.to_id(*weights.files().decoder_start_token)));
  }
  for (const int64_t id : row.prefix) ids.push_back(ByName(id, vocabulary));
  const size_t limit = static_cast<size_t>(row.limit_tokens);
  const auto rules = rules_.Get(row.search);
  std::vector<int32_t> forced;
  Ids answer;
  answer.reserve(limit);
  for (size_t i = 1; i < ids.size() && i <= limit; ++i) {
    forced.push_back(rules->Output(ids[i]));
    answer.push_back(ids[i]);
  }
  auto running = std::make_unique<Running>(next_row_++, &row, GreedySearch(rules, forced, limit),
                                           std::move(answer));
  if (forced.size() >= limit) {
    running->result.emplace();
    running->result->steps = static_cast<int64_t>(running->answer.size());
    running->result->hypotheses.push_back(FinishHypothesis(row, running->answer));
    return running;
  }
  running->feed.assign(ids.begin(), ids.end());
  running->capacity = limit;
  running->cache = caches_->pool.Take(limit * model_->TokenFloats());
  return running;
}

std::vector<LoopRow> DecodeLoop::Admit(const std::vector<const CheckedRow*>& rows) {
  const uint64_t start_ns = SteadyNow_ns();
  std::vector<std::unique_ptr<Running>> admitted;
  std::vector<const CheckedRow*> to_encode;
  std::vector<LoopRow> names;
  for (const CheckedRow* row : rows) {
    admitted.push_back(Begin(*row));
    names.push_back(admitted.back()->name);
    if (!admitted.back()->result) to_encode.push_back(row);
  }
  SourceEncoder::Counts counts;
  auto encodings = OfLibrary([&] { return encoder_.Encode(to_encode, caches_.get(), &counts); });
  if (!rows_.empty()) counters_.joined_rows += admitted.size();
  rows_.reserve(rows_.size() + admitted.size());
  auto encoding = encodings.begin();
  for (auto& row : admitted) {
    if (!row->result) row->encoding = std::move(*encoding++);
    rows_.push_back(std::move(row));
  }
  counters_.encodes += counts.calls;
  counters_.encoded_rows += counts.rows;
  counters_.shared_encodings += counts.shared;
  counters_.encoded_tokens += counts.tokens;
  counters_.encode_ns += SteadyNow_ns() - start_ns;
  return names;
}

void DecodeLoop::Step(LoopListener* listener) {
  const uint64_t start_ns = SteadyNow_ns();
  std::vector<Running*> choosing;
  const std::vector<StepRow> feed = NextFeed(&choosing);
  std::vector<Outcome> outcomes;
  if (!feed.empty()) {
    outcomes = OfLibrary([&] { return Choose(choosing, step_.Run(feed)); });
    ++counters_.steps;
  }
  Commit(std::move(outcomes), listener);
  for (const StepRow& row : feed) counters_.step_tokens += row.count;
  counters_.step_rows += feed.size();
  counters_.step_ns += SteadyNow_ns() - start_ns;
}

// The rows in order, less those that end without a step. `choosing`: of these, those that will have
// no more forced tokens.
std::vector<StepRow> DecodeLoop::NextFeed(std::vector<Running*>* choosing) {
  std::vector<StepRow> feed;
  feed.reserve(rows_.size());
  for (const auto& row : rows_) {
    if (row->result) continue;
    const size_t left = row->feed.size() - row->fed;
    row->feeding = std::min(left, kForcedTokensPerStep);
    const bool last = row->feeding == left;
    feed.push_back({row->feed.data() + row->fed, row->feeding, row->position, row->cache.data(),
                    row->capacity, row->encoding.get(), last});
    if (last) choosing->push_back(row.get());
  }
  return feed;
}

std::vector<DecodeLoop::Outcome> DecodeLoop::Choose(const std::vector<Running*>& rows,
                                                    const float* hidden) {
  std::vector<size_t> whole, mapped;  // positions of rows that choose among all tokens, or some
  for (size_t i = 0; i < rows.size(); ++i) {
    (rows[i]->search.rules().map == nullptr ? whole : mapped).push_back(i);
  }
  std::vector<Outcome> outcomes(rows.size());
  if (!whole.empty()) ChooseAmong(whole, rows, hidden, model_->projection(), &outcomes);
  if (!mapped.empty()) ChooseAmong(mapped, rows, hidden, *model_->mapped_projection(), &outcomes);
  return outcomes;
}

void DecodeLoop::ChooseAmong(const std::vector<size_t>& positions,
                             const std::vector<Running*>& rows, const float* hidden,
                             const Linear& projection, std::vector<Outcome>* outcomes) {
  const size_t width = model_->width();
  if (positions.size() < rows.size()) {  // only these
    float* top = top_.Room(positions.size() * width);
    for (size_t k = 0; k < positions.size(); ++k) {
      const float* row = hidden + positions[k] * width;
      std::copy(row, row + width, top + k * width);
    }
    hidden = top;
  }
  std::vector<const GreedySearch*> searches;
  for (const size_t i : positions) searches.push_back(&rows[i]->search);
  const std::vector<Choice> choices = chooser_.Choose(searches, hidden, projection);
  for (size_t k = 0; k < positions.size(); ++k) {
    (*outcomes)[positions[k]] = OutcomeOf(*rows[positions[k]], choices[k]);
  }
}

DecodeLoop::Outcome DecodeLoop::OutcomeOf(const Running& row, const Choice& choice) const {
  const GreedySearch& search = row.search;
  Outcome outcome;
  outcome.choice = choice;
  outcome.id = search.rules().Id(outcome.choice.output);
  outcome.answer_id = ByName(outcome.id, model_->weights().target());
  if (!search.EndsWith(outcome.choice)) return outcome;
  Ids answer = row.answer;
  answer.push_back(outcome.answer_id);
  outcome.result.emplace();
  outcome.result->steps = static_cast<int64_t>(answer.size());
  outcome.result->hypotheses.push_back(FinishHypothesis(*row.row, std::move(answer)));
  outcome.result->hypotheses.back().score = search.ScoreWith(outcome.choice);
  return outcome;
}

// outcomes: of the rows that have chosen, in order. Takes no memory, and so cannot fail.
void DecodeLoop::Commit(std::vector<Outcome> outcomes, LoopListener* listener) noexcept {
  auto outcome = outcomes.begin();
  for (const auto& row : rows_) {
    if (!row->result) {
      row->position += row->feeding;
      row->fed += row->feeding;
      if (row->fed < row->feed.size()) continue;
      row->search.Accept(outcome->choice);
      row->answer.push_back(outcome->answer_id);
      row->feed.assign(1, static_cast<int32_t>(outcome->id));
      row->fed = 0;
      row->result = std::move(outcome->result);
      ++outcome;
    }
    ReportGrowth(row.get(), listener);
    if (row->result) listener->RowEnded(row->name, std::move(*row->result));
  }
  const auto ended = std::remove_if(rows_.begin(), rows_.end(),
                                    [](const auto& row) { return row->result.has_value(); });
  rows_.erase(ended, rows_.end());
}

void DecodeLoop::ReportGrowth(Running* row, LoopListener* listener) noexcept {
  const Search& search = *row->row->search;
  size_t certain = row->answer.size();
  if (!search.options().return_end_token) {
    while (certain > 0 && search.IsEnd(row->answer[certain - 1])) --certain;
  }
  while (row->reported < certain) {
    listener->RowGrew(row->name, row->answer[row->reported++]);
  }
}

void DecodeLoop::Remove(LoopRow row) noexcept {
  const auto found = std::find_if(rows_.begin(), rows_.end(),
                                  [row](const auto& running) { return running->name == row; });
  if (found != rows_.end()) rows_.erase(found);
}

void DecodeLoop::Clear() noexcept { rows_.clear(); }

}  // namespace ct2triton
