// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/parameters.h"
#include "triton/response_statistics.h"
#include "triton_c_api.h"

namespace ct2triton {

// Owns one request of Triton and releases it exactly once. Empty until it gets one.
class RequestHandle {
 public:
  RequestHandle() = default;
  ~RequestHandle() { Release(); }
  RequestHandle(const RequestHandle&) = delete;
  RequestHandle& operator=(const RequestHandle&) = delete;

  void Own(TRITONBACKEND_Request* handle) noexcept { handle_ = handle; }
  // Afterwards, Triton may unload the model that the request belongs to.
  void Release() noexcept;

  // Counts each response from now on. `start_ns`: when the request arrived.
  void CountResponses(TRITONBACKEND_ModelInstance* instance, uint64_t start_ns) noexcept {
    statistics_ = ResponseStatistics::Of(instance, handle_, start_ns);
  }
  // Null if responses are not counted.
  ResponseStatistics* statistics() const noexcept { return statistics_.get(); }

  bool owned() const noexcept { return handle_ != nullptr; }
  TRITONBACKEND_Request* handle() const noexcept { return handle_; }

  std::string Id() const;  // empty if the client gave none
  // Always false on servers that do not report it.
  bool IsCancelled() const noexcept;
  // The client's time limit; 0 if it set none or the server does not report it.
  uint64_t Timeout_us() const;
  std::vector<std::pair<std::string, ParameterValue>> Parameters() const;
  std::vector<TRITONBACKEND_Input*> Inputs() const;  // in no particular order
  std::vector<std::string> WantedOutputs() const;    // all of the model's if the client named none

 private:
  TRITONBACKEND_Request* handle_ = nullptr;
  std::unique_ptr<ResponseStatistics> statistics_;
};

}  // namespace ct2triton
