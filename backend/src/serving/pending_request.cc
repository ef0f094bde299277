// SPDX-License-Identifier: Apache-2.0
#include "serving/pending_request.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "triton/log.h"
#include "triton/response.h"

namespace ct2triton {
namespace {

// Made before they are needed: a request can be failed where no memory is left.
const Error client_cancelled(ErrorCode::kCancelled, "the client cancelled the request");
const Error rows_lost(ErrorCode::kInternal, "the request was dropped, its rows are lost");

// A long text has more rows than may wait at once: they are handed over part by part, so that it
// fills neither the queue nor the memory, and rows of others come between.
constexpr size_t kMostRowsOut = 256;
constexpr size_t kFewRowsOut = kMostRowsOut / 2;  // at which the next part follows

constexpr std::chrono::milliseconds kMemoryWait(1);
constexpr int kMostMemoryWaits = 10'000;

}  // namespace

PendingRequest::~PendingRequest() {
  if (!request_.owned()) return;
  if (!failure_) failure_ = rows_lost;
  Finish();
}

void PendingRequest::Own(TRITONBACKEND_Request* request) noexcept {
  request_.Own(request);
  holds_ = 1;  // until Submit has handed its first rows over
  context_.in_flight->Add();
  trace_.Begin(request_);
}

void PendingRequest::Decode() noexcept {
  try {
    if (request_.IsCancelled()) throw client_cancelled;
    decoded_ = context_.front->Decode(request_);
    results_.resize(decoded_.rows.size());
    LogVerboseLazily([&] {
      return "request '" + request_.Id() + "': " + std::to_string(results_.size()) + " rows";
    });
    if (decoded_.stream != nullptr) decoded_.stream->Begin();
    Enter();
  } catch (...) {
    Fail(CurrentError());
  }
}

// The last thing that may fail: a request that is refused ends no other one.
void PendingRequest::Enter() {
  const std::string& key = decoded_.options.supersede_key;
  if (!key.empty()) context_.supersede_keys->Enter(key, shared_from_this());
}

void PendingRequest::Submit() noexcept {
  HandOver();
  LetGo();
}

// Rows that need no computing are answered before SubmitFrom returns: the loop goes on itself, so
// that a request of very many of them does not call it from within.
void PendingRequest::HandOver() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(handing_over_, true)) return;
  }
  for (RowRange rows = NextRows(); rows.end > rows.begin; rows = NextRows()) {
    try {
      const auto begin = decoded_.rows.begin();
      context_.translator->SubmitFrom(
          rows.begin,
          {std::make_move_iterator(begin + static_cast<std::ptrdiff_t>(rows.begin)),
           std::make_move_iterator(begin + static_cast<std::ptrdiff_t>(rows.end))},
          shared_from_this());
    } catch (...) {
      Fail(CurrentError());
    }
    // Meanwhile, perhaps, before the rows were there to be withdrawn.
    if (superseded_) context_.translator->Withdraw(*this, SupersededError());
  }
}

// The next part, counted as handed over; none while it is not time for it.
PendingRequest::RowRange PendingRequest::NextRows() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t all = decoded_.rows.size();
  handing_over_ = !failure_ && rows_out_ <= kFewRowsOut && next_row_ < all;
  if (!handing_over_) return {};
  const RowRange rows{next_row_, std::min(all, next_row_ + kMostRowsOut - rows_out_)};
  rows_out_ += rows.end - rows.begin;
  next_row_ = rows.end;
  return rows;
}

void PendingRequest::Fail(const Error& error) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) failure_ = error;
}

bool PendingRequest::Supersede() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || failure_) return false;
    failure_ = SupersededError();
    superseded_ = true;
    ++holds_;
  }
  context_.translator->Withdraw(*this, SupersededError());
  LetGo();
  return true;
}

bool PendingRequest::Cancelled() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_ || request_.IsCancelled();
}

// Rows of a client that has gone may have ended half-way.
template <class Event>
void PendingRequest::Stream(const Event& event) noexcept {
  if (decoded_.stream == nullptr || Cancelled()) return;
  try {
    event(decoded_.stream);
  } catch (...) {
    Fail(CurrentError());
  }
}

void PendingRequest::RowGrew(size_t row, int64_t id) noexcept {
  Stream([&](AnswerStream* stream) { stream->RowGrew(row, id); });
}

void PendingRequest::RowDone(size_t row, RowResult result, const CallTimes& times) noexcept {
  results_[row] = std::move(result);  // each row is answered once: no other thread is at this one
  Stream([&](AnswerStream* stream) { stream->RowDone(row, results_[row]); });
  CountAnswered(row, times);
}

void PendingRequest::RowFailed(size_t row, const Error& error, const CallTimes& times) noexcept {
  Fail(error);
  CountAnswered(row, times);
}

void PendingRequest::CountAnswered(size_t row, const CallTimes& times) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.Add(times);
    trace_.Add(row, times);
    --rows_out_;
    ++holds_;
  }
  HandOver();
  LetGo();
}

// Rows that were not handed over are left where the request has failed: nobody needs them.
void PendingRequest::LetGo() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--holds_ > 0 || rows_out_ > 0) return;
    finished_ = true;
  }
  Finish();
}

// Nothing of the instance may be used once the request is released: its model may be gone.
void PendingRequest::Finish() noexcept {
  // Its rows may have ended half-way: such an answer must not pass for a whole one.
  const std::string& key = decoded_.options.supersede_key;
  if (!key.empty()) context_.supersede_keys->Leave(key, *this);
  if (!failure_ && request_.IsCancelled()) failure_ = client_cancelled;
  if (!failure_) SendAnswer();
  if (failure_) SendFailure();
  context_.metrics->CountRequest(failure_ ? &*failure_ : nullptr, superseded_);
  trace_.Report();
  ReportRequest(context_.instance, request_, !failure_, times_.Span());
  request_.Release();
  context_.in_flight->Done();
}

void PendingRequest::SendAnswer() noexcept {
  try {
    Response response(request_);
    decoded_.encoder->Encode(results_, &response);
    response.Send();
  } catch (...) {
    failure_ = CurrentError();
  }
}

// Where Triton has no memory for a response, the client waits until it has some.
void PendingRequest::SendFailure() noexcept {
  if (failure_->code() == ErrorCode::kInternal) LogError(failure_->what());
  for (int waits = 0; waits < kMostMemoryWaits; ++waits) {
    try {
      Response(request_).Send(&*failure_);
      return;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kMemoryWait);
    } catch (...) {
      LogError(CurrentError().what());
      return;
    }
  }
  LogError("a request could not be answered for want of memory");
}

}  // namespace ct2triton
