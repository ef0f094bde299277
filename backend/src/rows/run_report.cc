// SPDX-License-Identifier: Apache-2.0
#include "rows/run_report.h"

#include "steady_clock.h"

namespace ct2triton {

RunTimes NoTime() noexcept {
  const uint64_t now_ns = SteadyNow_ns();
  return RunTimes{now_ns, now_ns, now_ns, now_ns, 0, 0};
}

}  // namespace ct2triton
