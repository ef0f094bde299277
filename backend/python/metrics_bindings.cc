// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.h"
#include "metrics/metric_cells.h"
#include "metrics/metric_table.h"
#include "steady_clock.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

py::list DescribeMetrics() {
  py::list metrics;
  for (const MetricSpec& spec : MetricTable()) {
    py::dict metric;
    metric["name"] = spec.name;
    metric["kind"] = MetricKindName(spec.kind);
    metric["unit"] = spec.unit;
    metric["help"] = spec.help;
    metric["label"] = spec.label == nullptr ? py::object(py::none()) : py::str(spec.label);
    metric["label_values"] =
        std::vector<std::string>(spec.label_values.begin(), spec.label_values.end());
    metrics.append(metric);
  }
  return metrics;
}

// Mean time of one addition over `additions` of them, in nanoseconds.
double MetricAdd_ns(uint64_t additions) {
  MetricCells cells;
  const uint64_t start_ns = SteadyNow_ns();
  for (uint64_t i = 0; i < additions; ++i) cells.Add(Metric::kSourceTokens, i | 1);
  const uint64_t end_ns = SteadyNow_ns();
  if (cells.Get(Metric::kSourceTokens) == 0) throw std::logic_error("nothing was added");
  return static_cast<double>(end_ns - start_ns) / static_cast<double>(additions);
}

}  // namespace

void BindMetrics(py::module_& module) {
  module.def("metrics", &DescribeMetrics, "The table of metrics, in its order.");
  module.def("metric_add_ns", &MetricAdd_ns, py::arg("additions"),
             "Nanoseconds of adding to a metric. For benchmarks/measure_metrics.py.");
  module.def("histogram_bounds", &HistogramBounds_s,
             "Upper bounds of the buckets of every histogram, in seconds.");
}

}  // namespace ct2triton
