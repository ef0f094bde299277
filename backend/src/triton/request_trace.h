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

// What Triton's trace of one request says of its first rows: a span for each, with one for its wait
// in the queue and those of its work. Triton keeps the spans of a trace in a stack, so they are
// reported one after the other once the request has ended. Nothing is kept of a request that is not
// traced.
class RequestTrace {
 public:
  void Begin(const RequestHandle& request) noexcept;
  // A row that was answered, well or not.
  void Add(size_t row, const RunTimes& times) noexcept;
  // Before the request is released.
  void Report() noexcept;

 private:
  struct Row {
    size_t position = 0;
    RunTimes times;
  };

  void Tell(const Row& row);
  void Span(const char* name, uint64_t start_ns, uint64_t end_ns);
  void Activity(const std::string& name, uint64_t at_ns);

  TRITONSERVER_InferenceTrace* trace_ = nullptr;
  std::vector<Row> rows_;
  std::vector<uint64_t> told_ns_;
};

}  // namespace ct2triton
