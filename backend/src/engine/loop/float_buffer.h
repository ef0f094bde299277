// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace ct2triton {

struct FreeMemory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using FloatArray = std::unique_ptr<float[], FreeMemory>;

// Floats at an address that is a multiple of 64 bytes, not set to anything.
// Throws std::bad_alloc.
FloatArray NewFloats(size_t count);

// Room for intermediate results, which grows and never shrinks.
class FloatBuffer {
 public:
  // At least `count` floats; the ones that were there are lost when it grows.
  float* Room(size_t count);
  float* data() const { return floats_.get(); }

 private:
  FloatArray floats_;
  size_t size_ = 0;
};

}  // namespace ct2triton
