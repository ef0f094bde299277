// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace ct2triton::products {

// Stores small layers of one model next to each other in huge pages. Memory is taken page by page,
// and returns to the system with the last of its layers. Not thread-safe.
class SharedPages {
 public:
  // 64-byte aligned; at most a huge page. Throws std::bad_alloc.
  std::shared_ptr<std::byte> Take(size_t bytes);

 private:
  std::shared_ptr<std::byte> run_;  // run of pages
  size_t used_ = 0;                 // bytes of it
};

// Memory for weights that every step reads completely. It uses huge pages, from 2 MiB on or shared
// with other layers: with small pages, a single row spends a third of its time in address
// translation.
class PageMemory {
 public:
  PageMemory() = default;
  // `shared`: for blocks smaller than a huge page; null: they use small pages. Throws
  // std::bad_alloc.
  explicit PageMemory(size_t bytes, SharedPages* shared = nullptr);

  std::byte* data() const { return memory_.get(); }  // 64-byte aligned
  size_t bytes() const { return bytes_; }            // taken from the system

 private:
  size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace ct2triton::products
