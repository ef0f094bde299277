// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/top_candidates.h"

#include <algorithm>
#include <numeric>

namespace ct2triton {
namespace {

bool IsBetter(const Candidate& a, const Candidate& b) { return a.score > b.score; }

// Those that were best so far, best first.
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

// Written so that a compiler looks at many values at once.
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

// As ops::TopK does it.
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

}  // namespace

std::vector<Candidate> TopCandidates(const std::vector<BeamScores>& beams, size_t outputs,
                                     size_t count) {
  constexpr size_t kMany = 256;  // to insert one by one
  if (count > kMany) return InOrderOfTopK(beams, outputs, count);
  Best best(count + 1);  // one more, to see whether it is as good as the last
  for (size_t i = 0; i < beams.size(); ++i) Scan(beams[i], i, outputs, &best);
  std::vector<Candidate> candidates = best.Take();
  const auto equal = [](const Candidate& a, const Candidate& b) { return a.score == b.score; };
  if (std::adjacent_find(candidates.begin(), candidates.end(), equal) != candidates.end()) {
    return InOrderOfTopK(beams, outputs, count);
  }
  candidates.resize(std::min(count, candidates.size()));
  return candidates;
}

}  // namespace ct2triton
