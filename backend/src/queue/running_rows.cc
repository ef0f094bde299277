// SPDX-License-Identifier: Apache-2.0
#include "queue/running_rows.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "queue/supersede_keys.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

void DropCancelled(std::vector<Job>* jobs) {
  const auto gone = std::stable_partition(jobs->begin(), jobs->end(),
                                          [](const Job& job) { return !IsCancelled(job); });
  std::for_each(gone, jobs->end(), [](Job& job) { FailJob(&job, CancelledWhileWaiting()); });
  jobs->erase(gone, jobs->end());
}

size_t LongestSource(const std::vector<const CheckedRow*>& rows) {
  size_t longest = 0;
  for (const CheckedRow* row : rows) longest = std::max(longest, row->source.size());
  return longest;
}

void AddRow(const CheckedRow& row, size_t padded_tokens, const RowResult* result,
            RunReport* report) noexcept {
  ++report->rows;
  if (row.mapped) ++report->mapped_rows;
  report->source_tokens += static_cast<int64_t>(row.source.size());
  const size_t tokens = row.source.size();
  report->padding_tokens += static_cast<int64_t>(std::max(padded_tokens, tokens) - tokens);
  if (result == nullptr || result->hypotheses.empty()) {
    ++report->failed_rows;
    return;
  }
  const Hypothesis& best = result->hypotheses.front();
  report->generated_tokens += static_cast<int64_t>(best.ids.size());
  report->steps = std::max(report->steps, result->steps);
  ++report->finished[static_cast<size_t>(best.finish)];
}

// Records the time of a reported ID that was not forced.
void TimeToken(Job* job) noexcept {
  const uint64_t now_ns = SteadyNow_ns();
  if (job->first_token_ns == 0) {
    job->first_token_ns = now_ns;
  } else {
    job->longest_gap_ns = std::max(job->longest_gap_ns, now_ns - job->last_token_ns);
  }
  job->last_token_ns = now_ns;
}

std::optional<RowResult> Copy(const RowResult& result) noexcept {
  try {
    return result;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace

RunningRows::RunningRows(std::vector<Job>* jobs, bool padded)
    : jobs_(*jobs), in_loop_(!padded), times_(NoTime()) {
  DropCancelled(jobs);
  rows_.reserve(jobs->size());
  for (const Job& job : *jobs) rows_.push_back(&job.row);
  grown_.assign(rows_.size(), 0);
  if (padded) padded_tokens_ = LongestSource(rows_);
  CountShares();
}

// Without memory, the statistics are lost, but no answer is.
void RunningRows::CountShares() noexcept {
  try {
    for (const Job& job : jobs_) {
      for (const Waiter& waiter : job.waiters) ++shares_[waiter.listener->observer()].unanswered;
    }
  } catch (const std::bad_alloc&) {
    shares_.clear();
  }
}

bool RunningRows::Cancelled(size_t position) {
  FailEnded(&jobs_[position]);
  return IsCancelled(jobs_[position]);
}

void RunningRows::FailEnded(Job* job) noexcept {
  for (auto it = job->waiters.begin(); it != job->waiters.end();) {
    const auto waiting = it++;
    if (!waiting->listener->Ended()) continue;
    job->waiters.splice(job->waiters.end(), job->waiters, waiting);
    times_.compute_end_ns = times_.end_ns = SteadyNow_ns();
    if (job->waiters.size() == 1) job->running = Counted();
    const Waiter waiter = TakeCounted(job, nullptr);
    waiter.listener->RowFailed(waiter.position, SupersededError(), TimesOf(*job, waiter));
  }
}

void RunningRows::RowGrew(size_t position, int64_t id) {
  Job& job = jobs_[position];
  if (grown_[position]++ < job.grown) return;  // reported before the row ran again
  if (++job.grown > job.row.forced_ids) TimeToken(&job);
  for (const Waiter& waiter : job.waiters) {
    waiter.listener->RowGrew(waiter.position, id);
  }
}

void RunningRows::RowEnded(size_t position, RowResult result) {
  times_.compute_end_ns = times_.end_ns = SteadyNow_ns();
  Deliver(&jobs_[position], std::move(result));
}

void RunningRows::Deliver(std::vector<RowResult> results) {
  times_.end_ns = SteadyNow_ns();
  for (size_t i = 0; i < jobs_.size(); ++i) Deliver(&jobs_[i], std::move(results[i]));
}

// If there is no memory for a copy, that waiter gets an error.
void RunningRows::Deliver(Job* job, RowResult result) noexcept {
  job->running = Counted();
  ChargeSteps(*job, result.steps);
  while (!job->waiters.empty()) {
    std::optional<RowResult> answer = job->waiters.size() > 1 ? Copy(result) : std::move(result);
    const Waiter waiter = TakeCounted(job, answer ? &*answer : nullptr);
    if (answer) {
      waiter.listener->RowDone(waiter.position, std::move(*answer), TimesOf(*job, waiter));
    } else {
      waiter.listener->RowFailed(waiter.position, OutOfMemory(), TimesOf(*job, waiter));
    }
  }
}

void RunningRows::Fail(const Error& error) noexcept {
  for (size_t i = 0; i < jobs_.size(); ++i) FailRow(i, error);
}

void RunningRows::FailRow(size_t position, const Error& error) noexcept {
  times_.compute_end_ns = times_.end_ns = SteadyNow_ns();
  Job& job = jobs_[position];
  job.running = Counted();
  ChargeSteps(job, static_cast<int64_t>(job.grown));
  while (!job.waiters.empty()) {
    const Waiter waiter = TakeCounted(&job, nullptr);
    waiter.listener->RowFailed(waiter.position, error, TimesOf(job, waiter));
  }
}

void RunningRows::KeepUnanswered() noexcept {
  for (auto& [observer, share] : shares_) {
    if (share.unanswered > 0 && share.report.rows > 0) Report(observer, &share);
  }
  jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(),
                             [](const Job& job) { return job.waiters.empty(); }),
              jobs_.end());
}

Waiter RunningRows::TakeCounted(Job* job, const RowResult* result) noexcept {
  const auto known = shares_.find(job->waiters.back().listener->observer());
  if (known != shares_.end()) {
    Share& share = known->second;
    AddRow(job->row, padded_tokens_, result, &share.report);
    ReportRow(*job, result);
    if (--share.unanswered == 0) Report(known->first, &share);
  }
  return TakeWaiter(job);
}

RunTimes RunningRows::TimesOf(const Job& job) const noexcept {
  RunTimes times = times_;
  if (in_loop_ && job.encoded_ns > 0) {
    times.start_ns = times.compute_start_ns = job.taken_ns;
    times.encoded_ns = job.encoded_ns;
  }
  return times;
}

RunTimes RunningRows::TimesOf(const Job& job, const Waiter& waiter) const noexcept {
  RunTimes times = TimesOf(job);
  times.queued_ns = waiter.queued_ns;
  return times;
}

void RunningRows::ReportRow(const Job& job, const RowResult* result) const noexcept {
  RowReport report{job.row, result, in_loop_};
  report.equal = job.waiters.size() > 1;
  report.queued_ns = job.waiters.back().queued_ns;
  report.taken_ns = TimesOf(job).start_ns;
  report.first_token_ns = job.first_token_ns;
  report.longest_gap_ns = job.longest_gap_ns;
  report.end_ns = times_.end_ns;
  job.waiters.back().listener->observer()->RowLeft(report);
}

void RunningRows::Report(RunObserver* observer, Share* share) const noexcept {
  share->report.times = times_;
  RunTimes* const times = &share->report.times;
  for (const Job& job : jobs_) {
    times->start_ns = std::min(times->start_ns, TimesOf(job).start_ns);
    times->compute_start_ns = std::min(times->compute_start_ns, TimesOf(job).compute_start_ns);
  }
  observer->RunDone(share->report);
}

}  // namespace ct2triton
