// SPDX-License-Identifier: Apache-2.0
// Chooses the next token by the rules of its sequence, which apply in CTranslate2's order
// (engine/search/search_rules.h).
#pragma once

#include "attention.cuh"

namespace ct2triton::gpu {

constexpr float kDisabled = kLowest;  // logit of a forbidden output
constexpr int kNoOutput = 0x7fffffff;  // of no candidate, so it sorts last

// Candidates are sorted by value; of equal values the lower output comes first.
struct Ranked {
  float value;
  int output;
};

__device__ inline bool IsBefore(const Ranked& a, const Ranked& b) {
  return a.value > b.value || (a.value == b.value && a.output < b.output);
}

__device__ inline Ranked FirstOfWarp(Ranked best) {
  for (int i = 16; i > 0; i /= 2) {
    const Ranked other = {__shfl_xor_sync(~0U, best.value, i),
                          __shfl_xor_sync(~0U, best.output, i)};
    if (IsBefore(other, best)) best = other;
  }
  return best;
}

struct ScanShared {
  float logits[kChunk];
  unsigned char seen[kChunk];
  float of_warp[kThreads / 32];
  Ranked best_of_warp[kThreads / 32];
};

__device__ inline Ranked FirstOfBlock(Ranked best, Ranked* of_warp) {
  best = FirstOfWarp(best);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
  __syncthreads();
  best = of_warp[0];
  for (int w = 1; w < kThreads / 32; ++w) {
    if (IsBefore(of_warp[w], best)) best = of_warp[w];
  }
  return best;
}

// Applies minimum length, repetition penalty and forbidden outputs.
__device__ inline void ApplyRule(const Rule& rule, const int* before, int length, int first,
                                 int count, ScanShared* s) {
  const auto disable = [&](const int* listed, int n) {
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const int place = listed[i] - first;
      if (place >= 0 && place < count) s->logits[place] = kDisabled;
    }
  };
  if (length < rule.min_length) disable(rule.listed, rule.ends);
  if (rule.penalty != 1) {
    for (int i = threadIdx.x; i < count; i += kThreads) s->seen[i] = 0;
    __syncthreads();
    for (int i = rule.unseen + threadIdx.x; i < length; i += kThreads) {
      const int place = before[i] - first;
      if (place >= 0 && place < count) s->seen[place] = 1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) {
      float& logit = s->logits[i];
      if (s->seen[i] != 0) logit = logit < 0 ? logit * rule.penalty : logit / rule.penalty;
    }
  }
  __syncthreads();
  disable(rule.listed + rule.ends, rule.forbidden);
}

// Each block finds the best of kChunk logits of an output and sums their exponentials.
__device__ inline void Scan(const ChoiceArgs& a) {
  static_assert(sizeof(ScanShared) == kScanSharedBytes, "see args.h");
  auto& s = Shared<ScanShared>();
  const int part = blockIdx.x, output = blockIdx.y, row = a.output_rows[output];
  const int length = a.rows.position[row];
  if (length < 0) return;
  const int sequence = a.rows.sequence[row];
  const Rule& rule = a.rules[sequence];
  const int first = part * kChunk, count = min(kChunk, a.n - first);
  float* logits = a.logits + static_cast<size_t>(output) * a.stride + first;
  for (int i = threadIdx.x; i < count; i += kThreads) s.logits[i] = logits[i];
  __syncthreads();
  ApplyRule(rule, a.history + static_cast<size_t>(sequence) * a.history_stride, length, first,
            count, &s);
  __syncthreads();
  const size_t place = static_cast<size_t>(output) * a.parts + part;
  Ranked last = {Infinity(), -1};
  float most = 0;
  for (int i = 0; i < rule.candidates; ++i) {
    Ranked best = {-Infinity(), kNoOutput};
    for (int j = threadIdx.x; j < count; j += kThreads) {
      const Ranked one = {s.logits[j], first + j};
      if (IsBefore(last, one) && IsBefore(one, best)) best = one;
    }
    last = FirstOfBlock(best, s.best_of_warp);
    if (i == 0) most = last.value;
    if (threadIdx.x == 0) {
      a.part_value[place * kMostCandidates + i] = last.value;
      a.part_output[place * kMostCandidates + i] = last.output;
    }
  }
  float total = 0, drawn = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const float less = s.logits[i] - most;
    total += expf(less);
    if (rule.draws != 0) drawn += expf(less / rule.temperature);
    if (rule.draws != 0 || rule.favored >= 0) logits[i] = s.logits[i];
  }
  total = OfBlock<false>(total, s.of_warp);
  drawn = OfBlock<false>(drawn, s.of_warp);
  if (threadIdx.x != 0) return;
  a.part_most[place] = most;
  a.part_total[place] = total;
  a.part_drawn[place] = drawn;
}

// The generator of engine/compute/random_stream.h, on the device.
__device__ inline unsigned long long Scrambled(unsigned long long bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBULL;
  return bits ^ (bits >> 31);
}

// The first number of RandomStream(MixedKey(key, step)), uniform in (0, 1].
__device__ inline double RandomNumber(unsigned long long key, int step) {
  constexpr unsigned long long kIncrement = 0x9E3779B97F4A7C15ULL;
  const unsigned long long state =
      Scrambled(Scrambled(key + kIncrement) + static_cast<unsigned long long>(step));
  return static_cast<double>((Scrambled(state + kIncrement) >> 11) + 1) * (1.0 / (1ULL << 53));
}

// Samples one of the most probable candidates that together reach top_p, by its weight, as
// Sampler::One does. `best` is sorted, best first.
__device__ inline int DrawOfBest(const Rule& rule, const Ranked* best, int count, int step) {
  const float warmth = 1 / rule.temperature;
  const auto weight = [&](int i) { return expf(best[i].value * warmth - best[0].value * warmth); };
  double total = 0;
  for (int i = 0; i < count; ++i) total += weight(i);
  if (rule.top_p < 1) {
    const double enough = rule.top_p * total;
    int kept = 0;
    double sum = 0;
    while (kept < count && sum < enough) sum += weight(kept++);
    count = kept;
    total = sum;
  }
  const double drawn = RandomNumber(rule.key, step) * total;
  double sum = 0;
  int place = 0;
  for (; place + 1 < count; ++place) {
    sum += weight(place);
    if (sum >= drawn) break;
  }
  return best[place].output;
}

// Samples from all outputs, in one thread: first a part, then an output in it.
__device__ inline int DrawOfAll(const ChoiceArgs& a, const Rule& rule, int output, float most,
                                int step) {
  const size_t line = static_cast<size_t>(output) * a.parts;
  const auto of_part = [&](int i) {
    const float share = expf((a.part_most[line + i] - most) / rule.temperature);
    return static_cast<double>(a.part_drawn[line + i]) * share;
  };
  double total = 0, before = 0;
  for (int i = 0; i < a.parts; ++i) total += of_part(i);
  const double drawn = RandomNumber(rule.key, step) * total;
  int part = 0;
  for (; part + 1 < a.parts; ++part) {
    const double share = of_part(part);
    if (before + share >= drawn) break;
    before += share;
  }
  const int end = min(a.n, (part + 1) * kChunk);
  const float* logits = a.logits + static_cast<size_t>(output) * a.stride;
  int place = part * kChunk;
  for (; place + 1 < end; ++place) {
    before += expf((logits[place] - most) / rule.temperature);
    if (before >= drawn && logits[place] > kDisabled) break;
  }
  return place;
}

// The bias lowers all other outputs equally, so only the best of them can win (DraftBias).
__device__ inline Ranked Biased(const Rule& rule, Ranked best, float of_draft) {
  const Ranked draft = {logf(expf(of_draft) * (1 - rule.bias) + rule.bias), rule.favored};
  if (best.output == draft.output) return draft;
  best.value += log1pf(-rule.bias);
  return IsBefore(best, draft) ? best : draft;
}

struct ChooseShared {
  Ranked best[kMostCandidates];
};

// Merges the candidates of all parts of an output, in one warp; returns how many there are.
__device__ inline int JoinParts(const ChoiceArgs& a, int output, int wanted, Ranked* best) {
  const size_t line = static_cast<size_t>(output) * a.parts;
  Ranked last = {Infinity(), -1};
  int found = 0;
  for (; found < wanted; ++found) {
    Ranked mine = {-Infinity(), kNoOutput};
    for (int i = threadIdx.x; i < a.parts * wanted; i += 32) {
      const size_t place = (line + i / wanted) * kMostCandidates + i % wanted;
      const Ranked one = {a.part_value[place], a.part_output[place]};
      if (IsBefore(last, one) && IsBefore(one, mine)) mine = one;
    }
    last = FirstOfWarp(mine);
    if (last.output == kNoOutput) break;
    if (threadIdx.x == 0) best[found] = last;
  }
  __syncwarp();
  return found;
}

// Appends the output to the sequence, which continues with it or ends.
__device__ inline void GoOn(const ChoiceArgs& a, const Rule& rule, int sequence, int length,
                            int output) {
  a.history[static_cast<size_t>(sequence) * a.history_stride + length] = output;
  bool ends = length + 1 >= rule.limit;
  for (int i = 0; i < rule.ends; ++i) ends = ends || rule.listed[i] == output;
  a.next[sequence] = {rule.ids == nullptr ? output : rule.ids[output], ends ? -1 : length + 1};
}

__device__ inline void Choose(const ChoiceArgs& a) {
  static_assert(sizeof(ChooseShared) == kChooseSharedBytes, "see args.h");
  auto& s = Shared<ChooseShared>();
  const int output = blockIdx.x, row = a.output_rows[output], length = a.rows.position[row];
  if (length < 0) {
    if (threadIdx.x == 0) a.chosen[output].output = -1;
    return;
  }
  const int sequence = a.rows.sequence[row];
  const Rule& rule = a.rules[sequence];
  const int count = JoinParts(a, output, rule.candidates, s.best);
  const size_t line = static_cast<size_t>(output) * a.parts;
  const float most = count > 0 ? s.best[0].value : 0;
  float total = 0;
  for (int i = threadIdx.x; i < a.parts; i += 32) {
    total += a.part_total[line + i] * expf(a.part_most[line + i] - most);
  }
  const float log_total = most + logf(SumOf<32>(total));
  for (int i = threadIdx.x; i < rule.candidates; i += 32) {
    const size_t place = static_cast<size_t>(output) * kMostCandidates + i;
    a.candidate[place] = {-1, -Infinity()};
    if (i < count) a.candidate[place] = {s.best[i].output, s.best[i].value - log_total};
  }
  if (threadIdx.x != 0) return;
  const float* logits = a.logits + static_cast<size_t>(output) * a.stride;
  Ranked chosen = {most - log_total, count > 0 ? s.best[0].output : -1};
  if (count > 0 && rule.draws != 0) {
    chosen.output = rule.top_k == 0 ? DrawOfAll(a, rule, output, most, length)
                                    : DrawOfBest(rule, s.best, count, length);
    chosen.value = logits[chosen.output] - log_total;
  } else if (count > 0 && rule.favored >= 0) {
    chosen = Biased(rule, chosen, logits[rule.favored] - log_total);
  }
  a.chosen[output].output = chosen.output;
  a.chosen[output].log_probability = chosen.value;
  if (rule.limit > 0 && chosen.output >= 0) GoOn(a, rule, sequence, length, chosen.output);
}

}  // namespace ct2triton::gpu
