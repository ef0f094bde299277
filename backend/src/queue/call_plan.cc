// SPDX-License-Identifier: Apache-2.0
#include "queue/call_plan.h"

#include <algorithm>
#include <cstdlib>

namespace ct2triton {

size_t FairShare(size_t waiting, size_t running, size_t workers) {
  const size_t all = waiting + running;
  return std::max<size_t>(1, (all + workers - 1) / workers);
}

std::vector<size_t> PickRows(const std::vector<WaitingRow>& waiting, const CallBounds& bounds) {
  const int64_t wanted = waiting.front().source_tokens;
  std::vector<size_t> order;
  for (size_t i = 1; i < waiting.size(); ++i) {
    if (waiting[i].may_join) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::llabs(waiting[a].source_tokens - wanted) <
           std::llabs(waiting[b].source_tokens - wanted);
  });
  std::vector<size_t> picked = {0};
  int64_t longest = std::max<int64_t>(1, wanted);
  int64_t search_tokens = waiting.front().search_tokens;  // rows may run to the largest limit
  for (const size_t i : order) {
    if (picked.size() >= bounds.max_rows) break;
    const int64_t with_it = std::max(longest, waiting[i].source_tokens);
    const auto rows = static_cast<int64_t>(picked.size()) + 1;
    if (rows * waiting.front().beams * with_it > bounds.max_tokens) continue;
    const int64_t searched = std::max(search_tokens, waiting[i].search_tokens);
    if (rows * searched > bounds.max_search_tokens) continue;
    longest = with_it;
    search_tokens = searched;
    picked.push_back(i);
  }
  std::sort(picked.begin(), picked.end());
  return picked;
}

}  // namespace ct2triton
