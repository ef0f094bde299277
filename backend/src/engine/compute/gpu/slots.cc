// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/slots.h"

#include <algorithm>
#include <string>

#include "error.h"

namespace ct2triton::gpu {

Slots::Slots(Gpu* gpu, size_t slot_bytes, size_t most_bytes)
    : gpu_(gpu),
      slot_bytes_(slot_bytes),
      most_bytes_(most_bytes),
      addresses_(*gpu, std::max<size_t>(most_bytes / SlabBytes(), 1)) {}

void Slots::Grow() {
  if (slabs_.size() == addresses_.count() || bytes() + SlabBytes() > most_bytes_) {
    throw Error(ErrorCode::kUnavailable, "max_cache_bytes " + std::to_string(most_bytes_) +
                                             " leaves no room for more keys and values on the GPU");
  }
  Buffer<unsigned char> slab(*gpu_, SlabBytes());
  addresses_.Put(slabs_.size(), slab.get());
  gpu_->Wait();
  const int first = static_cast<int>(slabs_.size()) << kSlabShift;
  slabs_.push_back(std::move(slab));
  for (int slot = (1 << kSlabShift) - kPageSlots; slot >= 0; slot -= kPageSlots) {
    free_.push_back(first + slot);
  }
  holders_.resize(slabs_.size() * (size_t{1} << kSlabShift) / kPageSlots);
}

std::vector<int> Slots::Take(size_t count) {
  while (free_.size() < count) Grow();
  const std::vector<int> pages(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
  free_.resize(free_.size() - count);
  for (const int page : pages) holders_[static_cast<size_t>(page) / kPageSlots] = 1;
  taken_ += count;
  return pages;
}

void Slots::Release(int page) {
  if (--holders_[static_cast<size_t>(page) / kPageSlots] > 0) return;
  free_.push_back(page);
  --taken_;
}

Cache Slots::CacheOf(int layer, int stride) const {
  const long long slab_numbers = static_cast<long long>(stride) << kSlabShift;
  return {addresses_.get(), layer * slab_numbers, kSlabShift, stride};
}

}  // namespace ct2triton::gpu
