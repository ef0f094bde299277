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

// A request whose rows wait to enter the queue of its model.
class RowSource {
 public:
  enum class Handed { kAll, kForNow, kMore };  // all; more after answers; more at once

  virtual ~RowSource() = default;
  virtual bool IsLarge() const noexcept = 0;
  // Rows of its tenant that are handed over and not answered.
  virtual size_t TenantRows() const noexcept = 0;
  // Hands over at most this many rows. A failed request has none left.
  virtual Handed HandOver(size_t most) noexcept = 0;
  // Whether its rows are no longer needed.
  virtual bool Cancelled() const noexcept = 0;
  // Called when the feeder has removed it.
  virtual void LeaveFeeder() noexcept = 0;
};

// Moves rows into the queue of a model while it has room (max_queued_rows). A small request enters
// completely as soon as there is room for a row. Large requests alternate, part by part, and
// together get half of the room; if small requests fill that too, one row of a large request enters
// for every few of them. Tenants with fewer rows in the queue go first.
class RowFeeder {
 public:
  using Source = std::shared_ptr<RowSource>;

  // `translator` outlives it. Throws Error if no thread can be started.
  explicit RowFeeder(Translator* translator);
  ~RowFeeder();  // all sources must have left
  RowFeeder(const RowFeeder&) = delete;
  RowFeeder& operator=(const RowFeeder&) = delete;

  // Hands over rows while there is room, on this thread; the rest follows on the feeder's.
  void Feed(Source source);
  // Hands over all rows on the feeder's thread.
  void FeedLater(Source source);
  // Removes a source whose rows are not needed.
  void Drop(const RowSource& source) noexcept;

 private:
  using Sources = std::list<Source>;

  void Add(Source source);
  // Hands over rows while there is room. Called, and returns, with the lock held.
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
  Sources small_, large_;     // they alternate
  size_t small_entered_ = 0;  // small requests since the last row of a large one
  bool busy_ = false;         // a thread hands rows over, including those added meanwhile
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ct2triton
