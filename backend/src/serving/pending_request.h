// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "error.h"
#include "queue/translator.h"
#include "rows/row_listener.h"
#include "triton/in_flight.h"
#include "triton/request.h"
#include "triton/statistics.h"
#include "triton_c_api.h"

namespace ct2triton {

// What the requests of one instance need of it. The instance waits for `in_flight` before it goes.
struct RequestContext {
  TRITONBACKEND_ModelInstance* instance = nullptr;
  CallObserver* observer = nullptr;
  const ModelConfig* config = nullptr;
  const Translator* translator = nullptr;
  std::shared_ptr<InFlight> in_flight;
};

// One request from the moment it is ours until it is answered and given back: it answers exactly
// once and releases exactly once on every path, at the latest in its destructor.
class PendingRequest : public RowListener {
 public:
  explicit PendingRequest(const RequestContext& context) : context_(context) {}
  ~PendingRequest() override;

  // From here on the request is ours.
  void Own(TRITONBACKEND_Request* request) noexcept;

  // Reads and checks the request. Its rows are to be submitted with this object as the listener;
  // without rows, it has been answered already.
  std::vector<CheckedRow> Prepare() noexcept;

  // What the client is told if rows never come back; nothing changes once all are in.
  void Abandon(const Error& error) noexcept;

  CallObserver* observer() const noexcept override { return context_.observer; }
  // Also once a row has failed: the other rows would be computed for nothing.
  bool Cancelled() const noexcept override;
  void RowDone(size_t row, RowResult result, const CallTimes& times) noexcept override;
  void RowFailed(size_t row, const Error& error, const CallTimes& times) noexcept override;

 private:
  std::vector<CheckedRow> ReadRows();
  void RowIn(const CallTimes& times) noexcept;
  void Finish() noexcept;
  void Answer() noexcept;
  void AnswerFailure() noexcept;

  const RequestContext context_;
  Request request_;
  std::vector<std::string> wanted_;
  bool batched_ = true;  // shapes have a leading number of rows

  mutable std::mutex mutex_;  // of all below, until the last row is in
  size_t rows_out_ = 0;
  std::vector<RowResult> results_;
  std::optional<Error> failure_;  // the first one
  RequestTimes times_;
};

}  // namespace ct2triton
