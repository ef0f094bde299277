// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trial_truth.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "engine/calls/shared_library_model.h"
#include "engine/calls/thread_scope.h"
#include "engine/compute/device_model.h"
#include "engine/loop/loop_support.h"
#include "engine/search/search_options.h"
#include "engine/usable_cores.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr int64_t kBeamSteps = 4;

// Tokens from the whole vocabulary except its beginning, which has special tokens.
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

std::vector<TrialRow> MakeRows(const Weights& weights) {
  struct Plan {
    size_t source, forced, joins_at;
  };
  constexpr Plan kPlans[] = {{4, 1, 0}, {7, 0, 1}, {2, 2, 2}};
  constexpr int64_t kSteps = 5;
  std::vector<TrialRow> rows;
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
    rows.push_back(std::move(row));
  }
  return rows;
}

void FollowGreedily(const Weights& weights, const LibraryModel& library,
                    std::vector<TrialRow>* rows) {
  std::vector<const CheckedRow*> checked;
  for (TrialRow& row : *rows) {
    const Ids forced = FirstIds(row.row, weights);
    row.forced.assign(forced.begin(), forced.end());
    row.row.forced_ids = row.forced.size() - 1;
    checked.push_back(&row.row);
  }
  auto truths = library.FollowGreedily(checked);
  for (size_t i = 0; i < rows->size(); ++i) {
    TrialRow& row = (*rows)[i];
    row.truth = std::move(truths[i]);
    if (row.truth.logits.size() + 1 != row.forced.size() + row.truth.chosen.size()) {
      RefuseTrial("CTranslate2 gave the logits of other steps than it was asked for");
    }
  }
}

CheckedRow MakeBeamRow(const Weights& weights) {
  DecodingOptions options;
  options.beam_size = 2;
  options.num_hypotheses = 2;
  options.return_scores = true;
  CheckedRow row;
  row.limit_tokens = std::min(kBeamSteps, weights.target_positions().value_or(kBeamSteps));
  options.min_decoding_length = row.limit_tokens;
  options.max_decoding_length = row.limit_tokens;
  row.search = std::make_shared<const SearchOptions>(options, weights);
  row.options = {row.search, &row.search->options()};
  const auto positions = weights.source_positions().value_or(16) - weights.added_source_tokens();
  const auto tokens = static_cast<size_t>(std::clamp<int64_t>(positions, 1, 5));
  for (size_t i = 1; i <= tokens; ++i) {
    row.source.push_back(static_cast<int64_t>(weights.source().size() * i / (tokens + 1)));
  }
  if (weights.NeedsPrefix()) {
    row.prefix.push_back(static_cast<int64_t>(weights.target().size() / 2));
  }
  return row;
}

void SearchWithTwoBeams(const LibraryModel& library, BeamTrialRow* beams) {
  CallWatcher unwatched;
  RunTimes times;
  const auto result = library.NewEngine()->Run({&beams->row}, &unwatched, &times).front();
  beams->scores.clear();
  for (const Hypothesis& found : result.hypotheses) beams->scores.push_back(found.score);
}

// Turns CTranslate2's failures into refusals of the trial.
template <class Asking>
TrialTruth Ask(const Device& device, const Asking& asking) {
  const uint64_t start_ns = SteadyNow_ns();
  TrialTruth truth;
  try {
    CallLibrary::Get();  // before the scope, which prepares a thread for the library
    RunInThreadScope(device, UsableCores(), [&] { truth = asking(); });
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& error) {
    const bool changed = error.code() == ErrorCode::kUnavailable;  // the files
    if (changed || error.code() == ErrorCode::kUnsupported) throw;
    RefuseTrial(error.what());
  } catch (const std::exception& error) {
    RefuseTrial(error.what());
  }
  truth.ns = SteadyNow_ns() - start_ns;
  return truth;
}

}  // namespace

TrialTruth AskCTranslate2(const Weights& weights) {
  return Ask(weights.device(), [&] {
    TrialTruth truth;
    truth.rows = MakeRows(weights);
    const auto library = LibraryOf(weights);
    FollowGreedily(weights, *library, &truth.rows);
    if (weights.target().size() >= 4) {  // else there are too few candidates
      truth.beams = BeamTrialRow{MakeBeamRow(weights), {}};
      SearchWithTwoBeams(*library, &*truth.beams);
    }
    return truth;
  });
}

TrialTruth AskAtFloat32(const Weights& weights, const TrialTruth& truth) {
  return Ask(weights.device(), [&] {
    const Weights exact(weights.directory(), weights.device(), "float32");
    const auto library = LibraryOf(exact);
    TrialTruth found = truth;
    for (TrialRow& row : found.rows) {
      const auto& chosen = row.truth.chosen;  // the last one is not fed
      for (size_t i = 0; i + 1 < chosen.size(); ++i) row.row.prefix.push_back(chosen[i]);
    }
    FollowGreedily(exact, *library, &found.rows);
    if (found.beams) SearchWithTwoBeams(*library, &*found.beams);
    return found;
  });
}

void RefuseTrial(const std::string& what) {
  throw Error(ErrorCode::kUnsupported,
              "the decode loop does not agree with CTranslate2 in a trial of this model: " + what);
}

}  // namespace ct2triton
