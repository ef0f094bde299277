// SPDX-License-Identifier: Apache-2.0
#include "engine/plain_weights.h"

#include "engine/products/page_memory.h"

namespace ct2triton {

void PlainWeights::GiveBack(const std::vector<WeightCopy>& copies,
                            const std::set<std::string>& names, size_t users) {
  std::set<std::string> copied;
  for (const WeightCopy& copy : copies) copied.insert(copy.variable);
  std::set<const ctranslate2::StorageView*> others;  // that have a name without a copy
  for (const std::string& name : names) {
    if (copied.count(name) == 0) others.insert(model_.get_variable_if_exists(name));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (users_ > users) return;
  for (const WeightCopy& copy : copies) {
    const auto* variable = model_.get_variable_if_exists(copy.variable);
    if (others.count(variable) > 0) continue;
    // The memory is the library's, and no constant.
    void* weights = const_cast<ctranslate2::StorageView*>(variable)->buffer();
    const size_t size = copy.packed->plain_bytes();
    // First: what is not known here is never filled.
    const auto [added, is_new] = empty_.insert({weights, {copy.variable, copy.packed, 0}});
    if (!is_new) continue;
    added->second.bytes_given_back = products::GiveBackPages(weights, size);
    bytes_given_back_ += added->second.bytes_given_back;
  }
}

void PlainWeights::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++users_;
  FillLocked("");
}

void PlainWeights::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --users_;
}

void PlainWeights::Fill(const std::string& prefix) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FillLocked(prefix);
}

void PlainWeights::FillLocked(const std::string& prefix) {
  for (auto it = empty_.begin(); it != empty_.end();) {
    const auto& [weights, empty] = *it;
    if (empty.variable.compare(0, prefix.size(), prefix) != 0) {
      ++it;
      continue;
    }
    empty.packed->Unpack(weights);
    bytes_given_back_ -= empty.bytes_given_back;
    it = empty_.erase(it);
  }
}

}  // namespace ct2triton
