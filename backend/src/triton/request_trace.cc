// SPDX-License-Identifier: Apache-2.0
#include "triton/request_trace.h"

#include <algorithm>

#include "triton/guard.h"

namespace ct2triton {
namespace {

// Limits the rows in a trace, because Triton's work on an activity grows with the number of earlier
// ones.
constexpr size_t kMostRows = 8;

constexpr const char* kDoing = "tracing a request";

bool CanTrace() noexcept {
  return &TRITONBACKEND_RequestTrace != nullptr &&
         &TRITONSERVER_InferenceTraceReportActivity != nullptr;
}

}  // namespace

void RequestTrace::Begin(const RequestHandle& request) noexcept {
  if (!CanTrace()) return;
  try {
    // A server that was built without tracing says so with an error.
    const OwnedError error(TRITONBACKEND_RequestTrace(request.handle(), &trace_));
    if (error != nullptr) trace_ = nullptr;
  } catch (...) {
    LogCurrentError();
  }
}

void RequestTrace::Add(size_t row, const RunTimes& times) noexcept {
  if (trace_ == nullptr || row >= kMostRows || times.queued_ns == 0) return;
  try {
    rows_.push_back({row, times});
  } catch (...) {  // the trace lacks the row
    LogCurrentError();
  }
}

void RequestTrace::Report() noexcept {
  if (rows_.empty()) return;
  try {
    std::sort(rows_.begin(), rows_.end(),
              [](const Row& one, const Row& other) { return one.position < other.position; });
    for (const Row& row : rows_) ReportRow(row);
  } catch (...) {
    LogCurrentError();
  }
}

void RequestTrace::ReportRow(const Row& row) {
  const RunTimes& times = row.times;
  Activity("row_START", times.queued_ns);
  Activity("row " + std::to_string(row.position), times.queued_ns);
  Span("queue", times.queued_ns, times.start_ns);
  if (times.encoded_ns == 0) {
    Span("call", times.start_ns, times.end_ns);
  } else {
    Span("encode", times.start_ns, times.encoded_ns);
    Span("decode", times.encoded_ns, times.end_ns);
  }
  Activity("row_END", times.end_ns);
}

void RequestTrace::Span(const char* name, uint64_t start_ns, uint64_t end_ns) {
  Activity(std::string(name) + "_START", start_ns);
  Activity(std::string(name) + "_END", end_ns);
}

// Triton finds the name of an activity by its time: no two may have the same.
void RequestTrace::Activity(const std::string& name, uint64_t at_ns) {
  while (std::find(reported_ns_.begin(), reported_ns_.end(), at_ns) != reported_ns_.end()) ++at_ns;
  reported_ns_.push_back(at_ns);
  ThrowIfError(TRITONSERVER_InferenceTraceReportActivity(trace_, at_ns, name.c_str()), kDoing);
}

}  // namespace ct2triton
