// SPDX-License-Identifier: Apache-2.0
#include "triton/map_counters.h"

#include <array>

#include "triton/guard.h"
#include "triton/log.h"

namespace ct2triton {
namespace {

constexpr const char* kDoing = "counting rows with and without a vocabulary map";

// One for all models, never deleted: what is counted under equal labels, as by two loads of one
// model, then is one counter.
TRITONSERVER_MetricFamily* Family() {
  static TRITONSERVER_MetricFamily* const family = [] {
    TRITONSERVER_MetricFamily* made = nullptr;
    ThrowIfError(TRITONSERVER_MetricFamilyNew(
                     &made, TRITONSERVER_METRIC_KIND_COUNTER, "ct2_vmap_rows",
                     "Rows decoded by models that have a vocabulary map, with it or without"),
                 kDoing);
    return made;
  }();
  return family;
}

struct DeleteLabel {
  void operator()(TRITONSERVER_Parameter* label) const { TRITONSERVER_ParameterDelete(label); }
};
using Label = std::unique_ptr<TRITONSERVER_Parameter, DeleteLabel>;

Label NewLabel(const char* name, const std::string& value) {
  return Label(TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, value.c_str()));
}

void Increment(TRITONSERVER_Metric* counter, size_t rows) noexcept {
  if (counter == nullptr || rows == 0) return;
  LogIfError(kDoing,
             [&] { return TRITONSERVER_MetricIncrement(counter, static_cast<double>(rows)); });
}

}  // namespace

void MapCounters::Delete::operator()(TRITONSERVER_Metric* metric) const noexcept {
  LogIfError("deleting a metric", [&] { return TRITONSERVER_MetricDelete(metric); });
}

MapCounters::Counter MapCounters::NewCounter(const std::string& model, uint64_t version,
                                             const char* mapped) {
  const std::array<Label, 3> labels = {NewLabel("model", model),
                                       NewLabel("version", std::to_string(version)),
                                       NewLabel("vmap", mapped)};
  std::array<const TRITONSERVER_Parameter*, 3> handles{};
  for (size_t i = 0; i < labels.size(); ++i) handles[i] = labels[i].get();
  TRITONSERVER_Metric* counter = nullptr;
  ThrowIfError(TRITONSERVER_MetricNew(&counter, Family(), handles.data(), handles.size()), kDoing);
  return Counter(counter);
}

MapCounters::MapCounters(const std::string& model, uint64_t version) noexcept {
  try {
    mapped_ = NewCounter(model, version, "used");
    unmapped_ = NewCounter(model, version, "unused");
  } catch (...) {
    LogWarning(CurrentError().what());  // names kDoing
  }
}

void MapCounters::Add(const CallReport& report) noexcept {
  Increment(mapped_.get(), report.mapped_rows);
  Increment(unmapped_.get(), report.rows - report.mapped_rows);
}

}  // namespace ct2triton
