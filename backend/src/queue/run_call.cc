// SPDX-License-Identifier: Apache-2.0
#include "queue/run_call.h"

#include <utility>

#include "error.h"
#include "queue/running_rows.h"

namespace ct2triton {
namespace {

std::vector<RowResult> Run(CallEngine* engine, RowQueue* queue, RunningRows* call) {
  auto results = engine->Run(call->rows(), call, call->times());
  for (size_t i = 0; i < results.size(); ++i) {
    const CheckedRow& row = *call->rows()[i];
    if (row.may_overrun) queue->CountLimit(row, results[i].reached_limit);
  }
  return results;
}

// Answers all jobs, or leaves those that must run alone in `jobs`.
void RunTogether(CallEngine* engine, RowQueue* queue, std::vector<Job>* jobs) {
  RunningRows call(jobs);
  if (jobs->empty()) return;
  try {
    call.Deliver(Run(engine, queue, &call));
    jobs->clear();
  } catch (...) {
    const Error error = CurrentError();
    if (jobs->size() > 1) return call.KeepUnanswered();
    call.Fail(error);
    jobs->clear();
  }
}

void FailAll(std::vector<Job>* jobs) noexcept {
  const Error error = CurrentError();
  for (Job& job : *jobs) FailJob(&job, error);
}

// Runs each job in a call of its own.
void RunAlone(CallEngine* engine, RowQueue* queue, std::vector<Job> jobs) noexcept {
  for (Job& job : jobs) {
    std::vector<Job> alone;
    try {
      alone.reserve(1);
      alone.push_back(std::move(job));
      RunTogether(engine, queue, &alone);
    } catch (...) {
      if (!alone.empty()) {
        FailAll(&alone);
      } else {
        FailJob(&job, CurrentError());
      }
    }
  }
}

}  // namespace

void RunCall(CallEngine* engine, RowQueue* queue, std::vector<Job> jobs) noexcept {
  try {
    RunTogether(engine, queue, &jobs);
    RunAlone(engine, queue, std::move(jobs));
  } catch (...) {
    FailAll(&jobs);
  }
}

}  // namespace ct2triton
