// SPDX-License-Identifier: Apache-2.0
//
// Which waiting rows go into the next call of CTranslate2. Pure functions, no threads, no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ct2triton {

// The properties of a waiting row that planning needs.
struct WaitingRow {
  int64_t source_tokens = 0;
  int64_t beams = 1;     // copies of the row that the search keeps
  bool may_join = true;  // same options as the first row and, if they demand it, the same limit
  int64_t search_tokens = 0;  // that its search keeps at most
};

struct CallBounds {
  size_t max_rows = 1;
  int64_t max_tokens = 1;  // rows x beams x longest source
  int64_t max_search_tokens =
      std::numeric_limits<int64_t>::max();  // rows x search_tokens of the longest search
};

// Most rows that one worker should take, so that all workers get equal parts of the rows.
size_t FairShare(size_t waiting, size_t running, size_t workers);

// Picks the first candidate, which has waited longest, and those closest to it in length, within
// the bounds. Padding stays small, and no row waits forever.
//
// `waiting` is in order of arrival, not empty. Returns positions, ascending. The first candidate is
// always taken, even if it alone exceeds the bounds.
std::vector<size_t> PickRows(const std::vector<WaitingRow>& waiting, const CallBounds& bounds);

}  // namespace ct2triton
