// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "queue/translator.h"

namespace ct2triton {

// A request whose rows are to enter the queue of its model.
class RowSource {
 public:
  enum class Handed { kAll, kForNow, kMore };  // all; the next ones only after answers; more wait

  virtual ~RowSource() = default;
  virtual bool IsLarge() const noexcept = 0;
  // Of the tenant whose request it is: handed over, and not answered.
  virtual size_t TenantRows() const noexcept = 0;
  // Hands over at most this many rows. A failed request has none left.
  virtual Handed HandOver(size_t most) noexcept = 0;
  // Whether its rows are not needed any more.
  virtual bool Cancelled() const noexcept = 0;
  // Called when the feeder has removed it.
  virtual void LeaveFeeder() noexcept = 0;
};

// Lets rows into the queue of a model as it has places (max_queued_rows). A small request enters
// whole as soon as there is a place. Large ones alternate, part by part, and together have half of
// the places; where small ones fill these, too, one row of a large one enters for every few of
// them. Tenants that have fewer rows in the queue go first.
class RowFeeder {
 public:
  using Source = std::shared_ptr<RowSource>;

  // `translator` outlives it. Throws Error if no thread can be started.
  explicit RowFeeder(Translator* translator);
  ~RowFeeder();  // every source has left it
  RowFeeder(const RowFeeder&) = delete;
  RowFeeder& operator=(const RowFeeder&) = delete;

  // Hands over what there is a place for, on this thread; the rest follows on the feeder's.
  void Feed(Source source);
  // Hands all over on the feeder's thread.
  void FeedLater(Source source);
  // Removes a source whose rows are not needed.
  void Drop(const RowSource& source) noexcept;

 private:
  using Sources = std::list<Source>;

  void Add(Source source);
  // While there are places. Called, and returns, with the lock.
  void Distribute(std::unique_lock<std::mutex>* lock) noexcept;
  // The next source is the first of its list.
  Sources* NextToServe(size_t* places) noexcept;
  void DropCancelled(std::unique_lock<std::mutex>* lock) noexcept;
  void Run();

  Translator* const translator_;
  const size_t most_;        // rows that may wait
  const size_t most_large_;  // of large requests

  std::mutex mutex_;
  std::condition_variable changed_;
  Sources small_, large_;     // in turn
  size_t small_entered_ = 0;  // requests, since a large one entered a row
  bool busy_ = false;         // a thread hands rows over; it sees what is added meanwhile
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ct2triton
