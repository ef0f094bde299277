// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "metrics/metric_table.h"

namespace ct2triton {

// The counts of one model, one number for each fixed series of the table. Threads that decode add
// to them without a lock; the publishing thread reads them.
class MetricCells {
 public:
  MetricCells();

  // `value`: index of the metric's label value.
  void Add(Metric metric, uint64_t count, size_t value = 0) noexcept {
    if (count > 0) cells_[PlaceOf(metric) + value].fetch_add(count, std::memory_order_relaxed);
  }
  void Set(Metric metric, uint64_t count) noexcept {
    cells_[PlaceOf(metric)].store(count, std::memory_order_relaxed);
  }
  uint64_t Get(Metric metric, size_t value = 0) const noexcept {
    return cells_[PlaceOf(metric) + value].load(std::memory_order_relaxed);
  }

 private:
  static size_t PlaceOf(Metric metric) noexcept;

  const std::unique_ptr<std::atomic<uint64_t>[]> cells_;
};

}  // namespace ct2triton
