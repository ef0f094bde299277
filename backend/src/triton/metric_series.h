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

// One line of one model version at Triton's /metrics. It is removed with this object, unless
// another load of the same version shares the line; then both add to it.
class MetricSeries {
 public:
  // `value`: value of the metric's own label; empty if it has none. Throws Error.
  MetricSeries(Metric metric, const std::string& model, uint64_t version,
               const std::string& value = "");
  ~MetricSeries();
  MetricSeries(MetricSeries&& other) = default;
  MetricSeries& operator=(MetricSeries&&) = delete;

  // Sets the count of this object, which must be a counter or a gauge.
  void MoveTo(uint64_t count) noexcept;
  // Adds an observation to a histogram.
  void Observe_ns(uint64_t ns) noexcept;

 private:
  const MetricSpec* spec_;
  std::unique_ptr<TRITONSERVER_Metric, DeleteMetric> metric_;
  uint64_t shown_ = 0;
};

// Whether the server has histograms. Servers without them do not show these metrics.
bool HasHistograms() noexcept;

}  // namespace ct2triton
