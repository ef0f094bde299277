// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cache_pool.h"

#include <algorithm>
#include <utility>

#include "engine/compute/cpu/products/round_up.h"

namespace ct2triton {
namespace {

// Sizes are rounded up to eight steps per doubling, so that other rows can reuse blocks. At most an
// eighth is wasted.
size_t BlockFloats(size_t floats) {
  size_t step = 1024;
  while (step * 16 < floats) step *= 2;
  return products::RoundUp(floats, step);
}

}  // namespace

CacheBlock::CacheBlock(CacheBlock&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      floats_(std::move(other.floats_)),
      size_(other.size_) {}

CacheBlock::~CacheBlock() {
  if (pool_ != nullptr) pool_->Give(std::move(floats_), size_);
}

CachePool::CachePool(size_t keep_bytes) : keep_bytes_(keep_bytes) {}

size_t CachePool::BlockBytes(size_t floats) { return BlockFloats(floats) * sizeof(float); }

CacheBlock CachePool::Take(size_t floats) {
  const size_t size = BlockFloats(floats);
  CacheBlock block(this, Count(size, true), size);  // undoes the count if the next line throws
  if (!block.floats_) block.floats_ = NewFloats(size);
  return block;
}

CacheBlock CachePool::Reserve(size_t floats) {
  const size_t size = BlockFloats(floats);
  return {this, Count(size, false), size};
}

// Counts a block of this size. Returns the memory of a returned block, if there is one.
FloatArray CachePool::Count(size_t size, bool reuse) {
  const size_t bytes = size * sizeof(float);
  FloatArray memory;
  const std::lock_guard<std::mutex> lock(mutex_);
  Shelf& shelf = shelves_[size];
  // Room for its return is reserved here, where an exception is allowed.
  shelf.free.reserve(shelf.free.size() + shelf.in_use + 1);
  if (reuse && !shelf.free.empty()) {
    memory = std::move(shelf.free.back());
    shelf.free.pop_back();
    bytes_kept_ -= bytes;
  }
  ++shelf.in_use;
  bytes_in_use_ += bytes;
  return memory;
}

void CachePool::Give(FloatArray floats, size_t size) noexcept {
  const size_t bytes = size * sizeof(float);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Shelf& shelf = shelves_[size];  // exists since Take
    --shelf.in_use;
    bytes_in_use_ -= bytes;
    if (floats) {
      shelf.free.push_back(std::move(floats));
      bytes_kept_ += bytes;
    }
  }
  while (TakeSurplus()) {  // freed without the lock, because all loops use it
  }
}

// Removes a block if more than the kept memory is free: one of the size with most free memory.
FloatArray CachePool::TakeSurplus() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes_kept_ <= std::max<size_t>(keep_bytes_, bytes_in_use_)) return nullptr;
  const auto most = std::max_element(shelves_.begin(), shelves_.end(), [](auto& a, auto& b) {
    return a.first * a.second.free.size() < b.first * b.second.free.size();
  });
  FloatArray surplus = std::move(most->second.free.back());
  most->second.free.pop_back();
  bytes_kept_ -= most->first * sizeof(float);
  return surplus;
}

size_t CachePool::bytes_kept() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_kept_;
}

}  // namespace ct2triton
