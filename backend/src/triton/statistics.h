// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "rows/run_report.h"
#include "triton/request.h"
#include "triton_c_api.h"

namespace ct2triton {

// When the rows of one request were worked on: from the start of the first call to the end of the
// last. Without calls, as for a request of empty rows, the current time.
class RequestTimes {
 public:
  // Ignores a row that was answered without computing.
  void Add(const RunTimes& call) noexcept;
  RunTimes Span() const noexcept;

 private:
  RunTimes span_;
};

// Counts one answered or failed request. Call before it is released.
void ReportRequest(TRITONBACKEND_ModelInstance* instance, const RequestHandle& request,
                   bool success, const RunTimes& times) noexcept;

// Counts one call of the engine as one execution of its rows.
void ReportRun(TRITONBACKEND_ModelInstance* instance, const RunReport& report) noexcept;

}  // namespace ct2triton
