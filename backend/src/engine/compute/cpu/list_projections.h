// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "engine/compute/cpu/linear.h"
#include "engine/model/vocabulary_map.h"

namespace ct2triton {

// How much memory projections to vocabulary lists may take. Above `most_bytes`, a list is packed
// when a row needs it, and those that no row has used for `idle_ns` make room for it.
struct ListMemory {
  size_t most_bytes = size_t{1} << 30;
  uint64_t idle_ns = 60'000'000'000;
};

// The projection of a decoder to the candidates of each vocabulary list, with weights of its own.
// Thread-safe, except for Add.
class ListProjections {
 public:
  // `whole`: to the whole vocabulary; must outlive it.
  ListProjections(const Linear& whole, const ListMemory& memory) : whole_(whole), memory_(memory) {}

  // Packs the list if there is room. The map must outlive it.
  void Add(const VocabularyMap& map);
  // Packs the list if it is not packed; threads that need the same list wait. Throws
  // std::bad_alloc.
  std::shared_ptr<const Linear> Get(const VocabularyMap& map) const;
  // For a single use: what is packed for it is not kept. A trial uses all lists.
  std::shared_ptr<const Linear> GetOnce(const VocabularyMap& map) const;
  // Of one list, packed or not; 0: it was not added.
  size_t BytesOf(const VocabularyMap& map) const;
  size_t bytes() const { return bytes_; }  // of those that are packed or being packed

 private:
  struct List {
    std::shared_ptr<const Linear> packed;  // null: not now
    size_t bytes = 0;                      // before it was first packed: about
    uint64_t used_ns = 0;
    std::mutex packing;  // held by the thread that packs it
  };

  std::shared_ptr<const Linear> Use(List* list) const;
  std::shared_ptr<const Linear> Pack(const VocabularyMap& map, List* list) const;
  void MakeRoom(size_t bytes, uint64_t now_ns) const noexcept;

  const Linear& whole_;
  const ListMemory memory_;
  mutable std::mutex mutex_;  // not held while a list is packed
  mutable std::map<const VocabularyMap*, List> lists_;
  mutable std::atomic<size_t> bytes_{0};
};

}  // namespace ct2triton
