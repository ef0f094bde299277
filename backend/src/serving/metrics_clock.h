// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ct2triton {

// Publishes its metrics periodically.
class Publisher {
 public:
  virtual ~Publisher() = default;
  virtual void Publish() noexcept = 0;
};

// Publishes the metrics of all models a few times a second, on one thread. So a row costs only an
// addition, and gauges are current even if nothing runs.
class MetricsClock {
 public:
  // The clock of this process; it ends with its last user. Throws std::system_error.
  static std::shared_ptr<MetricsClock> OfProcess();

  MetricsClock();
  ~MetricsClock();  // all publishers must have been removed

  void Add(Publisher* publisher);
  // It is not called afterwards.
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
