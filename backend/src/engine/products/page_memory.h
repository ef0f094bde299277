// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace ct2triton::products {

// Zeroed memory for weights that every step reads from beginning to end. From 2 MiB on it is asked
// for in huge pages: with small ones, a third of a lone row's time goes into address translation.
class PageMemory {
 public:
  PageMemory() = default;
  // Throws std::bad_alloc.
  explicit PageMemory(size_t bytes);

  std::byte* data() const { return memory_.get(); }  // 64-byte aligned
  size_t bytes() const { return bytes_; }            // taken from the system

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
};

// Gives the whole pages of some memory back to the system, whoever asked for it. They are zeros
// then, and take memory again when they are written. Returns their bytes; 0 where the system
// refuses.
size_t GiveBackPages(void* memory, size_t bytes);

}  // namespace ct2triton::products
