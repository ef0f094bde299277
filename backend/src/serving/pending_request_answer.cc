// SPDX-License-Identifier: Apache-2.0
//
// PendingRequest from the last answer of a row to the answer of the request.
#include <chrono>
#include <cstddef>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "serving/pending_request.h"
#include "steady_clock.h"
#include "triton/guard.h"
#include "triton/log.h"
#include "triton/response.h"

namespace ct2triton {
namespace {

constexpr std::chrono::milliseconds kMemoryWait(1);
constexpr int kMostMemoryWaits = 10'000;

// Repeats the action while memory has run out.
template <class Action>
void Patiently(const Action& action) noexcept {
  for (int waits = 0; waits < kMostMemoryWaits; ++waits) {
    try {
      return action();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kMemoryWait);
    } catch (...) {
      return LogCurrentError();
    }
  }
  LogError("a request could not be answered for want of memory");
}

}  // namespace

template <class Task>
void PendingRequest::SurelyLater(const Task& task) noexcept {
  Patiently([&] { AnswerLater(task); });
}

// If the request has failed, rows that were not handed over are dropped.
void PendingRequest::LetGo() noexcept {
  bool judges = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--holds_ > 0 || rows_out_ > 0) return;
    judges = !retrying_ && HasTimeForRetry();
    retrying_ = retrying_ || judges;
    holds_ = judges ? 1 : 0;
    finished_ = !judges;
  }
  if (judges) {
    if (!AnswersLater()) return JudgeOn();
    return SurelyLater([self = shared_from_this()] { self->JudgeOn(); });
  }
  if (!AnswersLater()) {
    if (retrying_) KeepBetter();
    return Finish();
  }
  SurelyLater([self = shared_from_this()] {
    if (self->retrying_) self->KeepBetter();
    self->AnswerOn();
  });
}

bool PendingRequest::HasTimeForRetry() const noexcept {
  if (!decoded_.retries || failure_ || ended_) return false;
  if (!deadline_) return true;
  const uint64_t now_ns = SteadyNow_ns();
  return now_ns + (now_ns - came_ns_) <= EndOfRetry_ns();
}

// Early enough for the first answers to be sent in time.
uint64_t PendingRequest::EndOfRetry_ns() const noexcept {
  constexpr uint64_t kPartForAnswer = 10;
  return deadline_->first - (deadline_->first - came_ns_) / kPartForAnswer;
}

// Runs with a hold on the request.
void PendingRequest::JudgeOn() noexcept {
  while (!JudgeSlice()) {
    if (!AnswersLater()) continue;
    try {
      return AnswerLater([self = shared_from_this()] { self->JudgeOn(); });
    } catch (const std::bad_alloc&) {  // it continues on this thread
    }
  }
  Feed(/*later=*/true);
  LetGo();
}

// False while there is more to do. If it fails, the first answers are returned.
bool PendingRequest::JudgeSlice() noexcept {
  try {
    if (Cancelled()) {
      decoded_.retries.reset();
    } else if (decoded_.retries->Judge(*decoded_.encoder, results_)) {
      Retry(decoded_.retries->TakeRows());
    } else {
      return false;
    }
  } catch (...) {
    decoded_.retries.reset();
  }
  return true;
}

// No other thread uses the rows or results: no row is out, and the feeder has left the request.
void PendingRequest::Retry(std::vector<CheckedRow> rows) {
  const size_t all = results_.size() + rows.size();
  if (!rows.empty() && deadline_) {
    const auto earlier = context_.deadlines->Watch(EndOfRetry_ns(), weak_from_this());
    context_.deadlines->Forget(*std::exchange(deadline_, earlier));
  }
  decoded_.rows.reserve(all);
  results_.reserve(all);
  const std::lock_guard<std::mutex> lock(mutex_);
  first_rows_ = results_.size();
  results_.resize(all);
  for (CheckedRow& row : rows) decoded_.rows.push_back(std::move(row));
}

void PendingRequest::KeepBetter() noexcept {
  try {
    if (decoded_.retries && !failure_) {
      decoded_.retries->KeepBetter(decoded_.encoder.get(), &results_);
    }
  } catch (...) {  // the first answers are returned
    LogCurrentError();
  }
  if (results_.size() > first_rows_) results_.resize(first_rows_);
}

// The task may end the request before Post returns, so the instance waits for both.
void PendingRequest::AnswerLater(std::function<void()> task) {
  const Counted posts(context_.in_flight);
  context_.answering.Post(std::move(task));
}

// A few rows may have many hypotheses.
bool PendingRequest::AnswersLater() const noexcept {
  if (large_) return true;
  size_t hypotheses = 0;
  for (const RowResult& row : results_) hypotheses += row.hypotheses.size();
  return hypotheses > kSmallRequest;
}

// Large answers alternate, slice by slice, with each other and with deadlines.
void PendingRequest::AnswerOn() noexcept {
  while (!PrepareAnswer()) {
    try {
      return AnswerLater([self = shared_from_this()] { self->AnswerOn(); });
    } catch (const std::bad_alloc&) {  // it continues on this thread
    }
  }
  Finish();
}

// False while there is more to do.
bool PendingRequest::PrepareAnswer() noexcept {
  try {
    return failure_ || request_.IsCancelled() || decoded_.encoder->Prepare(results_);
  } catch (...) {
    failure_ = CurrentError();
    return true;
  }
}

// Do not use the instance after the request is released: its model may be gone.
void PendingRequest::Finish() noexcept {
  if (!key_.empty()) context_.model.supersede_keys()->Leave(key_, *this);
  if (deadline_) context_.deadlines->Forget(*deadline_);
  LeaveEntering();
  bytes_ = Counted();
  // Its rows may have ended early, and a partial answer must not look complete.
  if (!failure_ && request_.IsCancelled()) failure_ = client_cancelled_;
  if (!failure_) SendAnswer();
  if (failure_) SendFailure();
  context_.model.metrics()->CountRequest(failure_ ? &*failure_ : nullptr, superseded_);
  trace_.Report();
  ReportRequest(context_.instance, request_, !failure_, times_.Span());
  request_.Release();
  in_flight_ = Counted();
}

void PendingRequest::SendAnswer() noexcept {
  try {
    while (!decoded_.encoder->Prepare(results_)) {
    }
    Response response(request_);
    decoded_.encoder->Encode(results_, &response);
    response.Send();
  } catch (...) {
    failure_ = CurrentError();
  }
}

// While Triton has no memory for a response, the client waits.
void PendingRequest::SendFailure() noexcept {
  if (failure_->code() == ErrorCode::kInternal) LogError(failure_->what());
  Patiently([&] { Response(request_).Send(&*failure_); });
}

}  // namespace ct2triton
