// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/cpu/list_projections.h"

#include "steady_clock.h"

namespace ct2triton {

void ListProjections::Add(const VocabularyMap& map) {
  List& list = lists_[&map];
  list.bytes = whole_.bytes() / whole_.outputs() * map.numbered().size();
  if (bytes_ + list.bytes <= memory_.most_bytes) Pack(map, &list);
}

std::shared_ptr<const Linear> ListProjections::Get(const VocabularyMap& map) const {
  List& list = lists_.at(&map);
  if (auto packed = Use(&list)) return packed;
  const std::lock_guard<std::mutex> one_packs(list.packing);
  if (auto packed = Use(&list)) return packed;
  return Pack(map, &list);
}

std::shared_ptr<const Linear> ListProjections::GetOnce(const VocabularyMap& map) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto& packed = lists_.at(&map).packed) return packed;
  }
  return whole_.Select(map.numbered());
}

// A row uses the list now. Null if it is not packed.
std::shared_ptr<const Linear> ListProjections::Use(List* list) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  list->used_ns = SteadyNow_ns();
  return list->packed;
}

std::shared_ptr<const Linear> ListProjections::Pack(const VocabularyMap& map, List* list) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    MakeRoom(list->bytes, SteadyNow_ns());
    bytes_ += list->bytes;
  }
  std::shared_ptr<const Linear> packed;
  try {
    packed = whole_.Select(map.numbered());
  } catch (...) {
    bytes_ -= list->bytes;
    throw;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_ += packed->bytes() - list->bytes;
  list->bytes = packed->bytes();
  list->packed = packed;
  return packed;
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
