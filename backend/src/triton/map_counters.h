// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rows/call_report.h"
#include "triton_c_api.h"

namespace ct2triton {

// How many rows one model version has decoded with its vocabulary map, and how many without: the
// counter ct2_vmap_rows at Triton's /metrics. A server without metrics counts nothing.
class MapCounters {
 public:
  MapCounters(const std::string& model, uint64_t version) noexcept;

  void Add(const CallReport& report) noexcept;

 private:
  struct Delete {
    void operator()(TRITONSERVER_Metric* metric) const noexcept;
  };
  using Counter = std::unique_ptr<TRITONSERVER_Metric, Delete>;

  static Counter NewCounter(const std::string& model, uint64_t version, const char* mapped);

  Counter mapped_;
  Counter unmapped_;
};

}  // namespace ct2triton
