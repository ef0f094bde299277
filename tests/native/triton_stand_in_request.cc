// SPDX-License-Identifier: Apache-2.0
//
// Requests and responses of the stand-in.
#include <algorithm>
#include <utility>

#include "triton_stand_in.h"
#include "triton_stand_in_handles.h"

namespace stand_in {
namespace {

std::vector<std::string> CutBytes(const std::string& bytes, size_t buffers) {
  std::vector<std::string> cut;
  const size_t step = std::max<size_t>(1, bytes.size() / buffers);
  for (size_t i = 0; i + 1 < buffers; ++i) {
    cut.push_back(bytes.substr(std::min(bytes.size(), i * step), step));
  }
  cut.push_back(bytes.substr(std::min(bytes.size(), (buffers - 1) * step)));
  return cut;
}

// Strings lie behind each other, each with its length in front.
size_t CountStrings(const std::string& bytes) {
  size_t count = 0;
  for (size_t at = 0; at < bytes.size(); ++count) {
    Require(at + 4 <= bytes.size(), "a string without its length");
    size_t length = 0;
    for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
    Require(length <= bytes.size() - at - 4, "a string longer than its buffer");
    at += 4 + length;
  }
  return count;
}

}  // namespace

void CheckOutput(const Tensor& tensor) {
  uint64_t elements = 1;
  for (const int64_t dim : tensor.shape) {
    Require(dim >= 0, tensor.name + " has a dimension below 0");
    elements *= static_cast<uint64_t>(dim);
  }
  if (tensor.type == TRITONSERVER_TYPE_BYTES) {
    Require(CountStrings(tensor.bytes) == elements, tensor.name + ": strings and shape differ");
  } else {
    const uint64_t bytes = elements * ElementSize(tensor.type);
    Require(bytes == tensor.bytes.size(), tensor.name + ": bytes and shape differ");
  }
}

size_t ElementSize(TRITONSERVER_DataType type) {
  static constexpr size_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2};
  return kSizes[type];
}

void Call::Cancel() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
}

bool Call::Cancelled() const noexcept {
  if (when_asked) when_asked();
  const std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

void Call::TakePart(Answer part) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Require(takes_parts, "an answer that is not the last");
  Require(!part.error, "an error that is not the last answer");
  Require(!answered_, "a part behind the last answer");
  parts_.push_back(std::move(part));
}

void Call::TakeAnswer(Answer answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Require(!answered_, "a request was answered twice");
  answered_ = true;
  answer_ = std::move(answer);
}

void Call::TakeBack() {
  if (when_taken_back) when_taken_back();
  const std::lock_guard<std::mutex> lock(mutex_);
  Require(answered_, "a request was given back unanswered");
  Require(!taken_back_, "a request was given back twice");
  taken_back_ = true;
  changed_.notify_all();
}

const Answer& Call::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return taken_back_; });
  return answer_;
}

TRITONBACKEND_Request* NewRequest(RequestContent content, std::shared_ptr<Call> call) {
  auto request = std::make_unique<TRITONBACKEND_Request>();
  for (const Tensor& tensor : content.inputs) {
    auto input = std::make_unique<TRITONBACKEND_Input>();
    input->tensor = tensor;
    input->buffers = CutBytes(tensor.bytes, std::max<size_t>(1, content.buffers));
    request->inputs.push_back(std::move(input));
  }
  request->content = std::move(content);
  request->call = std::move(call);
  return request.release();
}

}  // namespace stand_in

using stand_in::Require;

TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request*, const char** id) {
  *id = "";
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* cancelled) {
  *cancelled = request->call->Cancelled();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request,
                                                        uint32_t* count) {
  *count = static_cast<uint32_t>(request->content.parameters.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** key,
                                                   TRITONSERVER_ParameterType* type,
                                                   const void** value) {
  const auto& [name, given] = request->content.parameters.at(index);
  static constexpr TRITONSERVER_ParameterType kTypes[] = {
      TRITONSERVER_PARAMETER_STRING, TRITONSERVER_PARAMETER_INT, TRITONSERVER_PARAMETER_BOOL,
      TRITONSERVER_PARAMETER_DOUBLE};
  *key = name.c_str();
  *type = kTypes[given.index()];
  if (const auto* text = std::get_if<std::string>(&given)) {
    *value = text->c_str();
  } else {
    std::visit([&](const auto& number) { *value = &number; }, given);
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  *count = static_cast<uint32_t>(request->inputs.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input** input) {
  *input = request->inputs.at(index).get();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  *count = static_cast<uint32_t>(request->content.outputs.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index, const char** name) {
  *name = request->content.outputs.at(index).c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags) {
  Require(flags == TRITONSERVER_REQUEST_RELEASE_ALL, "a request was not given back for good");
  Require(request->reports == 1, "a request was given back without statistics");
  const auto call = request->call;
  delete request;  // first, so that nobody is left to wait when the last handle goes
  call->TakeBack();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* rank,
                                                  uint64_t* byte_size, uint32_t* buffer_count) {
  *name = input->tensor.name.c_str();
  *type = input->tensor.type;
  *shape = input->tensor.shape.data();
  *rank = static_cast<uint32_t>(input->tensor.shape.size());
  *byte_size = input->tensor.bytes.size();
  *buffer_count = static_cast<uint32_t>(input->buffers.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* byte_size,
                                              TRITONSERVER_MemoryType* memory_type,
                                              int64_t* memory_type_id) {
  *buffer = input->buffers.at(index).data();
  *byte_size = input->buffers.at(index).size();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  *response = new TRITONBACKEND_Response;
  (*response)->call = request->call;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
  delete response;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType type,
                                                 const int64_t* shape, const uint32_t rank) {
  auto made = std::make_unique<TRITONBACKEND_Output>();
  made->tensor = {name, type, {shape, shape + rank}, {}};
  *output = made.get();
  response->outputs.push_back(std::move(made));
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t byte_size,
                                               TRITONSERVER_MemoryType* memory_type,
                                               int64_t* memory_type_id) {
  Require(output->buffer == nullptr, "the buffer of an output was asked for twice");
  output->buffer = std::make_unique<char[]>(byte_size);
  output->byte_size = byte_size;
  *buffer = output->buffer.get();
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               const uint32_t flags, TRITONSERVER_Error* error) {
  const std::unique_ptr<TRITONBACKEND_Response> sent(response);
  const bool last = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL;
  Require(last || flags == 0, "unknown flags of an answer");
  stand_in::Answer answer;
  if (error != nullptr) {
    Require(sent->outputs.empty(), "an error with outputs");
    Require(!error->text.empty(), "an error without a text");
    answer.error = error->code;
    answer.message = error->text;
  }
  for (const auto& output : sent->outputs) {
    output->tensor.bytes.assign(output->buffer.get(), output->byte_size);
    stand_in::CheckOutput(output->tensor);
    answer.outputs[output->tensor.name] = output->tensor;
  }
  last ? sent->call->TakeAnswer(std::move(answer)) : sent->call->TakePart(std::move(answer));
  return nullptr;
}
