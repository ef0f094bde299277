// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/compute/cpu/float_buffer.h"

namespace ct2triton {

class CachePool;

// Memory for keys and values; returns to its pool, which must outlive it.
class CacheBlock {
 public:
  CacheBlock() = default;
  CacheBlock(CacheBlock&& other) noexcept;
  ~CacheBlock();

  float* data() const { return floats_.get(); }

 private:
  friend class CachePool;
  CacheBlock(CachePool* pool, FloatArray floats, size_t size)
      : pool_(pool), floats_(std::move(floats)), size_(size) {}
  CachePool* pool_ = nullptr;
  FloatArray floats_;
  size_t size_ = 0;
};

// Hands out memory for keys and values, and keeps returned memory for the next rows: fresh memory
// costs a page fault every 4 kB, and returning memory to the system stops all cores for a moment.
// It keeps as much unused memory as the running rows use. Thread-safe.
class CachePool {
 public:
  // `keep_bytes`: unused memory up to this size is always kept.
  explicit CachePool(size_t keep_bytes);

  // At least `floats`, uninitialized. Throws std::bad_alloc.
  CacheBlock Take(size_t floats);
  // A block that counts, but has no memory here: the memory is on another device.
  CacheBlock Reserve(size_t floats);
  // What both add to bytes_in_use().
  static size_t BlockBytes(size_t floats);

  size_t bytes_in_use() const { return bytes_in_use_; }  // without a lock
  size_t bytes_kept() const;

 private:
  friend class CacheBlock;
  void Give(FloatArray floats, size_t size) noexcept;
  FloatArray TakeSurplus() noexcept;
  FloatArray Count(size_t size, bool reuse);

  // The blocks of one size.
  struct Shelf {
    std::vector<FloatArray> free;  // capacity includes those in use
    size_t in_use = 0;
  };

  const size_t keep_bytes_;
  mutable std::mutex mutex_;
  std::map<size_t, Shelf> shelves_;      // by size in floats
  std::atomic<size_t> bytes_in_use_{0};  // written under the lock
  size_t bytes_kept_ = 0;
};

// The memory of running rows, for all loops of a model.
struct RowMemory {
  explicit RowMemory(size_t keep_bytes) : pool(keep_bytes) {}

  CachePool pool;
  std::atomic<size_t> logits_bytes{0};
};

}  // namespace ct2triton
