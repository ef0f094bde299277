// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ct2triton {

// What publishes its metrics now and then.
class Publisher {
 public:
  virtual ~Publisher() = default;
  virtual void Publish() noexcept = 0;
};

// One thread for all models: it publishes their metrics a few times a second, so that rows pay for
// an addition only, and gauges are fresh also while nothing runs.
class MetricsClock {
 public:
  // The one of this process; it ends with its last user. Throws std::system_error.
  static std::shared_ptr<MetricsClock> OfProcess();

  MetricsClock();
  ~MetricsClock();  // no publisher may be left

  void Add(Publisher* publisher);
  // Afterwards it is not called any more.
  void Remove(Publisher* publisher) noexcept;

 private:
  void Run() noexcept;

  std::mutex mutex_;
  std::condition_variable end_;
  std::vector<Publisher*> publishers_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace ct2triton
