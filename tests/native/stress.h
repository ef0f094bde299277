// SPDX-License-Identifier: Apache-2.0
//
// What the programs share that put the backend under many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "triton_stand_in.h"

namespace stress {

using Clock = std::chrono::steady_clock;
using Random = std::mt19937_64;

inline int64_t Draw(Random* random, int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(*random);
}

template <typename T>
const T& Pick(const std::vector<T>& values, Random* random) {
  return values[static_cast<size_t>(Draw(random, 0, static_cast<int64_t>(values.size()) - 1))];
}

inline Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// How the thread of one instance sends.
struct Pace {
  int64_t most_in_batch;
  int64_t most_wait_us;  // behind a batch, before some of it is cancelled
  int64_t cancels_one_in;
  size_t most_pending;
};

// What Triton's thread of one instance does: batches of what `make` makes and puts into the batch,
// some of them cancelled, and each looked at by `check` in the end. `Sent` is what `make` gives.
template <typename Sent, typename Make, typename Check>
void KeepSending(stand_in::Model* model, size_t instance, Clock::time_point end, uint64_t seed,
                 const Pace& pace, const Make& make, const Check& check) {
  Random random(seed);
  std::deque<Sent> pending;
  while (Clock::now() < end) {
    std::vector<TRITONBACKEND_Request*> batch;
    const size_t since = pending.size();
    for (int64_t count = Draw(&random, 1, pace.most_in_batch); count > 0; --count) {
      pending.push_back(make(&random, &batch));
    }
    model->Execute(instance, std::move(batch));
    std::this_thread::sleep_for(std::chrono::microseconds(Draw(&random, 0, pace.most_wait_us)));
    for (size_t i = since; i < pending.size(); ++i) {
      if (Draw(&random, 1, pace.cancels_one_in) != 1) continue;
      pending[i].cancelled = true;
      pending[i].call->Cancel();
    }
    for (; pending.size() > pace.most_pending; pending.pop_front()) check(pending.front());
  }
  for (const Sent& sent : pending) check(sent);
}

// Runs `action` of each number on a thread of its own, and waits for all.
template <typename Action>
void OnThreads(size_t count, const Action& action) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&action, i] { action(i); });
  for (auto& thread : threads) thread.join();
}

}  // namespace stress
