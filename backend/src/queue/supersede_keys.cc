// SPDX-License-Identifier: Apache-2.0
#include "queue/supersede_keys.h"

#include <utility>

namespace ct2triton {
namespace {

const Error superseded(ErrorCode::kCancelled,
                       "superseded by a newer request with the same supersede_key");

}  // namespace

const Error& SupersededError() noexcept { return superseded; }

void SupersedeKeys::Enter(const std::string& key, const std::shared_ptr<Supersedable>& request) {
  const auto older = Replace(key, request);
  // Without the lock: a request that ends leaves.
  if (older && older->Supersede()) ++ended_;
}

std::shared_ptr<Supersedable> SupersedeKeys::Replace(const std::string& key,
                                                     const std::shared_ptr<Supersedable>& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(newest_[key], Newest{request.get(), request}).alive.lock();
}

void SupersedeKeys::Leave(const std::string& key, const Supersedable& request) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = newest_.find(key);
  if (known != newest_.end() && known->second.request == &request) newest_.erase(known);
}

size_t SupersedeKeys::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return newest_.size();
}

}  // namespace ct2triton
