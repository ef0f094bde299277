// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/shared_encodings.h"

#include <algorithm>
#include <utility>

namespace ct2triton {

SharedEncodings::Place::Place(Place&& other) noexcept
    : home_(std::exchange(other.home_, nullptr)), entry_(other.entry_) {}

SharedEncodings::Place::~Place() {
  if (*this) home_->Leave(entry_);
}

SharedEncodings::Answer SharedEncodings::Find(const Ids& source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = entries_.equal_range(source);
  for (auto it = begin; it != end; ++it) {
    if (!it->second.published) return {};
    if (auto encoding = it->second.encoding.lock()) return {std::move(encoding), {}};
  }
  return {nullptr, Place(this, entries_.emplace(source, Entry()))};
}

void SharedEncodings::Publish(const std::shared_ptr<const Encoding>& encoding) noexcept {
  if (!encoding->place_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = encoding->place_.entry_->second;
  entry.encoding = encoding;
  entry.published = true;
}

void SharedEncodings::Leave(Entries::iterator entry) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(entry);
}

bool SharedEncodings::Has(const Ids& source) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = entries_.equal_range(source);
  return std::any_of(begin, end, [](const auto& one) { return !one.second.encoding.expired(); });
}

size_t SharedEncodings::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace ct2triton
