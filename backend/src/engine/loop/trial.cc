// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trial.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "engine/loop/beam_trial.h"
#include "engine/loop/cache_pool.h"
#include "engine/loop/decoder_model.h"
#include "engine/loop/loop_compute.h"
#include "engine/loop/tensors.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr float kFloatTolerance = 0.001F;
constexpr float kNarrowTolerance = 0.05F;

// A row of the trial: what CTranslate2 made of it, and how far the loop has come.
struct TrialRow {
  CheckedRow row;
  size_t joins_at;                                 // step
  std::vector<int32_t> forced{};                   // the start token first
  std::vector<int32_t> chosen{};                   // by CTranslate2, after the forced ones
  std::vector<ctranslate2::StorageView> logits{};  // CTranslate2's, of every step
  std::shared_ptr<const Encoding> encoding{};
  CacheBlock cache{};
  size_t fed = 0;  // tokens of forced and chosen
};

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported,
              "the decode loop does not agree with CTranslate2 in a trial of this model: " + what);
}

class Trial {
 public:
  explicit Trial(const DecoderModel& model)
      : model_(model), caches_(/*keep_bytes=*/0), compute_(LoopCompute::New(model)) {}

  TrialReport Run() {
    const uint64_t start_ns = SteadyNow_ns();
    report_.tolerance = precise() ? kFloatTolerance : kNarrowTolerance;
    MakeRows();
    AskCTranslate2();
    for (size_t step = 0; !Ended(); ++step) Step(step);
    if (!model_.on_device()) report_.beams = TryBeams(model_, report_.tolerance);
    report_.ns = SteadyNow_ns() - start_ns;
    return report_;
  }

 private:
  // Without last bits that tip over a rounding.
  bool precise() const { return model_.weights().WeightWidth() == "32-bit"; }

  void MakeRows();
  void AskCTranslate2();
  bool Ended() const;
  void Step(size_t step);
  StepRow NextOf(const TrialRow& row) const;
  void Compare(const TrialRow& row, const float* logits);
  void CompareMapped(const float* logits);
  void RequireWithin(const char* what, double error) const;

  const DecoderModel& model_;
  LoopCaches caches_;
  const std::unique_ptr<LoopCompute> compute_;
  std::vector<TrialRow> rows_;
  TrialReport report_;
};

// Tokens from all over the vocabulary, less its beginning, where special ones stand.
class Tokens {
 public:
  explicit Tokens(size_t vocabulary) : first_(vocabulary / 8), count_(vocabulary - first_) {}
  int64_t Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int64_t>(first_ + (state_ >> 33) % count_);
  }

 private:
  const size_t first_;
  const size_t count_;
  uint64_t state_ = 11;
};

void Trial::MakeRows() {
  struct Plan {
    size_t source, forced, joins_at;
  };
  constexpr Plan kPlans[] = {{4, 1, 0}, {7, 0, 1}, {2, 2, 2}};
  constexpr int64_t kSteps = 5;
  const Weights& weights = model_.weights();
  Tokens source(weights.source().size());
  Tokens target(weights.target().size());
  const auto positions = weights.source_positions().value_or(16) - weights.added_source_tokens();
  for (const Plan& plan : kPlans) {
    TrialRow row{{}, plan.joins_at};
    row.row.limit_tokens = std::min(kSteps, weights.target_positions().value_or(kSteps));
    const size_t tokens =
        std::min(plan.source, static_cast<size_t>(std::max<int64_t>(1, positions)));
    for (size_t i = 0; i < tokens; ++i) row.row.source.push_back(source.Next());
    const size_t forced = weights.NeedsPrefix() ? plan.forced + 1 : plan.forced;
    for (size_t i = 0; i < forced; ++i) row.row.prefix.push_back(target.Next());
    rows_.push_back(std::move(row));
  }
}

void Trial::AskCTranslate2() {
  const Weights& weights = model_.weights();
  std::vector<std::vector<std::string>> sources, prefixes;
  for (TrialRow& row : rows_) {
    auto& source = sources.emplace_back();
    for (const int64_t id : row.row.source) {
      source.push_back(weights.source().to_token(static_cast<size_t>(id)));
    }
    auto& prefix = prefixes.emplace_back();
    if (!weights.NeedsPrefix()) {
      const auto start = weights.target().to_id(*weights.files().decoder_start_token);
      row.forced.push_back(static_cast<int32_t>(start));
    }
    for (const int64_t id : row.row.prefix) {
      prefix.push_back(weights.target().to_token(static_cast<size_t>(id)));
      row.forced.push_back(static_cast<int32_t>(weights.target().to_id(prefix.back())));
    }
  }
  ctranslate2::TranslationOptions options;
  options.beam_size = 1;
  options.return_logits_vocab = true;
  options.end_token = std::vector<size_t>();  // so that all rows run to the limit
  options.min_decoding_length = 0;
  options.max_decoding_length = static_cast<size_t>(rows_.front().row.limit_tokens);
  options.callback = [this](const ctranslate2::GenerationStepResult& step) {
    TrialRow& row = rows_.at(step.batch_id);
    if (step.step + 1 < row.forced.size()) return false;
    row.chosen.push_back(static_cast<int32_t>(step.token_id));
    return false;
  };
  auto results = weights.NewReplica()->translate(sources, prefixes, options);
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].logits = std::move(results.at(i).logits.at(0));
    if (rows_[i].logits.size() + 1 != rows_[i].forced.size() + rows_[i].chosen.size()) {
      Refuse("CTranslate2 gave the logits of other steps than it was asked for");
    }
  }
}

bool Trial::Ended() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const TrialRow& row) {
    return row.fed + 1 >= row.forced.size() + row.chosen.size();
  });
}

// Its forced tokens, as many as a step takes, or the next chosen one.
StepRow Trial::NextOf(const TrialRow& row) const {
  const bool joins = row.fed < row.forced.size();
  StepRow next{};
  next.tokens =
      joins ? row.forced.data() + row.fed : row.chosen.data() + (row.fed - row.forced.size());
  next.count = joins ? std::min(row.forced.size() - row.fed, model_.tokens_per_step()) : 1;
  next.position = row.fed;
  next.cache = row.cache.data();
  next.capacity = row.forced.size() + row.chosen.size();
  next.encoding = row.encoding.get();
  next.outputs = row.fed + next.count >= row.forced.size() ? 1 : 0;
  next.row = static_cast<uint64_t>(&row - rows_.data());
  return next;
}

// One step of the loop: rows that join bring their forced tokens, the others the last chosen one.
void Trial::Step(size_t step) {
  std::vector<StepRow> feed;
  std::vector<TrialRow*> fed;
  for (TrialRow& row : rows_) {
    const size_t tokens = row.forced.size() + row.chosen.size();
    if (step < row.joins_at || row.fed + 1 >= tokens) continue;
    if (!row.encoding) {
      SourceEncoder::Counts counts;
      row.encoding = compute_->Encode({&row.row}, &caches_, &counts).front();
      if (!model_.on_device()) row.cache = caches_.pool.Take(tokens * model_.TokenFloats());
    }
    feed.push_back(NextOf(row));
    fed.push_back(&row);
  }
  if (feed.empty()) return;
  compute_->Run(feed);
  const std::vector<float> logits = compute_->Logits(nullptr);
  if (!logits.empty()) CompareMapped(logits.data());
  const float* next = logits.data();
  for (size_t i = 0; i < fed.size(); ++i) {
    fed[i]->fed += feed[i].count;
    if (feed[i].outputs == 0) continue;
    Compare(*fed[i], next);
    next += model_.vocabulary();
  }
}

// Root mean square difference, as a share of the standard deviation of what is expected.
double RelativeError(const float* found, const float* expected, size_t count) {
  double sum = 0, squares = 0, differences = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = expected[i];
    const double difference = found[i] - value;
    sum += value;
    squares += value * value;
    differences += difference * difference;
  }
  const double variance = squares - sum * sum / static_cast<double>(count);
  return std::sqrt(differences / std::max(variance, 1e-30));
}

void Trial::Compare(const TrialRow& row, const float* logits) {
  const size_t outputs = model_.vocabulary();
  const auto& given = row.logits[row.fed - 1];
  std::vector<float> copied;
  if (model_.on_device()) copied = Tensors::Floats(given, outputs);
  const float* expected = model_.on_device() ? copied.data() : given.data<float>();
  const double error = RelativeError(logits, expected, outputs);
  ++report_.tokens;
  report_.largest_error = std::max(report_.largest_error, static_cast<float>(error));
  RequireWithin("of the logits from CTranslate2's", error);
  if (!precise()) return;
  const float found = logits[row.chosen[row.fed - row.forced.size()]];
  const float most = logits[model_.kernels().first_maximum(logits, outputs)];
  RequireWithin("of the token that CTranslate2 chose from the best",
                (most - found) / std::max(1.0F, std::fabs(most)));
}

// The same products, less those of other tokens. `logits`: of the first row.
void Trial::CompareMapped(const float* logits) {
  for (const auto& [map, unused] : model_.mapped_projections()) {
    const auto& known = map->numbered();
    const std::vector<float> mapped = compute_->Logits(map);
    std::vector<float> expected;
    for (const int64_t id : known) expected.push_back(logits[id]);
    RequireWithin("of the logits of the vocabulary map's candidates",
                  RelativeError(mapped.data(), expected.data(), known.size()));
  }
}

void Trial::RequireWithin(const char* what, double error) const {
  if (error <= report_.tolerance) return;  // and not the other way round: it may be no number
  std::ostringstream text;
  text << "after " << report_.tokens << " tokens, the difference " << what << " is " << error
       << ", where " << report_.tolerance << " is allowed";
  Refuse(text.str());
}

}  // namespace

TrialReport TryDecoder(const DecoderModel& model) {
  try {
    return Trial(model).Run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) throw;
    Refuse(error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    Refuse(error.what());
  }
}

}  // namespace ct2triton
