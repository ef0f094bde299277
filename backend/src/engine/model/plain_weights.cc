// SPDX-License-Identifier: Apache-2.0
#include "engine/model/plain_weights.h"

#include <chrono>

#include "engine/compute/cpu/products/page_memory.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// The weights stay so many times as long as it took to fill them.
constexpr uint64_t kStayFactor = 20;

}  // namespace

PlainWeights::~PlainWeights() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (going_.joinable()) going_.join();
}

void PlainWeights::GiveBack(const std::vector<WeightCopy>& copies,
                            const std::set<std::string>& names, size_t users) {
  std::set<std::string> copied;
  for (const WeightCopy& copy : copies) copied.insert(copy.variable);
  std::set<const ctranslate2::StorageView*> others;  // that have a name without a copy
  for (const std::string& name : names) {
    if (copied.count(name) == 0) others.insert(model_.get_variable_if_exists(name));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const WeightCopy& copy : copies) {
    const auto* variable = model_.get_variable_if_exists(copy.variable);
    if (variable == nullptr || others.count(variable) > 0) continue;
    const auto elements = static_cast<size_t>(variable->dim(0) * variable->dim(1));
    if (elements * variable->item_size() != copy.packed->plain_bytes()) continue;
    // The memory is the library's, and no constant.
    void* weights = const_cast<ctranslate2::StorageView*>(variable)->buffer();
    // First: what is not known here is never filled.
    const auto known = variables_.insert({weights, {copy.variable, copy.packed, nullptr, 0}}).first;
    if (known->second.copy.expired()) known->second.copy = copy.packed;
    if (users_ > users) {
      all_gone_ = false;
    } else {
      GoLocked(weights, &known->second);
    }
  }
}

void PlainWeights::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++users_;
  const uint64_t start_ns = SteadyNow_ns();
  bool filled = false;
  for (auto& [weights, variable] : variables_) {
    if (variable.kept_copy == nullptr) continue;
    FillLocked(weights, &variable);
    filled = true;
  }
  if (filled) fill_ns_ = SteadyNow_ns() - start_ns;
}

void PlainWeights::End() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--users_ > 0 || all_gone_) return;
  unused_ns_ = SteadyNow_ns();
  try {
    if (!going_.joinable()) going_ = std::thread([this] { GoAgainWhenUnused(); });
  } catch (const std::exception&) {  // no memory for a thread: the next end of a use tries again
  }
  changed_.notify_all();
}

void PlainWeights::Keep(const std::string& prefix) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = variables_.begin(); it != variables_.end();) {
    auto& [weights, variable] = *it;
    if (variable.name.compare(0, prefix.size(), prefix) != 0) {
      ++it;
      continue;
    }
    if (variable.kept_copy != nullptr) FillLocked(weights, &variable);
    it = variables_.erase(it);
  }
}

void PlainWeights::GoLocked(void* weights, Variable* variable) {
  if (variable->kept_copy != nullptr) return;
  variable->kept_copy = variable->copy.lock();
  if (variable->kept_copy == nullptr) return;  // its loops have ended
  const size_t bytes = products::GiveBackPages(weights, variable->kept_copy->plain_bytes());
  variable->bytes_given_back = bytes;
  bytes_given_back_ += bytes;
}

void PlainWeights::FillLocked(void* weights, Variable* variable) {
  variable->kept_copy->Unpack(weights);
  variable->kept_copy.reset();
  bytes_given_back_ -= variable->bytes_given_back;
  all_gone_ = false;
}

void PlainWeights::GoAgainLocked() {
  for (auto& [weights, variable] : variables_) GoLocked(weights, &variable);
  all_gone_ = true;
}

void PlainWeights::GoAgainWhenUnused() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    const uint64_t stay_until_ns = unused_ns_ + kStayFactor * fill_ns_;
    const uint64_t now_ns = SteadyNow_ns();
    if (users_ > 0 || all_gone_) {
      changed_.wait(lock);
    } else if (now_ns < stay_until_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(stay_until_ns - now_ns));
    } else {
      GoAgainLocked();
    }
  }
}

}  // namespace ct2triton
