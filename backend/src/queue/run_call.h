// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/calls/call_engine.h"
#include "queue/job.h"
#include "queue/row_queue.h"

namespace ct2triton {

// Runs jobs that may share a call and answers each of them. If the call fails, each gets a call of
// its own, and only rows that fail alone fail. `queue` counts the beam rows that reached their
// limits.
void RunCall(CallEngine* engine, RowQueue* queue, std::vector<Job> jobs) noexcept;

}  // namespace ct2triton
