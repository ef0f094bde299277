// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/compute/gpu/gpu.h"
#include "gpu/args.h"

namespace ct2triton::gpu {

// Memory of keys and values, in pages of slots of one token each. It grows in slabs when pages are
// taken; addresses never change.
class Slots {
 public:
  static constexpr int kPageShift = 4;
  static constexpr int kPageSlots = 1 << kPageShift;
  static size_t PagesOf(size_t tokens) { return (tokens + kPageSlots - 1) / kPageSlots; }

  // slot_bytes: of all layers. most_bytes: of all slabs together; 0: most of what is free.
  Slots(Gpu* gpu, size_t slot_bytes, size_t most_bytes);

  // Takes `count` pages and returns their first slots. Throws Error(kUnavailable) without enough
  // memory; then takes none.
  std::vector<int> Take(size_t count);
  void Release(const std::vector<int>& pages) noexcept;
  size_t taken_pages() const { return taken_; }
  size_t slot_bytes() const { return slot_bytes_; }
  size_t bytes() const { return slabs_.size() * SlabBytes(); }
  size_t most_bytes() const { return most_bytes_ / SlabBytes() * SlabBytes(); }
  // The same as of the last Measure(): others may use memory of the device.
  size_t most_bytes_now() const { return most_bytes_now_; }
  void Measure();

  // stride: numbers of a slot in a layer.
  Cache CacheOf(int layer, int stride) const;

 private:
  static constexpr int kSlabShift = 10;
  size_t SlabBytes() const { return slot_bytes_ << kSlabShift; }
  void Grow();

  Gpu* const gpu_;
  const size_t slot_bytes_;
  const size_t most_bytes_;
  std::atomic<size_t> most_bytes_now_;
  std::vector<Buffer<unsigned char>> slabs_;
  Buffer<void*> addresses_;
  std::vector<int> free_;
  std::atomic<size_t> taken_{0};
};

// Pages that this object owns and returns.
class Pages {
 public:
  explicit Pages(Slots* slots) : slots_(slots) {}
  ~Pages() { Clear(); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void Clear() noexcept;
  // Reserves slots for this many tokens.
  void Reserve(size_t tokens);
  // Slot of the token at `place`, which must be reserved.
  int SlotOf(size_t place) const {
    return first_slots_[place >> Slots::kPageShift] + static_cast<int>(place % Slots::kPageSlots);
  }
  const std::vector<int>& first_slots() const { return first_slots_; }
  size_t slots() const { return first_slots_.size() << Slots::kPageShift; }  // reserved

 private:
  Slots* const slots_;
  std::vector<int> first_slots_;
};

}  // namespace ct2triton::gpu
