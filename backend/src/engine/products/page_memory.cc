// SPDX-License-Identifier: Apache-2.0
#include "engine/products/page_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace ct2triton::products {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

PageMemory::PageMemory(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  bytes_ = RoundUp(bytes, alignment);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes_)));
  if (memory_ == nullptr) throw std::bad_alloc();
  // A system that refuses gives small pages: slower, not wrong.
  if (alignment == kHugePage) madvise(memory_.get(), bytes_, MADV_HUGEPAGE);
  std::memset(memory_.get(), 0, bytes_);
}

void PageMemory::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

}  // namespace ct2triton::products
