// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/step_times.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "engine/model/weights.h"
#include "engine/search/search_options.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

constexpr size_t kRounds = 2;  // apart in time, so that other work of the machine may end
// A tile's processor time from which on one round is enough: disturbances are short beside it, and
// such a large model takes long to load anyway.
constexpr double kLongTile_ns = 50'000'000;
constexpr size_t kLeastSteps = 3;
constexpr size_t kMostSteps = 10;
constexpr uint64_t kEnough_ns = 10'000'000;  // of processor time per loop and number of rows
constexpr uint64_t kEnoughEncoding_ns = 100'000'000;  // of processor time
constexpr size_t kGrowth = 4;                         // factor from one number of loops to the next
constexpr int64_t kTokens = 2 * kMostSteps + 2;
constexpr int64_t kSourceTokens = 32;  // on average over steps, where long sources are more often

// Other work of this process, in cores, from which on it disturbs a measurement: other models load,
// or translate. One that is measured 1.5 to 2.5 times too slow may get one loop where two are
// better, for as long as it is loaded.
constexpr double kMostOther = 0.125;
constexpr uint64_t kOfThreads_ns = 1'000'000;     // that starting and joining threads may take
constexpr uint64_t kPatience_ns = 2'000'000'000;  // to wait until there is none
constexpr std::chrono::milliseconds kPause{50};   // between looks whether there is any

uint64_t Time_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t ThreadTime_ns() { return Time_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t ProcessTime_ns() { return Time_ns(CLOCK_PROCESS_CPUTIME_ID); }

double Nth(std::vector<double> values, size_t n) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(n);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  return Nth(std::move(values), middle);
}

// Step times for one number of loops.
struct Measured {
  double one_row_ns = std::numeric_limits<double>::infinity();
  double tile_ns = std::numeric_limits<double>::infinity();

  void KeepShorter(const Measured& other) {
    one_row_ns = std::min(one_row_ns, other.one_row_ns);
    tile_ns = std::min(tile_ns, other.tile_ns);
  }
};

// Those for several, and the other work meanwhile, in cores.
struct Round {
  std::map<size_t, Measured> by_loops;
  double other = 0;

  const Measured& alone() const { return by_loops.at(1); }
  bool disturbed() const { return other > kMostOther; }
};

// How many cores the process uses from now on, beside what is told.
class OtherWork {
 public:
  double Cores(uint64_t own_ns) const {
    const uint64_t all_ns = ProcessTime_ns() - process_ns_;
    const auto wall_ns = static_cast<double>(std::max<uint64_t>(1, SteadyNow_ns() - start_ns_));
    const uint64_t mine_ns = own_ns + kOfThreads_ns;
    return all_ns <= mine_ns ? 0 : static_cast<double>(all_ns - mine_ns) / wall_ns;
  }

 private:
  const uint64_t start_ns_ = SteadyNow_ns();
  const uint64_t process_ns_ = ProcessTime_ns();
};

// Waits until this process does little. False if it does more until the given time.
bool WaitForQuiet(uint64_t until_ns) {
  while (SteadyNow_ns() < until_ns) {
    const OtherWork other;
    std::this_thread::sleep_for(kPause);
    if (other.Cores(0) <= kMostOther) return true;
  }
  return false;
}

// Greedy rows that end only at their limit, after the measured steps. Each has a source of its own,
// because attention to one source is nearly free for a second row. None if no source fits.
std::vector<CheckedRow> MakeRows(const Weights& weights) {
  DecodingOptions options;
  options.beam_size = 1;
  CheckedRow row;
  row.limit_tokens = std::min(kTokens, weights.target_positions().value_or(kTokens));
  options.min_decoding_length = options.max_decoding_length = row.limit_tokens;
  row.search = std::make_shared<const SearchOptions>(options, weights);
  row.options = {row.search, &row.search->options()};
  const int64_t most = weights.source_positions().value_or(kSourceTokens + 2);
  const int64_t tokens = std::min(kSourceTokens, most - weights.added_source_tokens());
  if (tokens < 1) return {};
  row.source.assign(static_cast<size_t>(tokens), static_cast<int64_t>(weights.source().size() / 2));
  if (weights.NeedsPrefix()) {
    row.prefix.push_back(static_cast<int64_t>(weights.target().size() / 2));
  }
  std::vector<CheckedRow> rows(kMeasuredRows, row);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].source[0] = static_cast<int64_t>(i % weights.source().size());
  }
  return rows;
}

// Encodes the sources one by one, which takes less memory than all at once. In a large model, whose
// attention is a small part of a step, the first ones serve all rows.
std::vector<const CheckedRow*> Encode(std::vector<CheckedRow>* rows, LoopEngine* loop) {
  const uint64_t start_ns = ThreadTime_ns();
  std::vector<const CheckedRow*> encoded;
  size_t sources = 0;
  for (CheckedRow& row : *rows) {
    if (sources == 0 || ThreadTime_ns() - start_ns < kEnoughEncoding_ns) {
      ++sources;
    } else {
      row.source = (*rows)[encoded.size() % sources].source;
    }
    loop->Admit({&row});
    encoded.push_back(&row);
  }
  return encoded;
}

// A barrier for the measuring threads, so that all step at the same time.
class Meeting {
 public:
  explicit Meeting(size_t threads) : threads_(threads) {}
  void Wait() noexcept {
    const size_t round = came_++ / threads_ + 1;
    while (came_ < round * threads_) std::this_thread::yield();
  }

 private:
  const size_t threads_;
  std::atomic<size_t> came_{0};
};

// A measured loop, on a thread of its own.
class MeasuredLoop {
 public:
  MeasuredLoop(const std::vector<const CheckedRow*>& rows, std::unique_ptr<LoopEngine> loop)
      : rows_(rows), loop_(std::move(loop)) {}

  void Run(Meeting* meeting) noexcept {
    const auto second = rows_.begin() + 1;
    Try([&] { loop_->Admit({rows_.begin(), second}), loop_->Step(&listener_); });
    meeting->Wait();
    Try([&] { one_row_ns_ = StepTime_ns(); });
    meeting->Wait();
    Try([&] { loop_->Admit({second, rows_.end()}), loop_->Step(&listener_); });
    meeting->Wait();
    Try([&] { tile_ns_ = StepTime_ns(); });
    spent_ns_ = ThreadTime_ns();
  }
  bool failed() const { return failed_ || one_row_ns_ <= 0 || tile_ns_ <= 0; }
  double one_row_ns() const { return one_row_ns_; }
  double tile_ns() const { return tile_ns_; }
  uint64_t spent_ns() const { return spent_ns_; }

 private:
  template <class Action>
  void Try(const Action& action) noexcept {
    if (failed_) return;
    try {
      action();
    } catch (...) {
      failed_ = true;
    }
  }
  // 0 if the rows end before.
  double StepTime_ns() {
    std::vector<double> times;
    uint64_t all_ns = 0;
    while (times.size() < kLeastSteps || (times.size() < kMostSteps && all_ns < kEnough_ns)) {
      if (loop_->running() == 0) return 0;
      const uint64_t start_ns = ThreadTime_ns();
      loop_->Step(&listener_);
      const uint64_t step_ns = ThreadTime_ns() - start_ns;
      times.push_back(static_cast<double>(step_ns));
      all_ns += step_ns;
    }
    return UndisturbedStep_ns(std::move(times));
  }

  const std::vector<const CheckedRow*>& rows_;
  const std::unique_ptr<LoopEngine> loop_;
  LoopListener listener_;
  double one_row_ns_ = 0;
  double tile_ns_ = 0;
  uint64_t spent_ns_ = 0;  // by its thread
  bool failed_ = false;
};

// Adds to a round. False if a loop failed. Throws std::system_error if threads cannot be started.
bool Measure(std::list<MeasuredLoop>* loops, Round* round) {
  const OtherWork other;
  uint64_t own_ns = 0;
  Meeting meeting(loops->size());
  std::vector<std::thread> threads;
  threads.reserve(loops->size());
  std::atomic<int> start{0};  // 1: all threads run; -1: they cannot be started
  const auto run = [&](MeasuredLoop* loop) {
    while (start == 0) std::this_thread::yield();
    if (start > 0) loop->Run(&meeting);
  };
  try {
    for (auto& loop : *loops) threads.emplace_back(run, &loop);
    start = 1;
  } catch (...) {
    start = -1;
    for (auto& thread : threads) thread.join();
    throw;
  }
  for (auto& thread : threads) thread.join();
  std::vector<double> one_row, tile;
  for (const MeasuredLoop& loop : *loops) {
    if (loop.failed()) return false;
    own_ns += loop.spent_ns();
    one_row.push_back(loop.one_row_ns());
    tile.push_back(loop.tile_ns());
  }
  round->other = std::max(round->other, other.Cores(own_ns));
  round->by_loops[loops->size()] = {Median(std::move(one_row)), Median(std::move(tile))};
  return true;
}

// One, four, ..., and one on each core, and one on each thread.
std::set<size_t> LoopNumbers(const Cores& cores) {
  std::set<size_t> numbers = {1, cores.physical, cores.threads};
  for (size_t loops = 1; loops < cores.threads; loops *= kGrowth) numbers.insert(loops);
  return numbers;
}

// Nothing if a loop failed.
std::optional<Round> MeasureRound(const std::vector<const CheckedRow*>& rows, const Cores& cores,
                                  const NewLoop& new_loop) {
  Round round;
  for (const size_t count : LoopNumbers(cores)) {
    std::list<MeasuredLoop> loops;
    while (loops.size() < count) loops.emplace_back(rows, new_loop());
    if (!Measure(&loops, &round)) return std::nullopt;
  }
  return round;
}

// Undisturbed rounds, or the least disturbed one until there are any.
void Keep(Round round, std::vector<Round>* rounds) {
  if (!rounds->empty() && rounds->back().disturbed()) {
    if (round.other >= rounds->back().other) return;
    rounds->clear();
  }
  if (rounds->empty() || !round.disturbed()) rounds->push_back(std::move(round));
}

bool Suffice(const std::vector<Round>& rounds) {
  if (rounds.back().disturbed()) return false;
  return rounds.size() >= kRounds || rounds.back().alone().tile_ns >= kLongTile_ns;
}

// How much longer steps are beside other loops is compared within a round, whose parts are near in
// time, and the least of the rounds counts: other machines' work on the same processor may make the
// same step half as long again for seconds, and a loop too few costs more than one too many.
StepTimes TimesOf(const std::vector<Round>& rounds) {
  Measured alone;
  std::map<size_t, Measured> factors;
  for (const Round& round : rounds) {
    alone.KeepShorter(round.alone());
    for (const auto& [count, of] : round.by_loops) {
      factors[count].KeepShorter(
          {of.one_row_ns / round.alone().one_row_ns, of.tile_ns / round.alone().tile_ns});
    }
  }
  StepTimes times;
  double one_row_ns = alone.one_row_ns;
  double tile_ns = alone.tile_ns;
  for (const auto& [count, factor] : factors) {  // beside more loops, a step is never shorter
    one_row_ns = std::max(one_row_ns, alone.one_row_ns * factor.one_row_ns);
    tile_ns = std::max(tile_ns, alone.tile_ns * factor.tile_ns);
    times.push_back(
        {count, one_row_ns, std::max(0.0, (tile_ns - one_row_ns) / (kMeasuredRows - 1))});
  }
  return times;
}

}  // namespace

// Not the minimum, because the last steps of a loop may run alone after the others have ended.
double UndisturbedStep_ns(std::vector<double> times_ns) {
  const size_t quarter = (times_ns.size() - 1) / 4;
  return Nth(std::move(times_ns), quarter);
}

StepTimes MeasureSteps(const Weights& weights, const Cores& cores,
                       const NewLoop& new_loop) noexcept {
  try {
    std::vector<CheckedRow> made = MakeRows(weights);
    if (made.empty()) return {};
    const uint64_t until_ns = SteadyNow_ns() + kPatience_ns;
    // Models load side by side. While one is measured or waits for that, no other is.
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    const auto keeper = new_loop();  // of the encodings, so that they are made once
    const std::vector<const CheckedRow*> rows = Encode(&made, keeper.get());
    std::vector<Round> rounds;
    bool disturbed = false;
    do {
      std::optional<Round> round = MeasureRound(rows, cores, new_loop);
      if (!round) return {};
      disturbed = round->disturbed();
      Keep(std::move(*round), &rounds);
    } while (!Suffice(rounds) && (!disturbed || WaitForQuiet(until_ns)));
    return TimesOf(rounds);
  } catch (...) {  // no memory or no threads: step times stay unknown
    return {};
  }
}

}  // namespace ct2triton
