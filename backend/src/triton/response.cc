// SPDX-License-Identifier: Apache-2.0
#include "triton/response.h"

#include <utility>

#include "steady_clock.h"
#include "triton/guard.h"

namespace ct2triton {

Response::Response(const RequestHandle& request) : request_(request), made_ns_(SteadyNow_ns()) {
  ThrowIfError(TRITONBACKEND_ResponseNew(&handle_, request.handle()), "creating a response");
}

Response::~Response() {
  if (handle_ == nullptr) return;
  LogIfError("dropping a response", [&] { return TRITONBACKEND_ResponseDelete(handle_); });
}

void* Response::AddOutput(const std::string& name, TRITONSERVER_DataType type,
                          const std::vector<int64_t>& shape, size_t byte_size) {
  TRITONBACKEND_Output* output = nullptr;
  ThrowIfError(TRITONBACKEND_ResponseOutput(handle_, &output, name.c_str(), type, shape.data(),
                                            static_cast<uint32_t>(shape.size())),
               name.c_str());
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  ThrowIfError(
      TRITONBACKEND_OutputBuffer(output, &buffer, byte_size, &memory_type, &memory_type_id),
      name.c_str());
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    ThrowInvalid(name + " is wanted in GPU memory; ask for it in CPU memory");
  }
  return buffer;
}

void Response::Send(const Error* error) {
  const OwnedError status(error == nullptr ? nullptr : ToTritonError(*error));
  Send(TRITONSERVER_RESPONSE_COMPLETE_FINAL, status.get(), "sending a response");
}

void Response::SendPart() { Send(/*flags=*/0, /*error=*/nullptr, "sending a part of a response"); }

void Response::Send(uint32_t flags, TRITONSERVER_Error* error, const char* doing) {
  ThrowIfError(TRITONBACKEND_ResponseSend(std::exchange(handle_, nullptr), flags, error), doing);
  if (auto* statistics = request_.statistics()) statistics->Report(made_ns_, error);
}

}  // namespace ct2triton
