// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace ct2triton {

// Throws Error(kUnsupported): an object of the library is larger than the room that we give it.
[[noreturn]] void RefuseSize(size_t room);

// An object whose true size only the library knows. Object is our declaration of it, with far more
// room than it was measured to need; the last quarter of that room is filled with guard bytes
// before the library constructs the object, and must still be there after.
template <typename Object>
class Guarded {
 public:
  template <typename... Arguments>
  explicit Guarded(Arguments&&... arguments) {
    std::memset(memory_, kGuard, sizeof(memory_));
    new (memory_) Object(std::forward<Arguments>(arguments)...);
    for (size_t i = kRoom; i < sizeof(memory_); ++i) {
      if (memory_[i] == kGuard) continue;
      Get()->~Object();
      RefuseSize(kRoom);
    }
  }
  ~Guarded() { Get()->~Object(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Object* operator->() { return Get(); }
  const Object* operator->() const { return Get(); }
  const Object& operator*() const { return *Get(); }

 private:
  static constexpr unsigned char kGuard = 0xa5;
  static constexpr size_t kRoom = sizeof(Object) / 4 * 3;

  Object* Get() { return std::launder(reinterpret_cast<Object*>(memory_)); }
  const Object* Get() const { return std::launder(reinterpret_cast<const Object*>(memory_)); }

  alignas(64) unsigned char memory_[sizeof(Object)];
};

}  // namespace ct2triton
