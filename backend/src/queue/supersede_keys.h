// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "error.h"

namespace ct2triton {

// What a request is answered that a newer one has ended. Made before it is needed.
const Error& SupersededError() noexcept;

// A request in flight that a newer one may end.
class Supersedable {
 public:
  virtual ~Supersedable() = default;
  // Ends what has no answer yet. False where all of it has one.
  virtual bool Supersede() noexcept = 0;
};

// The newest request in flight of each supersede_key, of one model version.
class SupersedeKeys {
 public:
  // Makes `request` the newest of its key, and ends the one before.
  void Enter(const std::string& key, const std::shared_ptr<Supersedable>& request);
  // Forgets the key, unless a newer request has it. Each request that entered leaves.
  void Leave(const std::string& key, const Supersedable& request) noexcept;

  size_t size() const;                                     // keys of requests in flight
  uint64_t superseded() const noexcept { return ended_; }  // requests that newer ones ended

 private:
  std::shared_ptr<Supersedable> Replace(const std::string& key,
                                        const std::shared_ptr<Supersedable>& request);

  struct Newest {
    const Supersedable* request = nullptr;
    std::weak_ptr<Supersedable> alive;
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Newest> newest_;
  std::atomic<uint64_t> ended_{0};
};

}  // namespace ct2triton
