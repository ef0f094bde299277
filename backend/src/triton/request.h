// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/parameters.h"
#include "triton_c_api.h"

namespace ct2triton {

// Owns one request of Triton and gives it back exactly once. Empty until it is given one.
class RequestHandle {
 public:
  RequestHandle() = default;
  ~RequestHandle() { Release(); }
  RequestHandle(const RequestHandle&) = delete;
  RequestHandle& operator=(const RequestHandle&) = delete;

  void Own(TRITONBACKEND_Request* handle) noexcept { handle_ = handle; }
  // Afterwards the model that it belongs to may be gone.
  void Release() noexcept;

  bool owned() const noexcept { return handle_ != nullptr; }
  TRITONBACKEND_Request* handle() const noexcept { return handle_; }

  std::string Id() const;  // empty if the client gave none
  // Always false on servers that do not report it.
  bool IsCancelled() const noexcept;
  std::vector<std::pair<std::string, ParameterValue>> Parameters() const;
  std::vector<TRITONBACKEND_Input*> Inputs() const;  // in no particular order
  std::vector<std::string> WantedOutputs() const;    // all of the model's if the client named none

 private:
  TRITONBACKEND_Request* handle_ = nullptr;
};

}  // namespace ct2triton
