// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/top_candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ct2triton {
namespace {

bool IsBetter(const Candidate& a, const Candidate& b) { return a.score > b.score; }

// The best candidates so far, best first.
class Best {
 public:
  explicit Best(size_t count) : count_(count) { candidates_.reserve(count + 1); }

  bool full() const { return candidates_.size() == count_; }
  float least() const { return candidates_.back().score; }
  void Add(const Candidate& candidate) {
    const auto behind =
        std::upper_bound(candidates_.begin(), candidates_.end(), candidate, IsBetter);
    candidates_.insert(behind, candidate);
    if (candidates_.size() > count_) candidates_.pop_back();
  }
  std::vector<Candidate> Take() { return std::move(candidates_); }

 private:
  const size_t count_;
  std::vector<Candidate> candidates_;
};

// Written so that a compiler vectorizes it.
bool AnyAbove(const float* values, size_t count, float added, float least) {
  int any = 0;
  for (size_t i = 0; i < count; ++i) any |= static_cast<int>(values[i] + added > least);
  return any != 0;
}

void Scan(const BeamScores& beam, size_t index, size_t outputs, Best* best) {
  constexpr size_t kBlock = 64;
  for (size_t begin = 0; begin < outputs; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, outputs);
    const float* values = beam.log_probabilities + begin;
    if (best->full() && !AnyAbove(values, end - begin, beam.score, best->least())) continue;
    for (size_t i = begin; i < end; ++i) {
      const float score = beam.log_probabilities[i] + beam.score;
      if (best->full() && !(score > best->least())) continue;
      best->Add({score, index, static_cast<int32_t>(i)});
    }
  }
}

// In the order of ops::TopK.
std::vector<Candidate> InOrderOfTopK(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count) {
  std::vector<float> scores;
  scores.reserve(beams.size() * outputs);
  for (const BeamScores& beam : beams) {
    for (size_t i = 0; i < outputs; ++i) {
      scores.push_back(beam.log_probabilities[i] + beam.score);
    }
  }
  std::vector<int32_t> places(scores.size());
  std::iota(places.begin(), places.end(), 0);
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(places.begin(), middle, places.end(), [&scores](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  std::vector<Candidate> candidates;
  for (auto place = places.begin(); place != middle; ++place) {
    const auto at = static_cast<size_t>(*place);
    candidates.push_back({scores[at], at / outputs, static_cast<int32_t>(at % outputs)});
  }
  return candidates;
}

// Log totals differ by a few units in the last place from those of CTranslate2's log-softmax, and a
// sum of scores rounds once more.
bool Apart(const Candidate& better, const Candidate& worse) {
  constexpr float kRounding = 1e-6F;
  constexpr float kLogTotal = 8;
  const float near = kRounding * std::max(kLogTotal, std::fabs(better.score));
  return better.score - worse.score > near;  // false for NaN
}

}  // namespace

std::vector<Candidate> TopCandidates(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count) {
  constexpr size_t kMany = 256;  // too many to insert one by one
  if (count > kMany) return InOrderOfTopK(beams, outputs, count);
  Best best(count + 1);  // one more, to detect a tie with the last
  for (size_t i = 0; i < beams.size(); ++i) Scan(beams[i], i, outputs, &best);
  std::vector<Candidate> candidates = best.Take();
  const auto equal = [](const Candidate& a, const Candidate& b) { return a.score == b.score; };
  if (std::adjacent_find(candidates.begin(), candidates.end(), equal) != candidates.end()) {
    return InOrderOfTopK(beams, outputs, count);
  }
  candidates.resize(std::min(count, candidates.size()));
  return candidates;
}

std::optional<std::vector<Candidate>> TopOfBest(const std::vector<BestOutputs>& beams,
                                                const std::vector<float>& scores, size_t count) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < beams.size(); ++i) {
    if (beams[i].count < OutputsToTell(count)) return std::nullopt;
    for (size_t k = 0; k < beams[i].count; ++k) {
      const auto& [logit, output] = beams[i].top[k];
      candidates.push_back({logit - beams[i].log_total + scores[i], i, output});
      if (!std::isfinite(candidates.back().score)) return std::nullopt;
    }
  }
  const auto behind = candidates.begin() + static_cast<std::ptrdiff_t>(OutputsToTell(count));
  std::partial_sort(candidates.begin(), behind, candidates.end(), IsBetter);
  for (auto worse = candidates.begin() + 1; worse != behind; ++worse) {
    if (!Apart(*(worse - 1), *worse)) return std::nullopt;
  }
  candidates.resize(count);
  return candidates;
}

}  // namespace ct2triton
