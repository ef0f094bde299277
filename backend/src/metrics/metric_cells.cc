// SPDX-License-Identifier: Apache-2.0
#include "metrics/metric_cells.h"

#include <vector>

namespace ct2triton {
namespace {

// First series of each metric; the last entry is the number of series.
const std::vector<size_t>& Places() {
  static const std::vector<size_t> places = [] {
    std::vector<size_t> begin = {0};
    for (const MetricSpec& spec : MetricTable()) {
      begin.push_back(begin.back() + spec.fixed_series());
    }
    return begin;
  }();
  return places;
}

}  // namespace

MetricCells::MetricCells() : cells_(std::make_unique<std::atomic<uint64_t>[]>(Places().back())) {}

size_t MetricCells::PlaceOf(Metric metric) noexcept {
  return Places()[static_cast<size_t>(metric)];
}

}  // namespace ct2triton
