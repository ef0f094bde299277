// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "queue/translator.h"
#include "rows/row_listener.h"
#include "serving/model_state.h"
#include "serving/pending_request.h"
#include "triton_c_api.h"

namespace ct2triton {

// One instance of a model: takes over Triton's batches. Their requests pass their rows to the
// translator, whose workers answer them.
class InstanceState : public RunObserver {
 public:
  // Makes the state of an instance and gives it to Triton. Throws Error.
  static void Attach(TRITONBACKEND_ModelInstance* instance);
  static void Detach(TRITONBACKEND_ModelInstance* instance);
  static InstanceState& Of(TRITONBACKEND_ModelInstance* instance);

  explicit InstanceState(TRITONBACKEND_ModelInstance* instance);
  // Waits for the requests in flight, because their workers use this object.
  ~InstanceState() override;

  // Takes over the requests, or gives them to an instance of the model on another GPU that has less
  // load, and returns, but blocks while the number of requests waiting for the
  // queue reaches its limit of rows: Triton queues further requests. With tenants, requests are
  // refused instead, so that no tenant waits for another in Triton's queue. Throws only before the
  // first request is taken over.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

  const Device& device() const { return translator_->model().device(); }
  // Requests and rows that are not answered; the most if the device is lost.
  size_t Load() const;

  // Throws Error(kUnavailable) if no request can be served until the server is restarted.
  void RequireReady() const;

  void RowLeft(const RowReport& report) noexcept override;
  void RunDone(const RunReport& report) noexcept override;

 private:
  using Batch = std::vector<std::shared_ptr<PendingRequest>>;

  Batch TakeOver(TRITONBACKEND_Request** requests, uint32_t count);
  void Accept(TRITONBACKEND_Request** requests, uint32_t count);
  bool MustWait();

  ModelState& model_;
  const std::shared_ptr<Translator> translator_;
  RequestContext context_;
};

}  // namespace ct2triton
