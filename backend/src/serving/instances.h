// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace ct2triton {

class InstanceState;

// The instances of a model. Each takes over its requests at once, so Triton does not know which of
// several GPUs is busy: a batch goes to the instance with the least load.
class Instances {
 public:
  void Add(InstanceState* instance);
  // Waits until no thread uses it.
  void Remove(InstanceState* instance) noexcept;
  // Calls `use`, which must not wait, with `own`, or with an instance on another device of this
  // kind that has less load.
  template <class Use>
  void UseLeastLoaded(InstanceState* own, const Use& use) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    use(LeastLoaded(own));
  }
  // What `use`, which must not wait, returns for the instance; false if it was removed.
  template <class Use>
  bool UseIfThere(InstanceState* instance, const Use& use) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return Has(instance) && use(instance);
  }

 private:
  InstanceState* LeastLoaded(InstanceState* own) const;
  bool Has(InstanceState* instance) const;

  std::shared_mutex mutex_;
  std::vector<InstanceState*> instances_;
};

}  // namespace ct2triton
