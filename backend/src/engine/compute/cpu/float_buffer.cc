// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/float_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

namespace ct2triton {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLeastMapped = size_t{128} << 10;

FloatArray Allocated(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return FloatArray(static_cast<float*>(memory));
}

FloatArray Mapped(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return FloatArray(static_cast<float*>(memory), FreeMemory{bytes});
}

}  // namespace

void FreeMemory::operator()(void* memory) const noexcept {
  if (mapped_bytes == 0) {
    std::free(memory);
  } else {
    munmap(memory, mapped_bytes);
  }
}

FloatArray NewFloats(size_t count) {
  if (count > std::numeric_limits<size_t>::max() / 2 / sizeof(float)) throw std::bad_alloc();
  const size_t bytes = std::max<size_t>(count * sizeof(float), 1);
  return bytes < kLeastMapped ? Allocated(bytes) : Mapped(bytes);
}

float* FloatBuffer::Room(size_t count) {
  if (count > size_) {
    const size_t larger = std::max(count, size_ + size_ / 2);
    floats_.reset();  // first, so that both are not in memory together
    size_ = 0;
    floats_ = NewFloats(larger);
    size_ = larger;
  }
  return floats_.get();
}

void FloatBuffer::Trim(size_t count) noexcept {
  if (size_ <= count) return;
  floats_.reset();
  size_ = 0;
}

}  // namespace ct2triton
