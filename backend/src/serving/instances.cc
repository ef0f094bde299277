// SPDX-License-Identifier: Apache-2.0
#include "serving/instances.h"

#include <algorithm>

#include "serving/instance_state.h"

namespace ct2triton {

void Instances::Add(InstanceState* instance) {
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  instances_.push_back(instance);
}

void Instances::Remove(InstanceState* instance) noexcept {
  const std::lock_guard<std::shared_mutex> lock(mutex_);
  instances_.erase(std::remove(instances_.begin(), instances_.end(), instance), instances_.end());
}

bool Instances::Has(InstanceState* instance) const {
  return std::find(instances_.begin(), instances_.end(), instance) != instances_.end();
}

InstanceState* Instances::LeastLoaded(InstanceState* own) const {
  InstanceState* least = own;
  for (InstanceState* other : instances_) {
    const bool elsewhere =
        other->device().kind == own->device().kind && !(other->device() == own->device());
    if (elsewhere && other->Load() < least->Load()) least = other;
  }
  return least;
}

}  // namespace ct2triton
