// SPDX-License-Identifier: Apache-2.0
#include "queue/supersede_keys.h"

#include <algorithm>

namespace ct2triton {
namespace {

const Error superseded(ErrorCode::kCancelled,
                       "superseded by a newer request with the same supersede_key");

template <class Members>
auto Find(Members& members, const Supersedable& request) {
  return std::find_if(members.begin(), members.end(),
                      [&](const auto& member) { return member.request == &request; });
}

}  // namespace

const Error& SupersededError() noexcept { return superseded; }

void SupersedeKeys::Announce(const std::string& key, const std::shared_ptr<Supersedable>& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  members_[key].push_back({request.get(), request});
}

void SupersedeKeys::Enter(const std::string& key, const std::shared_ptr<Supersedable>& request) {
  std::vector<std::shared_ptr<Supersedable>> older;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Members& members = members_[key];
    const auto end = Find(members, *request);
    older.reserve(members.size());
    for (auto it = members.begin(); it != end; ++it) older.push_back(it->alive.lock());
    if (end == members.end()) members.push_back({request.get(), request});
  }
  // Without the lock, because a request that ends calls Leave.
  for (const auto& one : older) {
    if (one && one->Supersede()) ++ended_;
  }
}

void SupersedeKeys::Leave(const std::string& key, const Supersedable& request) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = members_.find(key);
  if (known == members_.end()) return;
  const auto member = Find(known->second, request);
  if (member != known->second.end()) known->second.erase(member);
  if (known->second.empty()) members_.erase(known);
}

size_t SupersedeKeys::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return members_.size();
}

}  // namespace ct2triton
