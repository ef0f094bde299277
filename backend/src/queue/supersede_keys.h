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

// The answer to a superseded request. Made in advance.
const Error& SupersededError() noexcept;

// A request in flight that a newer request may end.
class Supersedable {
 public:
  virtual ~Supersedable() = default;
  // Ends the rows without an answer. False if all have one.
  virtual bool Supersede() noexcept = 0;
};

// The requests in flight of each supersede_key of one model version, in order of arrival.
class SupersedeKeys {
 public:
  // Registers a request that is not checked yet: newer requests may end it.
  void Announce(const std::string& key, const std::shared_ptr<Supersedable>& request);
  // Call when the request is checked: ends older requests. Without Announce, it counts as the
  // newest.
  void Enter(const std::string& key, const std::shared_ptr<Supersedable>& request);
  // Removes a request. Must be called for each request that was announced or entered.
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
