// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/slots.h"

#include <algorithm>
#include <string>

#include "error.h"

namespace ct2triton::gpu {
namespace {

// Of free memory, a part is left for graphs and other programs.
size_t Usable(const Gpu& gpu) { return gpu.FreeBytes() / 10 * 9; }

}  // namespace

Slots::Slots(Gpu* gpu, size_t slot_bytes, size_t most_bytes)
    : gpu_(gpu),
      slot_bytes_(slot_bytes),
      most_bytes_(most_bytes > 0 ? most_bytes : Usable(*gpu)),
      most_bytes_now_(this->most_bytes()),
      addresses_(*gpu, std::max<size_t>(most_bytes_ / SlabBytes(), 1)) {}

void Slots::Measure() {
  const size_t usable = bytes() + Usable(*gpu_) / SlabBytes() * SlabBytes();
  most_bytes_now_ = std::min(most_bytes(), usable);
}

void Slots::Grow() {
  if (slabs_.size() == addresses_.count() || bytes() + SlabBytes() > most_bytes_) {
    throw Error(ErrorCode::kUnavailable, std::to_string(most_bytes_) +
                                             " bytes leave no room for more keys and values on "
                                             "the GPU");
  }
  Buffer<unsigned char> slab(*gpu_, SlabBytes());
  addresses_.Put(slabs_.size(), slab.get());
  gpu_->Wait();
  const int first = static_cast<int>(slabs_.size()) << kSlabShift;
  slabs_.push_back(std::move(slab));
  for (int slot = (1 << kSlabShift) - kPageSlots; slot >= 0; slot -= kPageSlots) {
    free_.push_back(first + slot);
  }
  free_.reserve(slabs_.size() << (kSlabShift - kPageShift));  // Release must not fail
}

std::vector<int> Slots::Take(size_t count) {
  while (free_.size() < count) Grow();
  const std::vector<int> pages(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
  free_.resize(free_.size() - count);
  taken_ += count;
  return pages;
}

void Slots::Release(const std::vector<int>& pages) noexcept {
  free_.insert(free_.end(), pages.begin(), pages.end());
  taken_ -= pages.size();
}

void Pages::Clear() noexcept {
  if (first_slots_.empty()) return;
  slots_->Release(first_slots_);
  first_slots_.clear();
}

void Pages::Reserve(size_t tokens) {
  const size_t wanted = Slots::PagesOf(tokens);
  if (wanted <= first_slots_.size()) return;
  const auto fresh = slots_->Take(wanted - first_slots_.size());
  first_slots_.insert(first_slots_.end(), fresh.begin(), fresh.end());
}

Cache Slots::CacheOf(int layer, int stride) const {
  const long long slab_numbers = static_cast<long long>(stride) << kSlabShift;
  return {addresses_.get(), layer * slab_numbers, kSlabShift, stride};
}

}  // namespace ct2triton::gpu
