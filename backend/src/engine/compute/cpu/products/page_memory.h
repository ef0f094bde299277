// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace ct2triton::products {

// Where small layers of one model lie side by side, in huge pages. Memory is taken page by page;
// what was handed out goes back to the system with the last of its layers. One thread's.
class SharedPages {
 public:
  // 64-byte aligned; at most a huge page. Throws std::bad_alloc.
  std::shared_ptr<std::byte> Take(size_t bytes);

 private:
  std::shared_ptr<std::byte> run_;  // of pages
  size_t used_ = 0;                 // bytes of it
};

// Memory for weights that every step reads from beginning to end. It is asked for in huge
// pages, from 2 MiB on or with others: with small ones, a third of a lone row's time goes into
// address translation.
class PageMemory {
 public:
  PageMemory() = default;
  // `shared`: for what is smaller than a huge page; null: it lies in small pages. Throws
  // std::bad_alloc.
  explicit PageMemory(size_t bytes, SharedPages* shared = nullptr);

  std::byte* data() const { return memory_.get(); }  // 64-byte aligned
  size_t bytes() const { return bytes_; }            // taken from the system

 private:
  size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace ct2triton::products
