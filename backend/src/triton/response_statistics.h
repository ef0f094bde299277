// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "triton_c_api.h"

namespace ct2triton {

// Counts each response of a stream, as Triton's statistics show them (`response_stats`). Not
// thread-safe.
class ResponseStatistics {
 public:
  // Null if the server has no such statistics, or memory is exhausted. `start_ns`: time on the
  // steady clock when work on the first response began.
  static std::unique_ptr<ResponseStatistics> Of(TRITONBACKEND_ModelInstance* instance,
                                                TRITONBACKEND_Request* request,
                                                uint64_t start_ns) noexcept;

  ~ResponseStatistics();
  ResponseStatistics(const ResponseStatistics&) = delete;
  ResponseStatistics& operator=(const ResponseStatistics&) = delete;

  // Counts a response that has been sent. `output_ns`: when the backend began to write its tensors.
  // `error`: the error that it was sent with, or null.
  void Report(uint64_t output_ns, TRITONSERVER_Error* error) noexcept;

 private:
  ResponseStatistics(TRITONBACKEND_ModelInstance* instance, uint64_t start_ns)
      : instance_(instance), start_ns_(start_ns) {}

  TRITONBACKEND_ModelInstance* const instance_;
  uint64_t start_ns_;  // of the next response
  TRITONBACKEND_ResponseFactory* factory_ = nullptr;
};

}  // namespace ct2triton
