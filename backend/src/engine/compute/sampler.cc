// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/compute/random_stream.h"

namespace ct2triton {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Converts scores to probabilities, up to a common factor.
void Exponentiate(std::vector<float>* scores) {
  const float most = *std::max_element(scores->begin(), scores->end());
  for (float& score : *scores) score = std::exp(score - most);
}

std::vector<float> ScoresOf(const std::vector<Candidate>& candidates) {
  std::vector<float> scores;
  scores.reserve(candidates.size());
  for (const Candidate& candidate : candidates) scores.push_back(candidate.score);
  return scores;
}

std::vector<float> AllScores(const std::vector<BeamScores>& beams, size_t outputs) {
  std::vector<float> scores;
  scores.reserve(beams.size() * outputs);
  for (const BeamScores& beam : beams) {
    for (size_t i = 0; i < outputs; ++i) scores.push_back(beam.log_probabilities[i] + beam.score);
  }
  return scores;
}

}  // namespace

Sampler::Sampler(const DecodingOptions& options, uint64_t key)
    : topk_(static_cast<size_t>(options.sampling_topk)),
      topp_(options.sampling_topp),
      temperature_(options.sampling_temperature),
      key_(key) {}

Sampler Sampler::OfSequence(size_t index) const {
  Sampler other = *this;
  other.key_ = MixedKey(key_, index);
  return other;
}

size_t Sampler::One(const float* scores, size_t outputs, size_t step) const {
  std::vector<Candidate> best;
  if (ChoosesAmongBest(outputs)) best = TopCandidates({{scores, 0}}, outputs, topk_);
  auto weights =
      Adjusted(best.empty() ? std::vector<float>(scores, scores + outputs) : ScoresOf(best));
  Exponentiate(&weights);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double drawn = RandomStream(MixedKey(key_, step)).Next() * total;
  double sum = 0;
  size_t place = 0;
  for (; place + 1 < weights.size(); ++place) {
    sum += weights[place];
    if (sum >= drawn && weights[place] > 0) break;
  }
  return best.empty() ? place : static_cast<size_t>(best[place].output);
}

std::vector<Candidate> Sampler::Several(const std::vector<BeamScores>& beams, size_t outputs,
                                        size_t count, size_t step) const {
  std::vector<Candidate> best;
  if (ChoosesAmongBest(beams.size() * outputs)) best = TopCandidates(beams, outputs, topk_);
  const auto scores = best.empty() ? AllScores(beams, outputs) : ScoresOf(best);
  auto noisy = Adjusted(scores);
  RandomStream random(MixedKey(key_, step));
  for (float& score : noisy) score -= static_cast<float>(std::log(random.Next()));
  std::vector<Candidate> drawn;
  for (const Candidate& chosen : TopCandidates({{noisy.data(), 0}}, noisy.size(), count)) {
    const auto place = static_cast<size_t>(chosen.output);
    drawn.push_back(best.empty() ? Candidate{scores[place], place / outputs,
                                             static_cast<int32_t>(place % outputs)}
                                 : best[place]);
  }
  return drawn;
}

std::vector<float> Sampler::Adjusted(std::vector<float> scores) const {
  if (temperature_ != 1) {
    for (float& score : scores) score *= 1 / temperature_;
  }
  if (topp_ < 1) KeepMostProbable(&scores);
  return scores;
}

void Sampler::KeepMostProbable(std::vector<float>* scores) const {
  std::vector<float> probabilities = *scores;
  Exponentiate(&probabilities);
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  std::vector<size_t> places(scores->size());  // a heap of those that may still be kept
  std::iota(places.begin(), places.end(), 0);
  const auto less_probable = [&](size_t a, size_t b) {
    return probabilities[a] < probabilities[b];
  };
  std::make_heap(places.begin(), places.end(), less_probable);
  auto left = places.end();
  for (double sum = 0; left != places.begin() && sum < topp_ * total;) {
    std::pop_heap(places.begin(), left--, less_probable);
    sum += probabilities[*left];
  }
  std::for_each(places.begin(), left, [&](size_t place) { (*scores)[place] = kNever; });
}

}  // namespace ct2triton
