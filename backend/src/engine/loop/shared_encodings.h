// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/compute/cache_pool.h"
#include "engine/compute/step_sequence.h"
#include "rows/row.h"

namespace ct2triton {

class Encoding;

// Encodings in use, by source IDs. Rows with the same source share one, across all loops of a
// model. It owns none: an encoding is destroyed with its last row. Thread-safe.
class SharedEncodings {
 private:
  struct Entry {
    bool published = false;
    std::weak_ptr<const Encoding> encoding;
  };
  using Entries = std::multimap<Ids, Entry>;  // two of one source: while the first is destroyed

 public:
  // Entry of one encoding, from when it is being made until it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();
    explicit operator bool() const { return home_ != nullptr; }

   private:
    friend class SharedEncodings;
    Place(SharedEncodings* home, Entries::iterator entry) : home_(home), entry_(entry) {}

    SharedEncodings* home_ = nullptr;
    Entries::iterator entry_;
  };

  // An encoding in use; or a place for the encoding that the caller must make now; neither while
  // another thread makes it.
  struct Answer {
    std::shared_ptr<const Encoding> encoding;
    Place place;
  };
  Answer Find(const Ids& source);
  // Makes the encoding available to others, if it has a place. If a place is destroyed without
  // this, another thread may make the encoding.
  void Publish(const std::shared_ptr<const Encoding>& encoding) noexcept;

  // Whether an encoding is in use.
  bool Has(const Ids& source) const;
  size_t size() const;

 private:
  void Leave(Entries::iterator entry) noexcept;

  mutable std::mutex mutex_;
  Entries entries_;
};

// An encoded source, and its entry among the encodings in use. Rows may share it.
class Encoding {
 public:
  // An empty place: the encoding is not shared, because another thread is making it, too.
  Encoding(SharedEncodings::Place place, std::unique_ptr<const EncodedSource> source)
      : place_(std::move(place)), source_(std::move(source)) {}

  const EncodedSource* source() const { return source_.get(); }

  // It was made beside the loops: the first row that a loop admits with it shares it with no other.
  void MadeForRow() const noexcept { of_no_row_ = true; }
  bool IsFirstUse() const noexcept { return of_no_row_ && of_no_row_.exchange(false); }

 private:
  friend class SharedEncodings;

  const SharedEncodings::Place place_;
  const std::unique_ptr<const EncodedSource> source_;
  mutable std::atomic<bool> of_no_row_{false};
};

// What the running rows of all loops of a model hold.
struct LoopCaches {
  explicit LoopCaches(size_t keep_bytes) : memory(keep_bytes) {}

  RowMemory memory;
  SharedEncodings encodings;  // in this memory
};

}  // namespace ct2triton
