// SPDX-License-Identifier: Apache-2.0
#include "serving/pending_request.h"

#include <algorithm>
#include <utility>

#include "rows/row_tensors.h"
#include "serving/input_reader.h"
#include "serving/output_writer.h"
#include "triton/guard.h"
#include "triton/log.h"
#include "triton/response.h"

namespace ct2triton {

PendingRequest::~PendingRequest() {
  if (!request_.owned()) return;
  if (!failure_)
    failure_ = Error(ErrorCode::kInternal, "the request was dropped, its rows are lost");
  Finish();
}

void PendingRequest::Own(TRITONBACKEND_Request* request) noexcept {
  request_.Own(request);
  context_.in_flight->Add();
}

std::vector<CheckedRow> PendingRequest::Prepare() noexcept {
  try {
    std::vector<CheckedRow> rows = ReadRows();
    if (!rows.empty()) return rows;
  } catch (...) {
    failure_ = CurrentError();
  }
  Finish();
  return {};
}

std::vector<CheckedRow> PendingRequest::ReadRows() {
  if (request_.IsCancelled()) {
    throw Error(ErrorCode::kCancelled, "the client cancelled the request");
  }
  wanted_ = request_.WantedOutputs();
  const bool scores_wanted = std::find(wanted_.begin(), wanted_.end(), "SCORES") != wanted_.end();
  const RequestTensors tensors = ReadTensors(request_, *context_.config);
  batched_ = tensors.input_ids.shape.size() > 1;
  const auto options = ReadOptions(request_, scores_wanted, *context_.config);
  const Translator& translator = *context_.translator;
  std::vector<CheckedRow> rows = translator.Check(SplitRows(tensors, translator.padding_to_strip()),
                                                  options ? &*options : nullptr);
  results_.resize(rows.size());
  rows_out_ = rows.size();
  LogVerboseLazily(
      [&] { return "request '" + request_.Id() + "': " + std::to_string(rows.size()) + " rows"; });
  return rows;
}

void PendingRequest::Abandon(const Error& error) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (rows_out_ > 0 && !failure_) failure_ = error;
}

bool PendingRequest::Cancelled() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_ || request_.IsCancelled();
}

void PendingRequest::RowDone(size_t row, RowResult result, const CallTimes& times) noexcept {
  results_[row] = std::move(result);  // each row is answered once: no other thread is at this one
  RowIn(times);
}

void PendingRequest::RowFailed(size_t, const Error& error, const CallTimes& times) noexcept {
  Abandon(error);
  RowIn(times);
}

void PendingRequest::RowIn(const CallTimes& times) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    times_.Add(times);
    if (--rows_out_ > 0) return;
  }
  Finish();
}

// Nothing of the instance may be used once the request is released: its model may be gone.
void PendingRequest::Finish() noexcept {
  // Its rows may have been given up half-way: such an answer must not pass for a whole one.
  if (!failure_ && request_.IsCancelled()) {
    failure_ = Error(ErrorCode::kCancelled, "the client cancelled the request");
  }
  Answer();
  if (failure_) AnswerFailure();
  ReportRequest(context_.instance, request_, !failure_, times_.Span());
  request_.Release();
  context_.in_flight->Done();
}

void PendingRequest::Answer() noexcept {
  if (failure_) return;
  try {
    const AnswerTensors answer(results_, batched_, context_.translator->pad_id());
    Response response(request_);
    WriteOutputs(answer, wanted_, *context_.config, &response);
    response.Send();
  } catch (...) {
    failure_ = CurrentError();
  }
}

void PendingRequest::AnswerFailure() noexcept {
  if (failure_->code() == ErrorCode::kInternal) LogError(failure_->what());
  try {
    Response(request_).Send(&*failure_);
  } catch (...) {
    LogError(CurrentError().what());
  }
}

}  // namespace ct2triton
