// SPDX-License-Identifier: Apache-2.0
//
// Triton's side of the backend's C interface, as far as this backend calls it: strict where the
// server is lenient, and it counts. The whole program can then be instrumented by a sanitizer or
// fed by a fuzzer, which the real server cannot.
//
// It ends the program when the backend answers a request twice, gives it back unanswered, reports
// an output whose bytes do not fit its shape, or loses a handle. A request is freed the moment it
// is given back, so that AddressSanitizer sees any later use.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "triton_c_api.h"

namespace stand_in {

// Ends the program with a sentence unless `holds`.
void Require(bool holds, std::string_view what);

struct Tensor {
  std::string name;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> shape;
  std::string bytes;
};

// What a client gets.
struct Answer {
  std::optional<TRITONSERVER_Error_Code> error;
  std::string message;
  std::map<std::string, Tensor> outputs;
};

// A request as both ends see it.
class Call {
 public:
  // The client's end.
  void Cancel() noexcept;
  const Answer& Wait();  // until the request is answered and given back
  // What came before the answer, in order. After Wait.
  const std::vector<Answer>& parts() const { return parts_; }

  // Called on the thread that asks whether the request is cancelled, and on the one that gives it
  // back. Set before the request is handed over.
  std::function<void()> when_asked;
  std::function<void()> when_taken_back;
  // The model is decoupled: the answer may come in parts. Likewise.
  bool takes_parts = false;

  // The server's end.
  bool Cancelled() const noexcept;
  void TakePart(Answer part);      // before the answer, which is the last part
  void TakeAnswer(Answer answer);  // once
  void TakeBack();                 // once, and answered

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;
  bool answered_ = false;
  bool taken_back_ = false;
  std::vector<Answer> parts_;
  Answer answer_;
};

using ParameterValue = std::variant<std::string, int64_t, bool, double>;

// What a client sends. An input's bytes come in `buffers` pieces.
struct RequestContent {
  std::vector<Tensor> inputs;
  size_t buffers = 1;
  std::vector<std::pair<std::string, ParameterValue>> parameters;
  std::vector<std::string> outputs;
};

TRITONBACKEND_Request* NewRequest(RequestContent content, std::shared_ptr<Call> call);

// A loaded model with its instances. Throws std::runtime_error with the backend's message when it
// refuses to load.
class Model {
 public:
  // `config`: the JSON text of the model configuration, completed by the backend. on_gpus: each
  // instance on a GPU of its own, from the first; else on the processor.
  Model(const std::string& folder, const std::string& config, size_t instances,
        bool on_gpus = false);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Hands a batch to the backend, on the calling thread; one thread per instance at a time. Answers
  // it where the backend had no memory to take it over.
  void Execute(size_t instance, std::vector<TRITONBACKEND_Request*> requests);
  // Why an instance is not ready, as the answer of a request that it cannot serve; no error: it is.
  Answer Ready(size_t instance);
  // Requests whose statistics the backend reported for the instance.
  uint64_t Reported(size_t instance) const;

 private:
  void Unload() noexcept;

  std::unique_ptr<TRITONBACKEND_Model> model_;
  std::vector<std::unique_ptr<TRITONBACKEND_ModelInstance>> instances_;
};

// An error in the log that has this in it is no bug of ours.
void ExpectError(std::string part);

// Needs some memory, as Triton may at any call: throws where there is none.
void UseMemory();

// Errors, messages, requests, responses and metrics that are not freed; 0 when nothing is going on.
long LiveHandles();
// The metrics among them: a model makes one for a language when it first meets it.
long LiveMetrics();

// Ends the program unless the bytes are as many as the shape promises.
void CheckOutput(const Tensor& tensor);

// Bytes of one element; 0 for strings.
size_t ElementSize(TRITONSERVER_DataType type);

}  // namespace stand_in
