// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "error.h"
#include "triton/request.h"
#include "triton_c_api.h"

namespace ct2triton {

// The answer to one request. Deleted if it is not sent.
class Response {
 public:
  explicit Response(const RequestHandle& request);
  ~Response();
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // Adds an output tensor and returns its memory, to be filled before Send.
  void* AddOutput(const std::string& name, TRITONSERVER_DataType type,
                  const std::vector<int64_t>& shape, size_t byte_size);

  // Sends the response, or its last part. `error` is null for success.
  void Send(const Error* error = nullptr);
  // Sends a part that is not the last. Only for decoupled models.
  void SendPart();

 private:
  void Send(uint32_t flags, TRITONSERVER_Error* error, const char* doing);

  const RequestHandle& request_;
  const uint64_t made_ns_;
  TRITONBACKEND_Response* handle_ = nullptr;
};

}  // namespace ct2triton
