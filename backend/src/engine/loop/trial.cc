// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trial.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/compute/cpu/processor.h"
#include "engine/compute/device_model.h"
#include "engine/compute/loop_compute.h"
#include "engine/loop/beam_trial.h"
#include "engine/loop/source_encoder.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr float kFloatTolerance = 0.001F;
constexpr float kNarrowTolerance = 0.05F;
// Limit on our difference from float32, as a multiple of the library's own. Both have int8 rounding
// errors, and single tokens may have slightly larger ones here.
constexpr double kAsNear = 1.25;

// Progress of the loop with a row.
struct FollowedRow {
  const TrialRow& trial;
  std::shared_ptr<const Encoding> encoding{};
  std::unique_ptr<RowCache> cache{};
  size_t fed = 0;  // tokens fed, forced and chosen
};

class Trial {
 public:
  // `exact`: of the same tokens with float32 weights; null: not used.
  Trial(const DeviceModel& model, const TrialTruth& truth, const TrialTruth* exact)
      : model_(model),
        truth_(truth),
        exact_(exact),
        caches_(/*keep_bytes=*/0),
        compute_(model.NewCompute(&caches_.memory)),
        encoder_(model, compute_.get(), &caches_.encodings) {
    for (const TrialRow& row : truth.rows) rows_.push_back({row});
    for (const VocabularyMap* map : model.weights().AllMaps()) {
      if (map->fixed()) maps_.push_back(map);
    }
  }

  TrialReport Run() {
    const uint64_t start_ns = SteadyNow_ns();
    report_.tolerance = precise() ? kFloatTolerance : kNarrowTolerance;
    for (size_t step = 0; !Ended(); ++step) Step(step);
    if (truth_.beams) {
      report_.beams =
          TryBeams(model_, *truth_.beams, exact_ ? &*exact_->beams : nullptr, report_.tolerance);
    }
    report_.ns = truth_.ns + (exact_ ? exact_->ns : 0) + SteadyNow_ns() - start_ns;
    return report_;
  }

 private:
  // Whether weights are not rounded, so that last bits cannot change a rounding.
  bool precise() const { return model_.weight_type() == ElementType::kFloat32; }

  bool Ended() const;
  void Step(size_t step);
  StepSequence NextOf(const FollowedRow& row) const;
  void Compare(const FollowedRow& row, const float* logits);
  void CompareMapped(const VocabularyMap& map, const std::vector<float>& whole,
                     const std::vector<float>& mapped);
  void RequireWithin(const char* what, double error) const {
    RequireWithin(what, error, report_.tolerance);
  }
  void RequireWithin(const char* what, double error, double allowed) const;

  const DeviceModel& model_;
  const TrialTruth& truth_;
  const TrialTruth* const exact_;
  LoopCaches caches_;
  const std::unique_ptr<LoopCompute> compute_;
  SourceEncoder encoder_;
  std::vector<FollowedRow> rows_;
  std::vector<const VocabularyMap*> maps_;
  TrialReport report_;
};

bool Trial::Ended() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const FollowedRow& row) {
    return row.fed + 1 >= row.trial.forced.size() + row.trial.truth.chosen.size();
  });
}

// Its next forced tokens, as many as a step takes, or the next chosen token.
StepSequence Trial::NextOf(const FollowedRow& row) const {
  const std::vector<int32_t>& forced = row.trial.forced;
  const std::vector<int32_t>& chosen = row.trial.truth.chosen;
  const bool joins = row.fed < forced.size();
  StepSequence next{};
  next.tokens = joins ? forced.data() + row.fed : chosen.data() + (row.fed - forced.size());
  next.count = joins ? std::min(forced.size() - row.fed, 1 + model_.step_room().forced) : 1;
  next.position = row.fed;
  next.cache = row.cache.get();
  next.source = row.encoding->source();
  next.outputs = row.fed + next.count >= forced.size() ? 1 : 0;
  return next;
}

// One step of the loop: joining rows feed their forced tokens, the others their last chosen token.
void Trial::Step(size_t step) {
  std::vector<StepSequence> feed;
  std::vector<FollowedRow*> fed;
  for (FollowedRow& row : rows_) {
    const size_t tokens = row.trial.forced.size() + row.trial.truth.chosen.size();
    if (step < row.trial.joins_at || row.fed + 1 >= tokens) continue;
    if (!row.encoding) {
      SourceEncoder::Counts counts;
      row.encoding = encoder_.Encode({&row.trial.row}, &counts).front();
      row.cache = compute_->NewCache(tokens, static_cast<size_t>(row.trial.row.limit_tokens));
    }
    feed.push_back(NextOf(row));
    fed.push_back(&row);
  }
  if (feed.empty()) return;
  // The first output shows that the candidates' weights are the right ones.
  const bool first =
      std::any_of(feed.begin(), feed.end(), [](auto& row) { return row.outputs > 0; });
  const auto maps = first ? std::exchange(maps_, {}) : decltype(maps_)();
  const auto logits = compute_->Logits(feed, maps);
  auto next = logits.begin();
  for (size_t i = 0; i < fed.size(); ++i) {
    fed[i]->fed += feed[i].count;
    if (feed[i].outputs > 0) Compare(*fed[i], next++->data());
  }
  for (size_t i = 0; next != logits.end(); ++i) CompareMapped(*maps[i], logits.front(), *next++);
}

// Root mean square difference, relative to the standard deviation of `expected`.
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

void Trial::Compare(const FollowedRow& row, const float* logits) {
  const size_t outputs = model_.shape().vocabulary;
  const GreedyTruth& truth = row.trial.truth;
  const float* expected = truth.logits[row.fed - 1].data();
  const char* what = "of the logits from CTranslate2's";
  double allowed = report_.tolerance;
  if (exact_ != nullptr) {
    const auto place = static_cast<size_t>(&row - rows_.data());
    const float* found =
        std::exchange(expected, exact_->rows[place].truth.logits.at(row.fed - 1).data());
    const double error = RelativeError(found, expected, outputs);
    report_.library_error = std::max(report_.library_error, static_cast<float>(error));
    allowed = std::max(allowed, kAsNear * error);
    what = "of the logits from CTranslate2's with float32 weights";
  }
  const double error = RelativeError(logits, expected, outputs);
  ++report_.tokens;
  report_.largest_error = std::max(report_.largest_error, static_cast<float>(error));
  RequireWithin(what, error, allowed);
  if (!precise()) return;
  const float found = logits[truth.chosen[row.fed - row.trial.forced.size()]];
  const float most = logits[model_.row_kernel().first_maximum(logits, outputs)];
  RequireWithin("of the token that CTranslate2 chose from the best",
                (most - found) / std::max(1.0F, std::fabs(most)));
}

// Compares the map's projection with the same outputs of the whole one.
void Trial::CompareMapped(const VocabularyMap& map, const std::vector<float>& whole,
                          const std::vector<float>& mapped) {
  std::vector<float> expected;
  for (const int64_t id : map.numbered()) expected.push_back(whole[static_cast<size_t>(id)]);
  RequireWithin("of the logits of the vocabulary map's candidates",
                RelativeError(mapped.data(), expected.data(), expected.size()));
}

void Trial::RequireWithin(const char* what, double error, double allowed) const {
  if (error <= allowed) return;  // not `>`, because the error may be NaN
  std::ostringstream text;
  text << "after " << report_.tokens << " tokens, the difference " << what << " is " << error
       << ", where " << allowed << " is allowed";
  RefuseTrial(text.str());
}

// Without VNNI, oneDNN adds int8 products in 16 bits and saturates some sums. Its environment
// variable can disable VNNI on any processor.
bool LibraryCutsSums() {
  const bool has_vnni =
      ProcessorRuns(Instructions::kAvx512Vnni) || ProcessorRuns(Instructions::kAvxVnni);
  return !has_vnni || std::getenv("DNNL_MAX_CPU_ISA") != nullptr;
}

// None without memory for float32 weights: then the first trial decides.
std::optional<TrialTruth> AskAgain(const DeviceModel& model, const TrialTruth& truth) {
  if (model.weight_type() != ElementType::kInt8 || !LibraryCutsSums()) return std::nullopt;
  try {
    return AskAtFloat32(model.weights(), truth);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace

TrialReport TryDecoder(const DeviceModel& model, const TrialTruth& truth) {
  try {
    std::optional<TrialTruth> exact;
    try {
      return Trial(model, truth, nullptr).Run();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported) throw;
      exact = AskAgain(model, truth);
      if (!exact) throw;
    }
    return Trial(model, truth, &*exact).Run();
  } catch (const Error& error) {
    const bool refused =
        error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kNoKernels;
    if (refused || model.loss()) throw;
    RefuseTrial(error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    RefuseTrial(error.what());
  }
}

}  // namespace ct2triton
