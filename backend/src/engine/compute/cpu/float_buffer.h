// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace ct2triton {

struct FreeMemory {
  void operator()(void* memory) const noexcept;

  size_t mapped_bytes = 0;  // 0: memory of malloc
};
using FloatArray = std::unique_ptr<float[], FreeMemory>;

// Floats at an address that is a multiple of 64 bytes, not set to anything. From 128 KiB on they
// are pages of their own: the system has them again when they are freed, and a cache of which a row
// fills a part takes memory for this part alone. Out of malloc's arenas it would be pages that an
// earlier row filled. Throws std::bad_alloc.
FloatArray NewFloats(size_t count);

// Room for intermediate results, which grows, and shrinks where somebody trims it.
class FloatBuffer {
 public:
  // At least `count` floats; the ones that were there are lost when it grows.
  float* Room(size_t count);
  // Frees it, if it has more than `count` floats.
  void Trim(size_t count) noexcept;
  float* data() const { return floats_.get(); }
  size_t size() const { return size_; }

 private:
  FloatArray floats_;
  size_t size_ = 0;
};

}  // namespace ct2triton
