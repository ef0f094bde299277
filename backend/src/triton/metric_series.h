// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "metrics/metric_table.h"
#include "triton_c_api.h"

namespace ct2triton {

struct DeleteMetric {
  void operator()(TRITONSERVER_Metric* metric) const noexcept;
};

// One line at Triton's /metrics, of one model version. It is removed with this object, unless
// another load of the same version shares the line; then both add to it.
class MetricSeries {
 public:
  // `value`: of the metric's own label; empty where it has none. Throws Error.
  MetricSeries(Metric metric, const std::string& model, uint64_t version,
               const std::string& value = "");
  ~MetricSeries();
  MetricSeries(MetricSeries&& other) = default;
  MetricSeries& operator=(MetricSeries&&) = delete;

  // Shows that the count of this object is now `count`. For a counter or a gauge.
  void MoveTo(uint64_t count) noexcept;
  // Adds an observation to a histogram.
  void Observe_ns(uint64_t ns) noexcept;

 private:
  const MetricSpec* spec_;
  std::unique_ptr<TRITONSERVER_Metric, DeleteMetric> metric_;
  uint64_t shown_ = 0;
};

// Whether the server has histograms. Without them, they are left out.
bool HasHistograms() noexcept;

}  // namespace ct2triton
