// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/float_buffer.h"

#include <algorithm>
#include <limits>
#include <new>

namespace ct2triton {

FloatArray NewFloats(size_t count) {
  constexpr size_t kAlignment = 64;
  if (count > std::numeric_limits<size_t>::max() / 2 / sizeof(float)) throw std::bad_alloc();
  const size_t bytes = std::max<size_t>(count * sizeof(float), 1);
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return FloatArray(static_cast<float*>(memory));
}

float* FloatBuffer::Room(size_t count) {
  if (count > size_) {
    const size_t larger = std::max(count, size_ + size_ / 2);
    floats_.reset();  // first, so that the two do not take memory together
    size_ = 0;
    floats_ = NewFloats(larger);
    size_ = larger;
  }
  return floats_.get();
}

}  // namespace ct2triton
