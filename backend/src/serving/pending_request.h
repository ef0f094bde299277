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
#include "serving/model_state.h"
#include "serving/row_feeder.h"
#include "serving/task_thread.h"
#include "serving/tenants.h"
#include "triton/request.h"
#include "triton/request_trace.h"
#include "triton/statistics.h"
#include "triton_c_api.h"

namespace ct2triton {

class PendingRequest;

// Approximate memory of the rows of one kind of requests.
struct RowBytes {
  Counter whole = std::make_shared<Count>();      // of requests read and not handed over completely
  Counter half_read = std::make_shared<Count>();  // of requests half read, so far
  const PendingRequest* reads_alone = nullptr;    // the only one read while too much is half read
};

// State of the thread that reads requests of an instance, slice by slice.
struct Reading {
  RowBytes modest, large;
  size_t consecutive_waits = 0;  // requests in succession that had to wait
};

// What the requests of an instance share. The instance waits for `in_flight` before it ends.
struct RequestContext {
  TRITONBACKEND_ModelInstance* const instance;
  RunObserver* const observer;
  ModelState& model;
  Translator* const translator;
  const Front front;
  // In this order, because each member uses those before it.
  const std::shared_ptr<DeadlineClock> deadlines = DeadlineClock::OfProcess();
  Tenants tenants{};
  TaskThread answering{};  // answers large requests
  RowFeeder feeder{translator};
  Reading read{};        // only the reading thread changes it
  TaskThread reading{};  // reads requests of more than a slice of work
  const Counter entering = std::make_shared<Count>();   // requests with rows not handed over
  const Counter in_flight = std::make_shared<Count>();  // requests that are not released
};

// One request from when we own it until it is answered and released. On every path it ends its
// answer, of one part or many, exactly once, and is released exactly once, at the latest in its
// destructor. The front interprets its tensors.
class PendingRequest : public RowListener,
                       public RowSource,
                       public Supersedable,
                       public Expiring,
                       public Refusable,
                       public std::enable_shared_from_this<PendingRequest> {
 public:
  explicit PendingRequest(RequestContext* context) : context_(*context) {}
  ~PendingRequest() override;

  // Takes ownership of the request.
  void Own(TRITONBACKEND_Request* request) noexcept;
  // Reads a slice of it, which is all of a small request.
  void Read() noexcept;
  // Hands its rows over; their answers are reported here. If it is not read completely, the reading
  // thread continues and then hands it over.
  void Submit() noexcept;

  RunObserver* observer() const noexcept override { return context_.observer; }
  std::string_view tenant() const noexcept override;
  // True also if a row has failed or the time for a retry is over, because the other rows are then
  // not needed.
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
  static constexpr size_t kSmallRequest = 32;  // rows; a request with more is large
  static const Error client_cancelled_;

  // Reports a row to the stream, if there is one, unless the request has failed or its client has
  // gone.
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
  // Releases a hold. The last one answers the request, once no row is out; flagged rows may be
  // decoded again before.
  void LetGo() noexcept;
  // Whether there is time to decode flagged rows again, which may take as long as the first
  // answers. Called with the lock held.
  bool HasTimeForRetry() const noexcept;
  uint64_t EndOfRetry_ns() const noexcept;
  void JudgeOn() noexcept;
  bool JudgeSlice() noexcept;
  void Retry(std::vector<CheckedRow> rows);
  void KeepBetter() noexcept;
  // Runs the task on the thread that answers large requests.
  void AnswerLater(std::function<void()> task);
  // Like AnswerLater, but retries while memory has run out.
  template <class Task>
  void SurelyLater(const Task& task) noexcept;
  bool AnswersLater() const noexcept;
  void AnswerOn() noexcept;
  bool PrepareAnswer() noexcept;
  void Finish() noexcept;
  void SendAnswer() noexcept;
  void SendFailure() noexcept;

  RequestContext& context_;  // not to be used after the release
  Counted in_flight_;
  RequestHandle request_;
  std::unique_ptr<RequestReader> reader_;  // null once it is read
  Counted half_read_;
  DecodedRequest decoded_;          // holds the rows until they are handed over
  bool large_ = false;              // set before its rows are handed over
  std::string key_;                 // its supersede_key
  std::shared_ptr<Tenant> tenant_;  // null: no tenants
  std::optional<DeadlineClock::Ticket> deadline_;
  uint64_t came_ns_ = 0;

  mutable std::mutex mutex_;  // guards all members below, until the request is finished
  // Number of holders: threads that work on the request rather than on a row, and the feeder. While
  // it is not 0, the request is not finished, so its instance and translator exist.
  size_t holds_ = 0;
  size_t next_row_ = 0;    // first row not handed over
  size_t rows_out_ = 0;    // rows handed over and not answered
  bool retrying_ = false;  // all rows have an answer; flagged ones may get another
  // Number of rows before those that are decoded again.
  size_t first_rows_ = std::numeric_limits<size_t>::max();
  bool in_feeder_ = false;  // the feeder hands over the next rows
  bool finished_ = false;
  Counted entering_;
  Counted bytes_;
  std::vector<RowResult> results_;
  std::optional<Error> failure_;  // the first failure
  std::optional<Error> late_;     // the failure after the deadline
  RequestTimes times_;
  RequestTrace trace_;
  std::atomic<bool> superseded_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace ct2triton
