// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {

// The tenant's name in a request's parameters, from the header tenant_header (case-insensitive);
// empty: none. Throws Error(kInvalidArgument) for a name that is too long, or two different names.
std::string TenantName(const std::vector<std::pair<std::string, ParameterValue>>& parameters,
                       const std::string& tenant_header);

// A request that may be refused while it waits to enter the queue.
class Refusable {
 public:
  virtual ~Refusable() = default;
  // False if it already has an answer or an error.
  virtual bool Refuse(const Error& error) noexcept = 0;
};

// A tenant of one instance.
class Tenant {
 public:
  explicit Tenant(std::string name) : name_(std::move(name)) {}
  const std::string& name() const noexcept { return name_; }

  std::atomic<size_t> rows{0};  // rows handed over and not answered

 private:
  friend class Tenants;
  struct Member {
    const Refusable* request = nullptr;
    std::weak_ptr<Refusable> alive;
  };

  const std::string name_;
  std::vector<Member> entering_;  // requests with rows not handed over; the newest is last
};

// The tenants of an instance that have requests.
class Tenants {
 public:
  // Counts a new request.
  std::shared_ptr<Tenant> Enter(const std::string& name, const std::shared_ptr<Refusable>& request);
  // Call when all its rows are handed over or it has ended. May be called again.
  void Leave(Tenant* tenant, const Refusable& request) noexcept;

  // Refuses the newest request of the tenant with the most requests. False if no request is left.
  bool RefuseOne() noexcept;
  // How many of `waiting` rows run before a row that follows `own` ones of its tenant, with equal
  // shares.
  size_t RowsBefore(const Tenant& tenant, size_t own, size_t waiting) const noexcept;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Tenant>> known_;
};

}  // namespace ct2triton
