// SPDX-License-Identifier: Apache-2.0
//
// Allocations fail, one at the worst moments, or all from any one on until a row is answered. On a
// worker's thread: every row is answered all the same, and the worker goes on. On a thread that
// hands rows over: nothing of them stays behind.
//
// out_of_memory <model directory>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loop/loop_engine.h"
#include "error.h"
#include "failing_memory.h"
#include "queue/translator.h"

namespace {

using namespace ct2triton;

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "out_of_memory: %s\n", what.c_str());
  std::abort();
}

constexpr int64_t kAnswerTokens = 8;

// When an allocation of the worker is to fail.
enum class Moment {
  kNever,
  kCounting,  // the rows of the call, for the statistics
  kCopying,   // the result, for the second who waits for an equal row, and what comes before
  kChoosing,  // the rows of the next call
};

class Observer : public RunObserver {
 public:
  void RunDone(const RunReport& report) noexcept override { counted += report.rows; }
  std::atomic<size_t> counted{0};
};

// One row and its answer.
class Client : public RowListener {
 public:
  // `allocation`: which one fails, counted from that moment on. `lasting`: and all after it.
  Client(Moment moment, Observer* observer, size_t allocation, bool lasting)
      : moment_(moment), observer_(observer), allocation_(allocation), lasting_(lasting) {}

  RunObserver* observer() const noexcept override {
    const bool first = std::exchange(uncounted_, false);
    if (first && moment_ == Moment::kCounting) Exhaust();
    return observer_;
  }
  // Asked before the call, and before each token: for the last time before it is answered.
  bool Cancelled() const noexcept override {
    if (moment_ == Moment::kCopying && ++asked_ == 1 + kAnswerTokens) Exhaust();
    return false;
  }
  void RowDone(size_t, RowResult result, const RunTimes&) noexcept override {
    never_failed_ = failing_memory::Restore();
    answer_.set_value(result.hypotheses.at(0).ids);
    if (moment_ == Moment::kChoosing) Exhaust();
  }
  void RowFailed(size_t, const Error& error, const RunTimes&) noexcept override {
    failing_memory::Restore();
    answer_.set_exception(std::make_exception_ptr(error));
  }

  Ids Wait() { return answer_.get_future().get(); }

  // No allocation failed before its answer, though one was to; once it is answered.
  bool never_failed() const { return never_failed_; }

  bool IsOutOfMemory() {
    try {
      Wait();
    } catch (const Error& error) {
      return std::string(error.what()) == OutOfMemory().what();
    }
    return false;
  }

 private:
  void Exhaust() const noexcept {
    failing_memory::FailFrom(allocation_, lasting_ ? failing_memory::kForEver : 1);
  }

  const Moment moment_;
  Observer* const observer_;
  const size_t allocation_;
  const bool lasting_;
  bool never_failed_ = false;
  mutable bool uncounted_ = true;
  mutable size_t asked_ = 0;
  std::promise<Ids> answer_;
};

struct World {
  World(const std::string& directory, const std::string& decoding, int64_t beams = 1,
        int64_t most_rows = 1)
      : translator(directory, Device{}, Decoding(beams), Engine(decoding, most_rows)) {}

  static DecodingOptions Decoding(int64_t beams) {
    DecodingOptions options;
    options.beam_size = beams;
    options.min_decoding_length = options.max_decoding_length = kAnswerTokens;
    return options;
  }
  static EngineOptions Engine(const std::string& decoding, int64_t most_rows) {
    EngineOptions engine;
    engine.decoding = decoding;
    engine.inter_threads = 1;
    engine.max_batch_rows = most_rows;
    return engine;
  }

  std::shared_ptr<Client> NewClient(Moment moment, size_t allocation = 1, bool lasting = false) {
    return std::make_shared<Client>(moment, &observer, allocation, lasting);
  }

  std::vector<CheckedRow> NewRows(const Ids& source, int64_t min_length = 0) const {
    DecodingOptions options = translator.model().defaults();
    if (min_length > 0) options.min_decoding_length = options.max_decoding_length = min_length;
    return translator.model().Check({RowInput{source, {}}}, &options);
  }

  std::shared_ptr<Client> Send(const Ids& source, Moment moment, int64_t min_length = 0,
                               size_t allocation = 1, bool lasting = false) {
    auto client = NewClient(moment, allocation, lasting);
    translator.Submit(NewRows(source, min_length), client);
    return client;
  }

  Observer observer;
  Translator translator;
};

const Ids kRow = {50, 60, 70, 2};
const Ids kOtherRow = {80, 90, 2};
constexpr int64_t kShort = 3;
constexpr int64_t kBusy = 10;   // tokens of a row that the worker is busy with
constexpr int64_t kLong = 100;  // keeps the one worker busy while more rows come

// False for a client whose answer was the lack of memory. There is no third way.
bool Answered(const std::shared_ptr<Client>& client, const Ids& truth) {
  try {
    Require(client->Wait() == truth, "a wrong answer");
    return true;
  } catch (const Error& error) {
    Require(std::string(error.what()) == OutOfMemory().what(), error.what());
    return false;
  }
}

// The rows of a call cannot be counted: they are answered.
void FailCounting(World* world, const Ids& truth) {
  const size_t before = world->observer.counted;
  Require(world->Send(kRow, Moment::kCounting)->Wait() == truth, "the answer was lost");
  Require(world->observer.counted == before, "nothing failed");
}

// The result of two equal rows cannot be made, or not be copied, while the call goes on: who gets
// no answer gets that error.
void FailCopying(World* world, const Ids& truth) {
  Require(truth.size() == kAnswerTokens, "the row ended before its limit");
  for (size_t allocation = 1;; ++allocation) {
    const auto busy = world->Send(kOtherRow, Moment::kNever, kLong);
    const auto first = world->Send(kRow, Moment::kCopying, 0, allocation);
    const auto second = world->Send(kRow, Moment::kNever);
    busy->Wait();
    if (!Answered(first, truth) | !Answered(second, truth)) continue;
    Require(allocation > 3, "nothing failed");
    return;
  }
}

// The next call cannot be put together: the row that waited longest pays for it, no other. Which
// allocation that is after an answer, is found out: those before it end the call that has answered.
void FailChoosing(World* world, const Ids& truth) {
  static size_t allocation = 1;
  for (; allocation < 1000; ++allocation) {
    const auto busy = world->Send(kOtherRow, Moment::kChoosing, kLong, allocation);
    const auto oldest = world->Send({99, 2}, Moment::kNever);
    const auto next = world->Send(kRow, Moment::kNever);
    busy->Wait();
    const bool failed = oldest->IsOutOfMemory();
    Require(next->Wait() == truth, "the next row did not get its answer");
    if (failed) return;
  }
  Require(false, "the oldest row was not answered so");
}

void WaitUntilForgotten(const std::shared_ptr<Client>& client) {
  for (size_t ms = 0; ms < 60'000 && client.use_count() > 1; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Require(client.use_count() == 1, "the row of a request that failed is kept");
}

// A row cannot be handed over, whichever of the allocations fails: while nothing else comes that
// would wake the worker, no part of it stays behind.
void FailSubmitting(World* world, const Ids& truth, bool lasting) {
  for (size_t allocation = 1;; ++allocation) {
    const auto client = world->NewClient(Moment::kNever);
    auto rows = world->NewRows(kRow);
    failing_memory::FailFrom(allocation, lasting ? failing_memory::kForEver : 1);
    try {
      world->translator.Submit(std::move(rows), client);
    } catch (const std::bad_alloc&) {
      failing_memory::Restore();
      WaitUntilForgotten(client);
      continue;
    }
    const bool all_succeeded = failing_memory::Restore();
    Require(all_succeeded, "an allocation failed, and nothing reported it");
    Require(allocation > 3, "nothing failed");
    Require(client->Wait() == truth, "the answer was lost");
    return;
  }
}

// From any allocation of the worker's on, all fail until a row is answered, which two clients wait
// for. Those that come later go on well.
void Exhaust(World* world, const Ids& truth, Moment moment) {
  const Ids busy_truth = world->Send(kOtherRow, Moment::kNever, kBusy)->Wait();
  const Ids shorter_truth = world->Send(kRow, Moment::kNever, kShort)->Wait();
  for (size_t allocation = 1;; ++allocation) {
    const bool before = moment == Moment::kChoosing;
    const auto busy = world->Send(kOtherRow, before ? moment : Moment::kNever, kBusy, allocation,
                                  /*lasting=*/true);
    const auto first = world->Send(kRow, before ? Moment::kNever : moment, 0, allocation, true);
    const auto second = world->Send(kRow, Moment::kNever);
    const auto shorter = world->Send(kRow, Moment::kNever, kShort);  // of the same encoding
    Answered(busy, busy_truth);
    const bool answered = Answered(first, truth);
    Answered(second, truth);
    Answered(shorter, shorter_truth);
    if (!answered || !first->never_failed()) continue;
    Require(allocation > 3, "nothing failed");
    return;
  }
}

// The rows run together: what fails one step fails all of them.
void RunTogether(const std::string& directory) {
  World world(directory, "loop", 1, 4);
  const Ids truth = world.Send(kRow, Moment::kNever)->Wait();
  Exhaust(&world, truth, Moment::kCounting);
  Require(world.Send(kRow, Moment::kNever)->Wait() == truth, "the loop is not well");
}

// Of rows of a loop, by the order in which they came.
class StepAnswers : public LoopListener {
 public:
  static constexpr size_t kRows = 3;

  void RowGrew(LoopRow, int64_t) noexcept override {}
  void RowEnded(LoopRow row, RowResult result) noexcept override {
    answers_[std::min<LoopRow>(row, kRows - 1)] = std::move(result.hypotheses.at(0));
  }
  bool Equal(const StepAnswers& other) const {
    for (size_t row = 0; row < kRows; ++row) {
      const Hypothesis &mine = answers_[row], &theirs = other.answers_[row];
      if (mine.ids.empty() || mine.ids != theirs.ids) return false;
      if (!(std::fabs(mine.score - theirs.score) < 1e-4F)) return false;
    }
    return true;
  }

 private:
  std::array<Hypothesis, kRows> answers_;
};

// The answers of rows where an allocation fails while one joins, or in the step after that, before
// which another has left. `allocation`: which one; 0: none. `failed`: whether there are so many.
// `stays`: the options of the row that goes on.
StepAnswers StepThrough(const World& world, DecodingOptions stays, size_t allocation,
                        bool* failed) {
  const auto row = [&](const Ids& source, DecodingOptions options, int64_t tokens) {
    options.return_scores = true;
    options.min_decoding_length = options.max_decoding_length = tokens;
    return world.translator.model().Check({RowInput{source, {}}}, &options).front();
  };
  const CheckedRow rows[] = {row({50, 60, 70, 80, 90, 2}, World::Decoding(1), 2),
                             row(kRow, std::move(stays), 7), row({99}, World::Decoding(1), 6)};
  const auto loop = world.translator.model().loop()->NewLoop();
  StepAnswers answers;
  loop->Admit({&rows[0], &rows[1]});
  for (int step = 0; step < 2; ++step) loop->Step(&answers);
  bool joined = false;
  const auto join_and_step = [&] {
    if (!joined) loop->Admit({&rows[2]});
    joined = true;
    loop->Step(&answers);
  };
  if (allocation > 0) failing_memory::FailFrom(allocation);
  bool again = false;
  try {
    join_and_step();
  } catch (const std::exception&) {
    again = true;
  }
  *failed = !failing_memory::Restore();
  Require(loop->running() == (joined ? 2 : 1) || !again, "half a row was admitted");
  if (again) join_and_step();
  while (loop->running() > 0) loop->Step(&answers);
  return answers;
}

// Joining a loop, or a step of it, fails, whichever of its allocations does, and is done again.
void FailStepping(const World& world, const DecodingOptions& stays) {
  bool failed = false;
  const StepAnswers truth = StepThrough(world, stays, 0, &failed);
  size_t allocation = 1;
  for (failed = true; failed; ++allocation) {
    Require(StepThrough(world, stays, allocation, &failed).Equal(truth),
            "a step left something behind");
  }
  Require(allocation > 20, "no step failed");
}

void FailSteps(const std::string& directory) {
  DecodingOptions draws = World::Decoding(1);
  draws.sampling_topk = 10;
  draws.sampling_seed = 5;
  DecodingOptions many_draws = draws;
  many_draws.num_hypotheses = 3;
  const DecodingOptions beams = World::Decoding(3);
  const World world(directory, "auto");
  for (const auto& stays : {World::Decoding(1), draws, many_draws, beams}) {
    FailStepping(world, stays);
  }
}

// The files of a model are listed, whichever allocation fails. There is no model among them: the
// load goes no further.
void FailListing() {
  std::string folder = std::filesystem::temp_directory_path() / "out_of_memory_XXXXXX";
  Require(mkdtemp(folder.data()) != nullptr, "no folder could be made");
  std::vector<std::string> files;
  for (int i = 0; i < 3; ++i) {
    files.push_back(folder + "/a_file_with_a_name_that_is_long_" + std::to_string(i));
    std::fclose(std::fopen(files.back().c_str(), "w"));
  }
  const DecodingOptions decoding = World::Decoding(1);
  const EngineOptions engine = World::Engine("auto", 4);
  size_t without_memory = 0;
  for (size_t allocation = 1;; ++allocation) {
    bool not_found = false;
    failing_memory::FailFrom(allocation);
    try {
      const Translator translator(folder, Device{}, decoding, engine);
    } catch (const std::bad_alloc&) {
      ++without_memory;
    } catch (const Error& error) {
      not_found = error.code() == ErrorCode::kNotFound;
    }
    if (failing_memory::Restore()) {
      Require(not_found, "a model was found where there is none");
      break;
    }
  }
  for (const std::string& file : files) unlink(file.c_str());
  rmdir(folder.c_str());
  Require(without_memory > 10, "no listing failed");
}

// A model cannot be loaded, whichever of many allocations fails: the next load is well. Its int8
// weights are packed and the plain ones given back; calls need those again.
//
// Before that config.json is parsed: there the library of JSON ends the process where it has no
// memory, since it takes some to free what it has parsed.
void FailLoading(const std::string& directory) {
  constexpr size_t kBehindJson = 400;
  EngineOptions engine = World::Engine("auto", 4);
  engine.compute_type = "int8";
  const auto load = [&] {
    return std::make_unique<Translator>(directory, Device{}, World::Decoding(1), engine);
  };
  Observer observer;
  const auto answer = [&](Translator* translator, int64_t beams) {
    DecodingOptions options = translator->model().defaults();
    options.beam_size = beams;
    options.coverage_penalty = beams > 1 ? 0.2F : 0;  // a call
    const auto client = std::make_shared<Client>(Moment::kNever, &observer, 1, false);
    translator->Submit(translator->model().Check({RowInput{kRow, {}}}, &options), client);
    return client->Wait();
  };
  auto truth = load();
  const Ids in_loop = answer(truth.get(), 1), in_call = answer(truth.get(), 2);
  truth.reset();  // and with it the weights
  size_t failed = 0;
  for (size_t allocation = kBehindJson;; allocation += 1 + allocation / 16) {
    std::unique_ptr<Translator> translator;
    failing_memory::FailFrom(allocation);
    try {
      translator = load();
    } catch (const std::exception&) {
      ++failed;
    }
    const bool never_failed = failing_memory::Restore();
    if (!translator) translator = load();
    Require(answer(translator.get(), 1) == in_loop, "a wrong answer of a loop");
    Require(answer(translator.get(), 2) == in_call, "a wrong answer of a call");
    if (never_failed) break;
  }
  Require(failed > 20, "no load failed");
}

void Run(const std::string& directory, const std::string& decoding, int64_t beams) {
  World world(directory, decoding, beams);
  const Ids truth = world.Send(kRow, Moment::kNever)->Wait();
  for (const Moment moment : {Moment::kCounting, Moment::kChoosing}) Exhaust(&world, truth, moment);
  FailSubmitting(&world, truth, /*lasting=*/true);
  Require(world.Send(kRow, Moment::kNever)->Wait() == truth, "the worker is not well");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: out_of_memory <model directory>\n");
    return 2;
  }
  failing_memory::UseOneCore();
  const std::string directory = arguments[1];
  constexpr size_t kRounds = 20;
  {
    World world(directory, "calls");
    const Ids truth = world.Send(kRow, Moment::kNever)->Wait();
    for (size_t round = 0; round < kRounds; ++round) {
      FailCounting(&world, truth);
      FailCopying(&world, truth);
      FailChoosing(&world, truth);
      FailSubmitting(&world, truth, /*lasting=*/false);
      Require(world.Send(kRow, Moment::kNever)->Wait() == truth, "the worker is not well");
    }
  }
  Require(failing_memory::Failed() > 6 * kRounds, "an allocation did not fail");
  FailSteps(directory);
  FailListing();
  FailLoading(directory);
  Run(directory, "calls", 1);
  Run(directory, "calls", 2);
  Run(directory, "loop", 1);
  RunTogether(directory);
  std::printf("%zu allocations failed, every row answered\n", failing_memory::Failed());
  return 0;
}
