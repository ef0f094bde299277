// SPDX-License-Identifier: Apache-2.0
//
// Single allocations fail at the worst moments. On a worker's thread: every row is answered all the
// same, and the worker goes on. On a thread that hands rows over: nothing of them stays behind.
//
// out_of_memory <model directory>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error.h"
#include "queue/translator.h"

namespace {

thread_local size_t fails_in = 0;  // allocations, that one included; 0: none fails
std::atomic<size_t> failed{0};

}  // namespace

void* operator new(std::size_t size) {
  if (fails_in > 0 && --fails_in == 0) {
    ++failed;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
// Inlined, they look to GCC as if the wrong function freed what new gave.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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

class Observer : public CallObserver {
 public:
  void CallDone(const CallReport& report) noexcept override { counted += report.rows; }
  std::atomic<size_t> counted{0};
};

// One row and its answer.
class Client : public RowListener {
 public:
  // `allocation`: which one fails from that moment on.
  Client(Moment moment, Observer* observer, size_t allocation)
      : moment_(moment), observer_(observer), allocation_(allocation) {}

  CallObserver* observer() const noexcept override {
    const bool first = std::exchange(uncounted_, false);
    if (first && moment_ == Moment::kCounting) fails_in = allocation_;
    return observer_;
  }
  // Asked before the call, and before each token: for the last time before it is answered.
  bool Cancelled() const noexcept override {
    if (moment_ == Moment::kCopying && ++asked_ == 1 + kAnswerTokens) fails_in = allocation_;
    return false;
  }
  void RowDone(size_t, RowResult result, const CallTimes&) noexcept override {
    fails_in = 0;
    answer_.set_value(result.hypotheses.at(0).ids);
    if (moment_ == Moment::kChoosing) fails_in = allocation_;
  }
  void RowFailed(size_t, const Error& error, const CallTimes&) noexcept override {
    answer_.set_exception(std::make_exception_ptr(error));
  }

  Ids Wait() { return answer_.get_future().get(); }

  bool IsOutOfMemory() {
    try {
      Wait();
    } catch (const Error& error) {
      return std::string(error.what()) == OutOfMemory().what();
    }
    return false;
  }

 private:
  const Moment moment_;
  Observer* const observer_;
  const size_t allocation_;
  mutable bool uncounted_ = true;
  mutable size_t asked_ = 0;
  std::promise<Ids> answer_;
};

struct World {
  explicit World(const std::string& directory)
      : translator(directory, Device{}, Decoding(), Engine()) {}

  static DecodingOptions Decoding() {
    DecodingOptions options;
    options.beam_size = 1;
    options.max_decoding_length = kAnswerTokens;
    return options;
  }
  static EngineOptions Engine() {
    EngineOptions engine;
    engine.inter_threads = 1;
    engine.max_batch_rows = 1;
    return engine;
  }

  std::shared_ptr<Client> NewClient(Moment moment, size_t allocation = 1) {
    return std::make_shared<Client>(moment, &observer, allocation);
  }

  std::vector<CheckedRow> NewRows(const Ids& source, int64_t min_length = 0) const {
    DecodingOptions options = Decoding();
    if (min_length > 0) options.min_decoding_length = options.max_decoding_length = min_length;
    return translator.model().Check({RowInput{source, {}}}, &options);
  }

  std::shared_ptr<Client> Send(const Ids& source, Moment moment, int64_t min_length = 0,
                               size_t allocation = 1) {
    auto client = NewClient(moment, allocation);
    translator.Submit(NewRows(source, min_length), client);
    return client;
  }

  Observer observer;
  Translator translator;
};

const Ids kRow = {50, 60, 70, 2};
const Ids kOtherRow = {80, 90, 2};
constexpr int64_t kLong = 100;  // keeps the one worker busy while more rows come

// The rows of a call cannot be counted: they are answered.
void FailCounting(World* world, const Ids& truth) {
  const size_t before = world->observer.counted;
  Require(world->Send(kRow, Moment::kCounting)->Wait() == truth, "the answer was lost");
  Require(world->observer.counted == before, "nothing failed");
}

// The result of two equal rows cannot be made, or not be copied, while the call goes on: both
// clients are told.
void FailCopying(World* world, const Ids& truth) {
  Require(truth.size() == kAnswerTokens, "the row ended before its limit");
  for (size_t allocation = 1;; ++allocation) {
    const auto busy = world->Send(kOtherRow, Moment::kNever, kLong);
    const auto first = world->Send(kRow, Moment::kCopying, 0, allocation);
    const auto second = world->Send(kRow, Moment::kNever);
    busy->Wait();
    const bool told = first->IsOutOfMemory();
    Require(told == second->IsOutOfMemory(), "a client was not told");
    if (told) continue;
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
    const bool told = oldest->IsOutOfMemory();
    Require(next->Wait() == truth, "the next row did not get its answer");
    if (told) return;
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
void FailSubmitting(World* world, const Ids& truth) {
  for (size_t allocation = 1;; ++allocation) {
    const auto client = world->NewClient(Moment::kNever);
    auto rows = world->NewRows(kRow);
    fails_in = allocation;
    try {
      world->translator.Submit(std::move(rows), client);
    } catch (const std::bad_alloc&) {
      WaitUntilForgotten(client);
      continue;
    }
    const bool all_succeeded = std::exchange(fails_in, 0) > 0;
    Require(all_succeeded, "an allocation failed, and nobody was told");
    Require(allocation > 3, "nothing failed");
    Require(client->Wait() == truth, "the answer was lost");
    return;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: out_of_memory <model directory>\n");
    return 2;
  }
  World world(arguments[1]);
  const Ids truth = world.Send(kRow, Moment::kNever)->Wait();
  constexpr size_t kRounds = 20;
  for (size_t round = 0; round < kRounds; ++round) {
    FailCounting(&world, truth);
    FailCopying(&world, truth);
    FailChoosing(&world, truth);
    FailSubmitting(&world, truth);
    Require(world.Send(kRow, Moment::kNever)->Wait() == truth, "the worker is not well");
  }
  Require(failed > 6 * kRounds, "an allocation did not fail");
  std::printf("%zu allocations failed, every row answered\n", failed.load());
  return 0;
}
