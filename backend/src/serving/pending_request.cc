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

#include "config/parameters.h"
#include "steady_clock.h"
#include "triton/log.h"

namespace ct2triton {
namespace {

const Error rows_lost(ErrorCode::kInternal, "the request was dropped, its rows are lost");

// Rows of a request that may wait and run at once; the others follow in parts.
constexpr size_t kMostRowsOut = 256;
constexpr size_t kFewRowsOut = kMostRowsOut / 2;  // at this number the next part follows
// Memory of rows that are read and not handed over, for each kind of request. Above it, no further
// request of the kind is read; and if half-read requests alone exceed it, only one of them is read.
constexpr size_t kMostReadBytes = size_t{256} << 20;
// Requests whose rows take fewer bytes are a kind of their own, so they do not wait for larger
// ones.
constexpr size_t kModestBytes = size_t{4} << 20;

constexpr std::chrono::milliseconds kReadingPause(1);

}  // namespace

// Made in advance, so that a request can be failed without memory.
const Error PendingRequest::client_cancelled_(ErrorCode::kCancelled,
                                              "the client cancelled the request");

PendingRequest::~PendingRequest() {
  if (tenant_) tenant_->rows -= rows_out_;  // which memory kept from the queue
  if (!request_.owned()) return;
  if (!failure_) failure_ = rows_lost;
  Finish();
}

void PendingRequest::Own(TRITONBACKEND_Request* request) noexcept {
  request_.Own(request);
  came_ns_ = SteadyNow_ns();
  holds_ = 1;  // until the feeder gets it
  entering_ = Counted(context_.entering);
  in_flight_ = Counted(context_.in_flight);
  trace_.Begin(request_);
}

void PendingRequest::Read() noexcept {
  try {
    if (Cancelled()) throw client_cancelled_;
    const bool begins = reader_ == nullptr;
    if (begins) {
      SetTimeout(request_.Timeout_us());
      EnterTenant();
      reader_ = context_.front(request_);
    }
    if (!reader_->Read()) {
      half_read_ = Counted(KindOf(reader_->bytes()).half_read, reader_->bytes());
      if (begins) Announce();
      return;
    }
    decoded_ = reader_->Take();
    FinishReading();
  } catch (...) {
    Fail(CurrentError());
  }
  half_read_ = Counted();
  reader_.reset();
}

void PendingRequest::EnterTenant() {
  const std::string& header = context_.model.config().engine.tenant_header;
  if (header.empty()) return;
  tenant_ = context_.tenants.Enter(TenantName(request_.Parameters(), header), shared_from_this());
}

std::string_view PendingRequest::tenant() const noexcept {
  return tenant_ ? std::string_view(tenant_->name()) : std::string_view();
}

// Call when all its rows are handed over or not needed, with the lock held.
void PendingRequest::LeaveEntering() noexcept {
  entering_ = Counted();
  if (tenant_) context_.tenants.Leave(tenant_.get(), *this);
}

// Superseding others is the last step that may fail, so that a refused request ends no other
// request.
void PendingRequest::FinishReading() {
  results_.resize(decoded_.rows.size());
  large_ = large_ || IsLarge();
  if (large_) bytes_ = Counted(KindOf(decoded_.bytes).whole, decoded_.bytes);
  LogVerboseLazily([&] {
    return "request '" + request_.Id() + "': " + std::to_string(results_.size()) + " rows";
  });
  SetTimeout(static_cast<uint64_t>(decoded_.options.timeout));
  RequireTime();
  if (decoded_.stream != nullptr) {
    request_.CountResponses(context_.instance, came_ns_);
    decoded_.stream->Begin();
  }
  key_ = decoded_.options.supersede_key;
  if (!key_.empty()) context_.model.supersede_keys()->Enter(key_, shared_from_this());
}

void PendingRequest::Submit() noexcept {
  if (reader_ != nullptr) {
    large_ = true;
    try {
      context_.reading.Post([self = shared_from_this()] { self->ReadOn(); });
      return;
    } catch (...) {
      Fail(CurrentError());
    }
  }
  Feed(/*later=*/false);
  LetGo();
}

// Requests that arrive while this one is read can supersede it, but it cannot supersede them, even
// in its own batch.
void PendingRequest::Announce() {
  DecodingOptions decoding;
  RequestOptions options;
  for (const auto& [name, value] : request_.Parameters()) {
    if (name != "supersede_key" && name != "timeout") continue;
    SetRequestParameter(name, value, EngineOptions(), &decoding, &options);
  }
  SetTimeout(static_cast<uint64_t>(options.timeout));
  key_ = options.supersede_key;
  if (!key_.empty()) context_.model.supersede_keys()->Announce(key_, shared_from_this());
}

RowBytes& PendingRequest::KindOf(size_t bytes) const noexcept {
  return bytes < kModestBytes ? context_.read.modest : context_.read.large;
}

bool PendingRequest::MayReadOn() const noexcept {
  RowBytes& kind = KindOf(reader_->bytes());
  RowBytes& modest = context_.read.modest;
  if (modest.reads_alone == this && &kind != &modest) modest.reads_alone = nullptr;
  if (Cancelled()) return true;
  if (kind.whole->value() >= kMostReadBytes) return false;
  if (kind.half_read->value() < kMostReadBytes) return true;
  if (kind.reads_alone == nullptr) kind.reads_alone = this;
  return kind.reads_alone == this;
}

// Requests being read alternate, slice by slice. If all must wait, the thread waits.
void PendingRequest::ReadOn() noexcept {
  Reading& read = context_.read;
  while (reader_ != nullptr) {
    if (MayReadOn()) {
      read.consecutive_waits = 0;
      Read();
      if (reader_ == nullptr) break;
    } else if (++read.consecutive_waits > context_.reading.waiting()) {
      std::this_thread::sleep_for(kReadingPause);
      read.consecutive_waits = 0;
    }
    try {
      return context_.reading.Post([self = shared_from_this()] { self->ReadOn(); });
    } catch (const std::bad_alloc&) {  // it continues on this thread
    }
  }
  for (RowBytes* kind : {&read.modest, &read.large}) {
    if (kind->reads_alone == this) kind->reads_alone = nullptr;
  }
  Feed(/*later=*/false);
  LetGo();
}

void PendingRequest::Feed(bool later) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool all = next_row_ == decoded_.rows.size();
    if (in_feeder_ || failure_ || ended_ || all || rows_out_ > kFewRowsOut) return;
    in_feeder_ = true;
    ++holds_;
  }
  try {
    later ? context_.feeder.FeedLater(shared_from_this())
          : context_.feeder.Feed(shared_from_this());
  } catch (...) {
    Fail(CurrentError());
    LetGo();
  }
}

bool PendingRequest::IsLarge() const noexcept { return decoded_.rows.size() > kSmallRequest; }

// Empty rows are answered before SubmitFrom returns.
RowSource::Handed PendingRequest::HandOver(size_t most) noexcept {
  const size_t all = decoded_.rows.size();
  size_t begin = 0;
  size_t end = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    begin = end = next_row_;
    if (!failure_ && !ended_) end += std::min({most, all - begin, kMostRowsOut - rows_out_});
    next_row_ = end;
    rows_out_ += end - begin;
    if (tenant_) tenant_->rows += end - begin;
  }
  try {
    const auto rows = decoded_.rows.begin();
    if (end > begin) {
      context_.translator->SubmitFrom(
          begin,
          {std::make_move_iterator(rows + static_cast<std::ptrdiff_t>(begin)),
           std::make_move_iterator(rows + static_cast<std::ptrdiff_t>(end))},
          shared_from_this(), came_ns_);
    }
  } catch (...) {
    Fail(CurrentError());
  }
  // It may have ended before the rows were in the queue.
  if (ended_) context_.translator->Withdraw(*this, SupersededError());
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool whole = failure_ || ended_ || end == all;
  in_feeder_ = !whole && rows_out_ < kMostRowsOut;
  if (whole) {
    LeaveEntering();
    bytes_ = Counted();
  }
  return in_feeder_ ? Handed::kMore : whole ? Handed::kAll : Handed::kForNow;
}

void PendingRequest::Fail(const Error& error) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) failure_ = error;
}

bool PendingRequest::Supersede() noexcept { return End(SupersededError(), /*superseded=*/true); }

// The earliest of several timeouts applies.
void PendingRequest::SetTimeout(uint64_t timeout_us) {
  constexpr uint64_t kLongest_us = 1'000'000'000'000'000;
  if (timeout_us == 0 || timeout_us > kLongest_us) return;
  const uint64_t at_ns = came_ns_ + timeout_us * 1000;
  if (deadline_ && deadline_->first <= at_ns) return;
  if (deadline_) context_.deadlines->Forget(*deadline_);
  deadline_.reset();
  const Error late(ErrorCode::kCancelled,
                   "deadline exceeded: there was no answer within timeout, " +
                       std::to_string(timeout_us) + " microseconds");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    late_ = late;
  }
  deadline_ = context_.deadlines->Watch(at_ns, weak_from_this());
}

// Refuses at once if the rows would wait beyond the deadline.
void PendingRequest::RequireTime() const {
  if (!deadline_ || decoded_.rows.empty()) return;
  const uint64_t left_ns = deadline_->first - std::min(deadline_->first, SteadyNow_ns());
  const WaitEstimate& waits = *context_.model.waits();
  const size_t waiting = context_.translator->waiting();
  if (waits.Of_ns(waiting) <= left_ns) return;
  const size_t too_many = left_ns / std::max<uint64_t>(1, waits.Of_ns(1)) + 1;
  size_t before = context_.translator->Ahead(tenant(), decoded_.rows.size(), too_many);
  if (tenant_) before = context_.tenants.RowsBefore(*tenant_, before, waiting);
  const uint64_t wait_ns = waits.Of_ns(before);
  if (wait_ns <= left_ns) return;
  throw Error(ErrorCode::kCancelled, "deadline exceeded: at least " + std::to_string(before) +
                                         " rows are before it, which takes about " +
                                         std::to_string(wait_ns / 1'000'000) +
                                         " ms, longer than timeout leaves");
}

// Called on the one thread for deadlines. The instance's thread ends the request, because it may
// have to wait for Triton to have memory for an answer.
bool PendingRequest::Expire() noexcept {
  std::optional<Error> late;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return true;
    ++holds_;  // until the instance's thread has ended it
    late = late_;
  }
  bool posted = true;
  try {
    AnswerLater([self = shared_from_this(), late] { self->End(*late, /*superseded=*/false); });
  } catch (const std::bad_alloc&) {
    posted = false;
  }
  LetGo();
  return posted;
}

bool PendingRequest::End(const Error& error, bool superseded) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || failure_) return false;
    if (superseded || !retrying_) failure_ = error;  // else the first answers are returned
    ended_ = true;
    superseded_ = superseded;
    ++holds_;
    LeaveEntering();
  }
  context_.translator->Withdraw(*this, error);
  context_.feeder.Drop(*this);
  LetGo();
  return true;
}

bool PendingRequest::Cancelled() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_ || ended_ || request_.IsCancelled();
}

// If the client has gone, rows may have ended early.
template <class Event>
void PendingRequest::StreamNow(const Event& event) noexcept {
  if (Cancelled()) return;
  try {
    event(decoded_.stream);
  } catch (...) {
    Fail(CurrentError());
  }
}

template <class Event>
void PendingRequest::Stream(Event event) noexcept {
  if (decoded_.stream == nullptr) return;
  if (!large_) return StreamNow(event);
  try {
    AnswerLater([self = shared_from_this(), event] { self->StreamNow(event); });
  } catch (...) {
    Fail(CurrentError());
  }
}

void PendingRequest::RowGrew(size_t row, int64_t id) noexcept {
  Stream([row, id](AnswerStream* stream) { stream->RowGrew(row, id); });
}

void PendingRequest::RowDone(size_t row, RowResult result, const RunTimes& times) noexcept {
  results_[row] = std::move(result);  // no lock, because each row is answered only once
  Stream([row, &done = results_[row]](AnswerStream* stream) { stream->RowDone(row, done); });
  CountAnswered(row, times);
}

void PendingRequest::RowFailed(size_t row, const Error& error, const RunTimes& times) noexcept {
  if (row < first_rows_) Fail(error);
  CountAnswered(row, times);
}

void PendingRequest::CountAnswered(size_t row, const RunTimes& times) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.Add(times);
    trace_.Add(row, times);
    --rows_out_;
    if (tenant_) --tenant_->rows;
    ++holds_;
  }
  Feed(/*later=*/true);
  LetGo();
}

}  // namespace ct2triton
