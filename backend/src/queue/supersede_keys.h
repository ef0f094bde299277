// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "error.h"

namespace ct2triton {

// The answer to a superseded request. Made before it is needed.
const Error& SupersededError() noexcept;

// A request in flight that a newer one may end.
class Supersedable {
 public:
  virtual ~Supersedable() = default;
  // Ends what has no answer yet. False where all of it has one.
  virtual bool Supersede() noexcept = 0;
};

// The requests in flight of each supersede_key, of one model version, in the order in which they
// came.
class SupersedeKeys {
 public:
  // A request has come that is not checked yet: newer ones may end it.
  void Announce(const std::string& key, const std::shared_ptr<Supersedable>& request);
  // The request is checked: ends those that came before it. Unless it was announced, it is the
  // newest.
  void Enter(const std::string& key, const std::shared_ptr<Supersedable>& request);
  // Forgets a request. Each one that was announced or entered leaves.
  void Leave(const std::string& key, const Supersedable& request) noexcept;

  size_t size() const;                                     // keys of requests in flight
  uint64_t superseded() const noexcept { return ended_; }  // requests that newer ones ended

 private:
  struct Member {
    const Supersedable* request = nullptr;
    std::weak_ptr<Supersedable> alive;
  };
  using Members = std::vector<Member>;  // the newest is the last

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Members> members_;
  std::atomic<uint64_t> ended_{0};
};

}  // namespace ct2triton
