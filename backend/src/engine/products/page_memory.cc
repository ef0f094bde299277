// SPDX-License-Identifier: Apache-2.0
#include "engine/products/page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/products/round_up.h"

namespace ct2triton::products {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;

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

size_t GiveBackPages(void* memory, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = RoundUp(address, page);
  const uintptr_t end = (address + bytes) / page * page;
  if (begin >= end) return 0;
  // Pages that are private, and of no file, as those of malloc: they come back as zeros.
  const int refused = madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  return refused != 0 ? 0 : end - begin;
}

void PageMemory::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

}  // namespace ct2triton::products
