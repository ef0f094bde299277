// SPDX-License-Identifier: Apache-2.0
#include "serving/row_feeder.h"

#include <algorithm>
#include <utility>

namespace ct2triton {
namespace {

// Rows of a large request that are handed over before another one's.
constexpr size_t kQuantumRows = 32;
// Small requests that enter for each row of a large one while large ones have no room.
constexpr size_t kSmallForLargeRow = 4;
// Places for large requests are refilled once 1 / kPlacesAtOnce of them are free.
constexpr size_t kPlacesAtOnce = 4;

// Moves the source to the front whose tenant has the fewest rows in the queue; without tenants, the
// oldest.
void PutNextFirst(std::list<RowFeeder::Source>* sources) noexcept {
  if (sources->empty() || sources->front()->TenantRows() == 0) return;
  const auto next = std::min_element(
      sources->begin(), sources->end(),
      [](const auto& one, const auto& other) { return one->TenantRows() < other->TenantRows(); });
  sources->splice(sources->begin(), *sources, next);
}

}  // namespace

RowFeeder::RowFeeder(Translator* translator)
    : translator_(translator),
      most_(translator->most_waiting()),
      most_large_(std::max<size_t>(1, most_ / 2)),
      thread_([this] { Run(); }) {}

RowFeeder::~RowFeeder() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void RowFeeder::Feed(Source source) {
  Add(std::move(source));
  std::unique_lock<std::mutex> lock(mutex_);
  Distribute(&lock);
}

void RowFeeder::FeedLater(Source source) {
  Add(std::move(source));
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

void RowFeeder::Add(Source source) {
  Sources one;
  Sources& to = source->IsLarge() ? large_ : small_;
  one.push_back(std::move(source));
  const std::lock_guard<std::mutex> lock(mutex_);
  to.splice(to.end(), one);
  translator_->WakeWaiting();
}

// Small requests go first, because they have few rows; large ones are served while half of the
// places are free. Before that, a due row of a large request is served, so that no request starves.
RowFeeder::Sources* RowFeeder::NextToServe(size_t* places) noexcept {
  const size_t waiting = translator_->waiting();
  if (waiting >= most_) return nullptr;
  PutNextFirst(&small_);
  PutNextFirst(&large_);
  const bool is_large_due =
      !large_.empty() &&
      (small_entered_ >= kSmallForLargeRow ||
       (!small_.empty() && large_.front()->TenantRows() < small_.front()->TenantRows()));
  if (!small_.empty() && !is_large_due) {
    ++small_entered_;
    *places = most_;
    return &small_;
  }
  if (large_.empty() || (waiting >= most_large_ && !is_large_due)) return nullptr;
  small_entered_ = 0;
  *places = waiting < most_large_ ? std::min(kQuantumRows, most_large_ - waiting) : 1;
  return &large_;
}

void RowFeeder::Distribute(std::unique_lock<std::mutex>* lock) noexcept {
  if (std::exchange(busy_, true)) return;
  size_t places = 0;
  while (Sources* from = NextToServe(&places)) {
    Sources one;
    one.splice(one.end(), *from, from->begin());
    lock->unlock();
    const bool more = one.front()->HandOver(places) == RowSource::Handed::kMore;
    if (!more) {
      one.front()->LeaveFeeder();
      one.clear();  // it may answer the request
    }
    lock->lock();
    if (more) from->splice(from->end(), one);
  }
  busy_ = false;
  if (!small_.empty() || !large_.empty()) changed_.notify_all();
}

void RowFeeder::Drop(const RowSource& source) noexcept {
  Sources dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Sources* from : {&small_, &large_}) {
      const auto it = std::find_if(from->begin(), from->end(),
                                   [&](const Source& one) { return one.get() == &source; });
      if (it != from->end()) dropped.splice(dropped.end(), *from, it);
    }
  }
  for (const Source& one : dropped) one->LeaveFeeder();
}

void RowFeeder::DropCancelled(std::unique_lock<std::mutex>* lock) noexcept {
  Sources dropped;
  for (Sources* from : {&small_, &large_}) {
    for (auto it = from->begin(); it != from->end();) {
      const auto source = it++;
      if ((*source)->Cancelled()) dropped.splice(dropped.end(), *from, source);
    }
  }
  lock->unlock();
  for (const Source& one : dropped) one->LeaveFeeder();
  dropped.clear();
  lock->lock();
}

void RowFeeder::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !small_.empty() || !large_.empty(); });
    if (ends_) return;
    Distribute(&lock);
    DropCancelled(&lock);
    if (small_.empty() && large_.empty()) continue;
    const size_t most = small_.empty() ? most_large_ - most_large_ / kPlacesAtOnce : most_;
    const uint64_t wakes = translator_->wakes();
    lock.unlock();
    translator_->WaitForPlaces(most, wakes);
    lock.lock();
  }
}

}  // namespace ct2triton
