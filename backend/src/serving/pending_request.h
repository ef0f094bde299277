// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "error.h"
#include "queue/supersede_keys.h"
#include "queue/translator.h"
#include "rows/row_listener.h"
#include "serving/front.h"
#include "serving/model_metrics.h"
#include "triton/in_flight.h"
#include "triton/request.h"
#include "triton/request_trace.h"
#include "triton/statistics.h"
#include "triton_c_api.h"

namespace ct2triton {

// What the requests of one instance need of it. The instance waits for `in_flight` before it goes.
struct RequestContext {
  TRITONBACKEND_ModelInstance* instance = nullptr;
  CallObserver* observer = nullptr;
  const Front* front = nullptr;
  Translator* translator = nullptr;
  SupersedeKeys* supersede_keys = nullptr;
  ModelMetrics* metrics = nullptr;
  std::shared_ptr<InFlight> in_flight;
};

// One request from the moment it is ours until it is answered and given back. It ends its
// answer, of one part or of many, exactly once and releases exactly once on every path, at the
// latest in its destructor. What its tensors
// mean, the front knows.
class PendingRequest : public RowListener,
                       public Supersedable,
                       public std::enable_shared_from_this<PendingRequest> {
 public:
  explicit PendingRequest(const RequestContext& context) : context_(context) {}
  ~PendingRequest() override;

  // From here on the request is ours.
  void Own(TRITONBACKEND_Request* request) noexcept;
  // Makes its rows. A request that is wrong, or has no rows, is answered at once.
  void Decode() noexcept;
  // Hands its rows over; their answers come back here.
  void Submit() noexcept;

  CallObserver* observer() const noexcept override { return context_.observer; }
  // Also once a row has failed: the other rows would be computed for nothing.
  bool Cancelled() const noexcept override;
  bool Superseded() const noexcept override { return superseded_; }
  bool Supersede() noexcept override;
  void RowGrew(size_t row, int64_t id) noexcept override;
  void RowDone(size_t row, RowResult result, const CallTimes& times) noexcept override;
  void RowFailed(size_t row, const Error& error, const CallTimes& times) noexcept override;

 private:
  // Rows of the request, from `begin` to before `end`.
  struct RowRange {
    size_t begin = 0;
    size_t end = 0;
  };

  // Has the stream, if the answer is one, hear of a row; not once the request has failed, or its
  // client has gone.
  template <class Event>
  void Stream(const Event& event) noexcept;
  void Fail(const Error& error) noexcept;
  void Enter();
  // Hands rows over as long as it is time for the next ones, unless another thread is doing so.
  void HandOver() noexcept;
  RowRange NextRows() noexcept;
  void CountAnswered(size_t row, const CallTimes& times) noexcept;
  // Gives up a hold; the last one to do so answers the request, once no row is out.
  void LetGo() noexcept;
  void Finish() noexcept;
  void SendAnswer() noexcept;
  void SendFailure() noexcept;

  const RequestContext context_;
  RequestHandle request_;
  DecodedRequest decoded_;  // its rows until they are handed over

  mutable std::mutex mutex_;  // of all below, until the request is finished
  // Threads that work on the request and not on one of its rows. While there are any it is not
  // finished, and so its instance and translator are there.
  size_t holds_ = 0;
  size_t next_row_ = 0;  // the first that is not handed over
  size_t rows_out_ = 0;  // handed over and not answered
  bool handing_over_ = false;
  bool finished_ = false;
  std::vector<RowResult> results_;
  std::optional<Error> failure_;  // the first one
  RequestTimes times_;
  RequestTrace trace_;
  std::atomic<bool> superseded_{false};
};

}  // namespace ct2triton
