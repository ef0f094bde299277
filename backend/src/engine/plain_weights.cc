// SPDX-License-Identifier: Apache-2.0
#include "engine/plain_weights.h"

#include <map>

#include "engine/products/page_memory.h"

namespace ct2triton {

void PlainWeights::GiveBack(const std::vector<WeightCopy>& copies,
                            const std::set<std::string>& names) {
  std::set<std::string> copied;
  for (const WeightCopy& copy : copies) copied.insert(copy.variable);
  std::set<const ctranslate2::StorageView*> others;  // that have a name without a copy
  for (const std::string& name : names) {
    if (copied.count(name) == 0) others.insert(model_.get_variable_if_exists(name));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (users_ > 0 || !empty_.empty()) return;
  std::map<const ctranslate2::StorageView*, const WeightCopy*> to_empty;
  for (const WeightCopy& copy : copies) {
    const auto* variable = model_.get_variable_if_exists(copy.variable);
    if (others.count(variable) == 0) to_empty[variable] = &copy;
  }
  empty_.reserve(to_empty.size());
  for (const auto& [variable, copy] : to_empty) {
    // The memory is the library's, and no constant.
    auto* weights =
        const_cast<int8_t*>(reinterpret_cast<const int8_t*>(variable->data<signed char>()));
    const size_t size = static_cast<size_t>(copy->packed->outputs() * copy->packed->inputs());
    empty_.push_back({weights, copy->packed});  // first: what is not known here is never filled
    bytes_given_back_ += products::GiveBackPages(weights, size);
  }
}

void PlainWeights::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++users_;
  for (const Empty& empty : empty_) empty.packed->Unpack(empty.weights);
  empty_.clear();
  bytes_given_back_ = 0;
}

void PlainWeights::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --users_;
}

}  // namespace ct2triton
