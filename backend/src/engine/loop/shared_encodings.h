// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/loop/cache_pool.h"
#include "rows/row.h"

namespace ct2triton {

class Encoding;

// The encodings that live, by their source ids: rows of all loops of a model that have the same
// source share one. It keeps none alive itself: an encoding ends with its last row. Threads may use
// it at once.
class SharedEncodings {
 private:
  struct Entry {
    bool published = false;
    std::weak_ptr<const Encoding> encoding;
  };
  using Entries = std::multimap<Ids, Entry>;  // a second of a source: while the first is destroyed

 public:
  // Stands for one encoding in here, while it is made and as long as it lives.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class SharedEncodings;
    Place(SharedEncodings* home, Entries::iterator entry) : home_(home), entry_(entry) {}

    SharedEncodings* home_ = nullptr;
    Entries::iterator entry_;
  };

  // An encoding that lives; or else a place for the one that the caller is to make now; neither
  // while another thread makes it.
  struct Answer {
    std::shared_ptr<const Encoding> encoding;
    std::optional<Place> place;
  };
  Answer Find(const Ids& source);
  // Waits instead while another thread makes it. The caller must not be making one itself, or two
  // threads could wait for each other.
  Answer Await(const Ids& source);
  // Others may use it from now on. A place that ends without this leaves the encoding to others.
  void Publish(const std::shared_ptr<const Encoding>& encoding) noexcept;

  // Whether one lives or is being made.
  bool Has(const Ids& source) const;
  size_t size() const;

 private:
  std::optional<Answer> Look(const Ids& source);
  void Leave(Entries::iterator entry) noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // one was published or left
  Entries entries_;
};

// An encoded source, in the form in which the attention takes it. Rows may share it.
class Encoding {
 public:
  Encoding(SharedEncodings::Place place, size_t tokens)
      : place_(std::move(place)), tokens_(tokens) {}
  virtual ~Encoding() = default;
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  size_t tokens() const { return tokens_; }

 private:
  friend class SharedEncodings;

  const SharedEncodings::Place place_;
  const size_t tokens_;
};

// The memory of rows that run, for all loops of a model.
struct LoopCaches {
  explicit LoopCaches(size_t keep_bytes) : pool(keep_bytes) {}

  CachePool pool;
  SharedEncodings encodings;  // in blocks of the pool
  std::atomic<size_t> logits_bytes{0};
};

}  // namespace ct2triton
