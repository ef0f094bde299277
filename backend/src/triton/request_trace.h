// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rows/run_report.h"
#include "triton/request.h"
#include "triton_c_api.h"

namespace ct2triton {

// Adds the first rows of a request to Triton's trace: a span for each, with spans for its wait in
// the queue and its work. Triton keeps the spans of a trace in a stack, so they are reported in
// sequence once the request has ended. Does nothing for a request that is not traced.
class RequestTrace {
 public:
  void Begin(const RequestHandle& request) noexcept;
  // Adds an answered or failed row.
  void Add(size_t row, const RunTimes& times) noexcept;
  // Call it before the request is released.
  void Report() noexcept;

 private:
  struct Row {
    size_t position = 0;
    RunTimes times;
  };

  void ReportRow(const Row& row);
  void Span(const char* name, uint64_t start_ns, uint64_t end_ns);
  void Activity(const std::string& name, uint64_t at_ns);

  TRITONSERVER_InferenceTrace* trace_ = nullptr;
  std::vector<Row> rows_;
  std::vector<uint64_t> reported_ns_;
};

}  // namespace ct2triton
