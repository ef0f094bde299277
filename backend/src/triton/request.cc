// SPDX-License-Identifier: Apache-2.0
#include "triton/request.h"

#include <cstdint>

#include "triton/guard.h"

namespace ct2triton {
namespace {

ParameterValue ReadParameterValue(TRITONSERVER_ParameterType type, const void* value,
                                  const std::string& name) {
  switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
      return std::string(static_cast<const char*>(value));
    case TRITONSERVER_PARAMETER_INT:
      return *static_cast<const int64_t*>(value);
    case TRITONSERVER_PARAMETER_BOOL:
      return *static_cast<const bool*>(value);
    case TRITONSERVER_PARAMETER_DOUBLE:
      return *static_cast<const double*>(value);
    default:
      break;
  }
  ThrowInvalid(name + ": a parameter must be an integer, a number, a boolean or a string");
}

}  // namespace

void RequestHandle::Release() noexcept {
  TRITONBACKEND_Request* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) return;
  statistics_.reset();
  LogIfError("releasing a request", [&] {
    return TRITONBACKEND_RequestRelease(handle, TRITONSERVER_REQUEST_RELEASE_ALL);
  });
}

std::string RequestHandle::Id() const {
  const char* id = nullptr;
  ThrowIfError(TRITONBACKEND_RequestId(handle_, &id), "reading a request's id");
  return id == nullptr ? "" : id;
}

bool RequestHandle::IsCancelled() const noexcept {
  if (&TRITONBACKEND_RequestIsCancelled == nullptr) return false;
  bool cancelled = false;
  LogIfError("asking for cancellation",
             [&] { return TRITONBACKEND_RequestIsCancelled(handle_, &cancelled); });
  return cancelled;
}

uint64_t RequestHandle::Timeout_us() const {
  uint64_t timeout = 0;
  if (&TRITONBACKEND_InferenceRequestTimeoutMicroseconds != nullptr) {
    ThrowIfError(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(handle_, &timeout),
                 "reading a request's timeout");
  }
  return timeout;
}

std::vector<std::pair<std::string, ParameterValue>> RequestHandle::Parameters() const {
  uint32_t count = 0;
  ThrowIfError(TRITONBACKEND_RequestParameterCount(handle_, &count), "reading the parameters");
  std::vector<std::pair<std::string, ParameterValue>> parameters;
  parameters.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    ThrowIfError(TRITONBACKEND_RequestParameter(handle_, i, &name, &type, &value),
                 "reading the parameters");
    parameters.emplace_back(name, ReadParameterValue(type, value, name));
  }
  return parameters;
}

std::vector<TRITONBACKEND_Input*> RequestHandle::Inputs() const {
  uint32_t count = 0;
  ThrowIfError(TRITONBACKEND_RequestInputCount(handle_, &count), "reading the inputs");
  std::vector<TRITONBACKEND_Input*> inputs(count);
  for (uint32_t i = 0; i < count; ++i) {
    ThrowIfError(TRITONBACKEND_RequestInputByIndex(handle_, i, &inputs[i]), "reading the inputs");
  }
  return inputs;
}

std::vector<std::string> RequestHandle::WantedOutputs() const {
  uint32_t count = 0;
  ThrowIfError(TRITONBACKEND_RequestOutputCount(handle_, &count), "reading the wanted outputs");
  std::vector<std::string> outputs;
  outputs.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    ThrowIfError(TRITONBACKEND_RequestOutputName(handle_, i, &name), "reading the wanted outputs");
    outputs.emplace_back(name);
  }
  return outputs;
}

}  // namespace ct2triton
