// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/shared_encodings.h"

#include <utility>

namespace ct2triton {

SharedEncodings::Place::Place(Place&& other) noexcept
    : home_(std::exchange(other.home_, nullptr)), entry_(other.entry_) {}

SharedEncodings::Place::~Place() {
  if (home_ != nullptr) home_->Leave(entry_);
}

SharedEncodings::Answer SharedEncodings::Find(const Ids& source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto answer = TryFind(source);
  return answer ? std::move(*answer) : Answer{};
}

SharedEncodings::Answer SharedEncodings::Await(const Ids& source) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (auto answer = TryFind(source)) return std::move(*answer);
    changed_.wait(lock);
  }
}

// None while another thread makes it.
std::optional<SharedEncodings::Answer> SharedEncodings::TryFind(const Ids& source) {
  const auto [begin, end] = entries_.equal_range(source);
  for (auto it = begin; it != end; ++it) {
    if (!it->second.published) return std::nullopt;
    if (auto encoding = it->second.encoding.lock()) return Answer{std::move(encoding), {}};
  }
  return Answer{nullptr, Place(this, entries_.emplace(source, Entry()))};
}

void SharedEncodings::Publish(const std::shared_ptr<const Encoding>& encoding) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = encoding->place_.entry_->second;
    entry.encoding = encoding;
    entry.published = true;
  }
  changed_.notify_all();
}

void SharedEncodings::Leave(Entries::iterator entry) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.erase(entry);
  }
  changed_.notify_all();
}

bool SharedEncodings::Has(const Ids& source) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = entries_.equal_range(source);
  for (auto it = begin; it != end; ++it) {
    if (!it->second.published || !it->second.encoding.expired()) return true;
  }
  return false;
}

size_t SharedEncodings::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace ct2triton
