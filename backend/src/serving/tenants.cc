// SPDX-License-Identifier: Apache-2.0
#include "serving/tenants.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "config/parameters.h"

namespace ct2triton {
namespace {

constexpr size_t kLongestName = 256;  // bytes

const Error no_place(ErrorCode::kUnavailable,
                     "the queue is full, and of the requests that wait to enter it this tenant has "
                     "the most; send it again later");

}  // namespace

std::string TenantName(const std::vector<std::pair<std::string, ParameterValue>>& parameters,
                       const std::string& tenant_header) {
  std::optional<std::string> found;
  for (const auto& [name, value] : parameters) {
    if (tenant_header.empty() || !EqualsNoCase(name, tenant_header)) continue;
    const auto* text = std::get_if<std::string>(&value);
    std::string tenant = text != nullptr ? *text : Show(value);
    if (tenant.size() > kLongestName) {
      ThrowInvalid(tenant_header + ": a tenant's name of " + std::to_string(tenant.size()) +
                   " bytes; give one of up to " + std::to_string(kLongestName));
    }
    if (found && *found != tenant) {
      ThrowInvalid(tenant_header + " names two tenants, " + Quote(*found) + " and " +
                   Quote(tenant) + "; give one");
    }
    found = std::move(tenant);
  }
  return found.value_or("");
}

std::shared_ptr<Tenant> Tenants::Enter(const std::string& name,
                                       const std::shared_ptr<Refusable>& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = known_.find(name);
  auto tenant = known == known_.end() ? nullptr : known->second.lock();
  if (!tenant) {
    for (auto it = known_.begin(); it != known_.end();) {
      it = it->second.expired() ? known_.erase(it) : std::next(it);
    }
    tenant = std::make_shared<Tenant>(name);
    known_.emplace(name, tenant);
  }
  tenant->entering_.push_back({request.get(), request});
  return tenant;
}

void Tenants::Leave(Tenant* tenant, const Refusable& request) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& entering = tenant->entering_;
  const auto member = std::find_if(entering.begin(), entering.end(),
                                   [&](const auto& one) { return one.request == &request; });
  if (member != entering.end()) entering.erase(member);
}

bool Tenants::RefuseOne() noexcept {
  for (;;) {
    std::shared_ptr<Refusable> newest;  // released without the lock, because its end calls Leave
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::shared_ptr<Tenant> most;
      for (const auto& [name, known] : known_) {
        const auto tenant = known.lock();
        if (!tenant || tenant->entering_.empty()) continue;
        if (!most || most->entering_.size() < tenant->entering_.size()) most = tenant;
      }
      if (!most) return false;
      newest = most->entering_.back().alive.lock();
      most->entering_.pop_back();
    }
    if (newest && newest->Refuse(no_place)) return true;
  }
}

size_t Tenants::RowsBefore(const Tenant& tenant, size_t own, size_t waiting) const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t before = own;
  for (const auto& [name, known] : known_) {
    const auto other = known.lock();
    if (other && other.get() != &tenant) before += std::min<size_t>(other->rows, own + 1);
  }
  return std::min(before, waiting);
}

}  // namespace ct2triton
