// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace ct2triton {

struct FreeMemory {
  void operator()(void* memory) const noexcept;

  size_t mapped_bytes = 0;  // 0: allocated by malloc
};
using FloatArray = std::unique_ptr<float[], FreeMemory>;

// Uninitialized floats, aligned to 64 bytes. From 128 KiB on they have pages of their own, which
// return to the system when they are freed. A partly filled cache then takes memory only for its
// filled part, while malloc's arenas would reuse pages of earlier rows. Throws std::bad_alloc.
FloatArray NewFloats(size_t count);

// A buffer for intermediate results. It grows as needed and shrinks only by Trim.
class FloatBuffer {
 public:
  // At least `count` floats; the content is lost when it grows.
  float* Room(size_t count);
  // Frees the buffer if it has more than `count` floats.
  void Trim(size_t count) noexcept;
  float* data() const { return floats_.get(); }
  size_t size() const { return size_; }

 private:
  FloatArray floats_;
  size_t size_ = 0;
};

}  // namespace ct2triton
