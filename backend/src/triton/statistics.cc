// SPDX-License-Identifier: Apache-2.0
#include "triton/statistics.h"

#include <algorithm>

#include "triton/guard.h"

namespace ct2triton {

void RequestTimes::Add(const RunTimes& call) noexcept {
  if (call.compute_start_ns == call.compute_end_ns) return;
  if (span_.start_ns == 0) {
    span_ = call;
    return;
  }
  span_.start_ns = std::min(span_.start_ns, call.start_ns);
  span_.compute_start_ns = std::min(span_.compute_start_ns, call.compute_start_ns);
  span_.compute_end_ns = std::max(span_.compute_end_ns, call.compute_end_ns);
  span_.end_ns = std::max(span_.end_ns, call.end_ns);
}

RunTimes RequestTimes::Span() const noexcept { return span_.start_ns != 0 ? span_ : NoTime(); }

void ReportRequest(TRITONBACKEND_ModelInstance* instance, const RequestHandle& request,
                   bool success, const RunTimes& times) noexcept {
  LogIfError("reporting request statistics", [&] {
    return TRITONBACKEND_ModelInstanceReportStatistics(instance, request.handle(), success,
                                                       times.start_ns, times.compute_start_ns,
                                                       times.compute_end_ns, times.end_ns);
  });
}

void ReportRun(TRITONBACKEND_ModelInstance* instance, const RunReport& report) noexcept {
  const RunTimes& times = report.times;
  LogIfError("reporting batch statistics", [&] {
    return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, report.rows, times.start_ns,
                                                            times.compute_start_ns,
                                                            times.compute_end_ns, times.end_ns);
  });
}

}  // namespace ct2triton
