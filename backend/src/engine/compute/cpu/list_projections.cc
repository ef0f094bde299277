// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/list_projections.h"

#include "steady_clock.h"

namespace ct2triton {

void ListProjections::Add(const VocabularyMap& map) {
  const auto list = lists_.emplace(&map, List()).first;
  list->second.bytes = whole_.bytes() / whole_.outputs() * map.numbered().size();
  if (bytes_ + list->second.bytes <= memory_.most_bytes) Pack(list);
}

std::shared_ptr<const Linear> ListProjections::Get(const VocabularyMap& map) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto list = lists_.find(&map);  // it was added
  const uint64_t now_ns = SteadyNow_ns();
  if (!list->second.packed) {
    MakeRoom(list->second.bytes, now_ns);
    Pack(list);
  }
  list->second.used_ns = now_ns;
  return list->second.packed;
}

std::shared_ptr<const Linear> ListProjections::GetOnce(const VocabularyMap& map) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto& packed = lists_.at(&map).packed) return packed;
  return whole_.Select(map.numbered());
}

void ListProjections::Pack(Lists::iterator list) const {
  auto& [map, state] = *list;
  state.packed = whole_.Select(map->numbered());
  state.bytes = state.packed->bytes();
  bytes_ += state.bytes;
}

// Frees the lists that have been idle for longest, as far as they are idle. A step that uses one
// keeps it until its product is done.
void ListProjections::MakeRoom(size_t bytes, uint64_t now_ns) const noexcept {
  while (bytes_ + bytes > memory_.most_bytes) {
    List* oldest = nullptr;
    for (auto& [map, list] : lists_) {
      if (!list.packed || now_ns - list.used_ns < memory_.idle_ns) continue;
      if (oldest == nullptr || list.used_ns < oldest->used_ns) oldest = &list;
    }
    if (oldest == nullptr) return;
    oldest->packed.reset();
    bytes_ -= oldest->bytes;
  }
}

size_t ListProjections::BytesOf(const VocabularyMap& map) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = lists_.find(&map);
  return found == lists_.end() ? 0 : found->second.bytes;
}

}  // namespace ct2triton
