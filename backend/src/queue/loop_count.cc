// SPDX-License-Identifier: Apache-2.0
#include "queue/loop_count.h"

#include <algorithm>

namespace ct2triton {
namespace {

// Another loop must shorten steps by at least this factor to be worth its memory reads.
constexpr double kWorthwhile = 1.02;
// Steps that get longer by less than this factor beside other loops count as equally long. Virtual
// machines showed such differences where there were none, and a loop too few cost 16 clients 0.28
// of the throughput; one too many costs a few rows at most this factor.
constexpr double kNoise = 1.35;
// What a further row takes at least, of a step of one row alone. Its own keys and values are 1/40
// of the weights of a small model after a usual sentence, and it multiplies them all. Where the
// processor's memory is slow for a moment, a row seems to take as long as a tile: then one loop had
// all rows, for as long as the model was loaded.
constexpr double kLeastFurther = 1.0 / 32;

// Part of a step that helping threads do not share. Two threads compute a step of few rows in 0.6
// of the time of one (transformer-base, int8), not in 0.75. But the idle cores encode meanwhile,
// which several loops do by themselves, and rows that only seem to cost nothing must not get one
// loop.
constexpr double kNotShared = 0.5;

// Time of a step when `loops` loops run at once, interpolated between the measured numbers of
// loops. Once a shared resource is exhausted, the time grows with the number of loops.
StepTime At(const StepTimes& times, size_t loops) {
  const auto above =
      std::lower_bound(times.begin(), times.end(), loops,
                       [](const StepTime& time, size_t number) { return time.loops < number; });
  if (above == times.end()) return times.back();
  if (above == times.begin()) return *above;
  const StepTime& below = *(above - 1);
  const double part = static_cast<double>(loops) / static_cast<double>(above->loops);
  return {loops, std::max(below.first_row_ns, part * above->first_row_ns),
          std::max(below.further_row_ns, part * above->further_row_ns)};
}

// Running beside other loops never makes a step shorter. What was measured is compared, steps of
// one row and of a tile of rows, because noise may be most of their difference.
StepTimes WithoutNoise(StepTimes times) {
  constexpr double kFurther = kMeasuredRows - 1;
  const auto tile_ns = [](const StepTime& time) {
    return time.first_row_ns + kFurther * time.further_row_ns;
  };
  const double least_ns = kLeastFurther * times[0].first_row_ns;
  times[0].further_row_ns = std::max(least_ns, times[0].further_row_ns);
  const StepTime alone = times[0];
  for (size_t i = 1; i < times.size(); ++i) {
    StepTime& now = times[i];
    const StepTime& before = times[i - 1];
    const bool noise =
        now.first_row_ns < kNoise * alone.first_row_ns && tile_ns(now) < kNoise * tile_ns(alone);
    const double tile = std::max(tile_ns(before), noise ? 0 : tile_ns(now));
    now.first_row_ns = std::max(before.first_row_ns, noise ? 0 : now.first_row_ns);
    now.further_row_ns = std::max(least_ns, (tile - now.first_row_ns) / kFurther);
  }
  return times;
}

// [k]: time of a step when k + 1 loops run.
StepTimes OfEach(const StepTimes& measured, size_t most) {
  const StepTimes times = WithoutNoise(measured);
  StepTimes each;
  for (size_t loops = 1; loops <= most; ++loops) each.push_back(At(times, loops));
  return each;
}

// Part of a step's time that is left if the cores that have no loop help (Amdahl, 1967).
double PartOfHelped(size_t loops, const LoopCount::Help& help) {
  const double cores = static_cast<double>(help.cores) / static_cast<double>(loops);
  const double threads = std::clamp(cores, 1.0, static_cast<double>(help.threads));
  return kNotShared + (1 - kNotShared) / threads;
}

// The least time in which memory delivers the weights to one loop, as far as it was measured.
double Read_ns(const StepTimes& each) {
  double least_ns = each[0].first_row_ns;
  for (size_t loops = 2; loops <= each.size(); ++loops) {
    least_ns = std::min(least_ns, each[loops - 1].first_row_ns / static_cast<double>(loops));
  }
  return least_ns;
}

// The fewest loops whose steps are about as short as those of any number of loops.
size_t Best(const StepTimes& each, size_t rows, size_t max_sequences, const LoopCount::Help& help) {
  const size_t fewest = std::min(each.size(), (rows + max_sequences - 1) / max_sequences);
  const size_t most = std::min(each.size(), rows);
  const double read_ns = Read_ns(each);
  const auto step_ns = [&](size_t loops) {
    const StepTime& time = each[loops - 1];
    const double of_loop = static_cast<double>(rows) / static_cast<double>(loops);
    const double part = PartOfHelped(loops, help);
    return std::max(part * time.first_row_ns, static_cast<double>(loops) * read_ns) +
           part * time.further_row_ns * (of_loop - 1);
  };
  double shortest_ns = step_ns(fewest);
  for (size_t loops = fewest + 1; loops <= most; ++loops) {
    shortest_ns = std::min(shortest_ns, step_ns(loops));
  }
  size_t best = fewest;
  while (step_ns(best) > kWorthwhile * shortest_ns) ++best;
  return best;
}

}  // namespace

LoopCount::LoopCount(const StepTimes& times, size_t most, size_t max_sequences, const Help& help)
    : least_rows_(most, 1) {
  if (times.empty()) return;
  const StepTimes each = OfEach(times, most);
  for (size_t loops = 2; loops <= most; ++loops) {
    size_t below = least_rows_[loops - 2] - 1;  // below which this many loops do not pay
    size_t enough = std::max(below + 1, (loops - 1) * max_sequences + 1);
    while (below + 1 < enough) {
      const size_t rows = below + (enough - below) / 2;
      (Best(each, rows, max_sequences, help) >= loops ? enough : below) = rows;
    }
    least_rows_[loops - 1] = enough;
  }
}

size_t LoopCount::For(size_t rows) const noexcept {
  const auto beyond = std::upper_bound(least_rows_.begin(), least_rows_.end(), rows);
  return std::max<size_t>(1, static_cast<size_t>(beyond - least_rows_.begin()));
}

}  // namespace ct2triton
