// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "error.h"
#include "queue/count.h"
#include "queue/supersede_keys.h"
#include "queue/translator.h"
#include "rows/row_listener.h"
#include "serving/deadline_clock.h"
#include "serving/front.h"
#include "serving/model_metrics.h"
#include "serving/row_feeder.h"
#include "serving/task_thread.h"
#include "serving/tenants.h"
#include "serving/wait_estimate.h"
#include "triton/in_flight.h"
#include "triton/request.h"
#include "triton/request_trace.h"
#include "triton/statistics.h"
#include "triton_c_api.h"

namespace ct2triton {

class PendingRequest;

// Approximate memory of the rows of one kind of requests.
struct RowBytes {
  Counter whole = std::make_shared<Count>();      // that are read and not all handed over
  Counter half_read = std::make_shared<Count>();  // so far
  const PendingRequest* reads_alone = nullptr;    // while too much is half read
};

// What the thread that reads requests of an instance keeps of them, slice by slice.
struct Reading {
  RowBytes modest, large;
  size_t turns_in_vain = 0;  // of requests that had to wait, one after another
};

// What the requests of one instance need of it. The instance waits for `in_flight` before it goes.
struct RequestContext {
  TRITONBACKEND_ModelInstance* instance = nullptr;
  RunObserver* observer = nullptr;
  const Front* front = nullptr;
  Translator* translator = nullptr;
  SupersedeKeys* supersede_keys = nullptr;
  const std::string* tenant_header = nullptr;  // empty: no tenants
  Tenants* tenants = nullptr;
  DeadlineClock* deadlines = nullptr;
  const WaitEstimate* waits = nullptr;
  ModelMetrics* metrics = nullptr;
  RowFeeder* feeder = nullptr;
  TaskThread* reading = nullptr;    // of requests that take more than a slice of work
  TaskThread* answering = nullptr;  // of large requests
  Reading* read = nullptr;          // only the thread for that changes it
  Counter entering;                 // requests whose rows are not all handed over
  std::shared_ptr<InFlight> in_flight;
};

// One request from the moment it is ours until it is answered and given back. It ends its
// answer, of one part or of many, exactly once and releases exactly once on every path, at the
// latest in its destructor. What its tensors mean, the front knows.
class PendingRequest : public RowListener,
                       public RowSource,
                       public Supersedable,
                       public Expiring,
                       public Refusable,
                       public std::enable_shared_from_this<PendingRequest> {
 public:
  explicit PendingRequest(const RequestContext& context) : context_(context) {}
  ~PendingRequest() override;

  // From here on the request is ours.
  void Own(TRITONBACKEND_Request* request) noexcept;
  // Reads a slice of it. Whether a request is small shows here: it is read whole.
  void Read() noexcept;
  // Hands its rows over; their answers come back here. A request that has not been read whole is
  // read on by the thread for that, and then handed over.
  void Submit() noexcept;

  RunObserver* observer() const noexcept override { return context_.observer; }
  std::string_view tenant() const noexcept override;
  // Also once a row has failed, or the time for a retry is over: the other rows would be computed
  // for nothing.
  bool Cancelled() const noexcept override;
  bool Ended() const noexcept override { return ended_; }
  bool Supersede() noexcept override;
  bool Expire() noexcept override;
  bool Refuse(const Error& error) noexcept override { return End(error, /*superseded=*/false); }
  void RowGrew(size_t row, int64_t id) noexcept override;
  void RowDone(size_t row, RowResult result, const RunTimes& times) noexcept override;
  void RowFailed(size_t row, const Error& error, const RunTimes& times) noexcept override;

  bool IsLarge() const noexcept override;
  size_t TenantRows() const noexcept override { return tenant_ ? tenant_->rows.load() : 0; }
  Handed HandOver(size_t most) noexcept override;
  void LeaveFeeder() noexcept override { LetGo(); }

 private:
  static constexpr size_t kSmallRequest = 32;  // rows; a request of more is large
  static const Error client_cancelled_;

  // Has the stream, if the answer is one, hear of a row; not once the request has failed, or its
  // client has gone.
  template <class Event>
  void Stream(Event event) noexcept;
  template <class Event>
  void StreamNow(const Event& event) noexcept;
  void Fail(const Error& error) noexcept;
  // Ends the rows that have no answer yet. False if all have one.
  bool End(const Error& error, bool superseded) noexcept;
  void SetTimeout(uint64_t timeout_us);
  void RequireTime() const;
  void EnterTenant();
  void LeaveEntering() noexcept;
  void FinishReading();
  RowBytes& KindOf(size_t bytes) const noexcept;
  bool MayReadOn() const noexcept;
  void ReadOn() noexcept;
  void Announce();
  void Feed(bool later) noexcept;
  void CountAnswered(size_t row, const RunTimes& times) noexcept;
  // Gives up a hold; the last one to do so answers the request, once no row is out. Flagged rows
  // may have to be decoded again before.
  void LetGo() noexcept;
  // Whether flagged rows may be decoded again, now that all rows have an answer: a second answer
  // may take as long as the first one. Called with the lock.
  bool HasTimeForRetry() const noexcept;
  uint64_t EndOfRetry_ns() const noexcept;
  void JudgeOn() noexcept;
  bool JudgeSlice() noexcept;
  void Retry(std::vector<CheckedRow> rows);
  void KeepBetter() noexcept;
  // On the thread that answers large requests.
  void AnswerLater(std::function<void()> task);
  // The same, also where memory has run out for a while.
  template <class Task>
  void SurelyLater(const Task& task) noexcept;
  bool AnswersLater() const noexcept;
  void AnswerOn() noexcept;
  bool PrepareAnswer() noexcept;
  void Finish() noexcept;
  void SendAnswer() noexcept;
  void SendFailure() noexcept;

  const RequestContext context_;
  RequestHandle request_;
  std::unique_ptr<RequestReader> reader_;  // until it is read
  Counted half_read_;
  DecodedRequest decoded_;          // its rows until they are handed over
  bool large_ = false;              // set before its rows are handed over
  std::string key_;                 // under which it may be superseded
  std::shared_ptr<Tenant> tenant_;  // null: no tenants
  std::optional<DeadlineClock::Ticket> deadline_;
  uint64_t came_ns_ = 0;

  mutable std::mutex mutex_;  // of all below, until the request is finished
  // Threads that work on the request and not on one of its rows, and the feeder. While there are
  // any it is not finished, and so its instance and translator are there.
  size_t holds_ = 0;
  size_t next_row_ = 0;    // the first that is not handed over
  size_t rows_out_ = 0;    // handed over and not answered
  bool retrying_ = false;  // all rows have an answer, and flagged ones may get another
  // Of the rows, those that are decoded again follow the others.
  size_t first_rows_ = std::numeric_limits<size_t>::max();
  bool in_feeder_ = false;  // which hands the next rows over
  bool finished_ = false;
  Counted entering_;
  Counted bytes_;
  std::vector<RowResult> results_;
  std::optional<Error> failure_;  // the first one
  std::optional<Error> late_;     // the next one, after the deadline
  RequestTimes times_;
  RequestTrace trace_;
  std::atomic<bool> superseded_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace ct2triton
