// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

// One row of a request that has left its call or loop. Nanoseconds of std::chrono::steady_clock.
struct RowReport {
  const CheckedRow& row;
  const RowResult* result = nullptr;  // null: it failed
  bool in_loop = false;               // it ran in a decode loop
  bool equal = false;                 // answered together with an equal row
  uint64_t queued_ns = 0;             // entered the queue; 0: never
  uint64_t taken_ns = 0;              // a thread took it
  uint64_t first_token_ns = 0;        // the first token that was not forced; 0: not reported
  uint64_t longest_gap_ns = 0;        // between two such tokens; 0: fewer than two
  uint64_t end_ns = 0;
};

}  // namespace ct2triton
