// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/products/page_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "engine/compute/cpu/products/round_up.h"

namespace ct2triton::products {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;

// If the system refuses huge pages, small pages are slower, but correct.
std::shared_ptr<std::byte> Allocate(size_t bytes, size_t alignment) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  return {memory, [](std::byte* given) { std::free(given); }};
}

}  // namespace

// Takes blocks from a long run, so that a block may cross the end of a page and only the last page
// is partly wasted. The system maps a page of the run only when it is first written.
std::shared_ptr<std::byte> SharedPages::Take(size_t bytes) {
  constexpr size_t kRun = 16 * kHugePage;
  const size_t size = RoundUp(bytes, kCacheLine);
  if (run_ == nullptr || used_ + size > kRun) {
    run_ = Allocate(kRun, kHugePage);
    used_ = 0;
  }
  std::shared_ptr<std::byte> block(run_, run_.get() + used_);
  used_ += size;
  return block;
}

PageMemory::PageMemory(size_t bytes, SharedPages* shared) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  bytes_ = RoundUp(bytes, alignment);
  if (alignment < kHugePage && shared != nullptr) {
    memory_ = shared->Take(bytes_);
    return;
  }
  memory_ = Allocate(bytes_, alignment);
}

}  // namespace ct2triton::products
