// SPDX-License-Identifier: Apache-2.0
#include "queue/limit_rates.h"

#include <algorithm>

namespace ct2triton {
namespace {

constexpr double kMostLimited = 0.2;  // above it, rows of different limits run in separate calls
constexpr double kForgetting = 0.02;  // the weight of the newest row
constexpr size_t kMostKinds = 32;

}  // namespace

bool LimitRates::AllowOverrun(const CallKey& key) const {
  const auto known = std::find_if(rates_.begin(), rates_.end(),
                                  [&](const Rate& rate) { return SameOptions(rate.key, key); });
  return known == rates_.end() || known->reached < kMostLimited;
}

void LimitRates::Count(const CallKey& key, bool reached_limit) {
  const auto known = std::find_if(rates_.begin(), rates_.end(),
                                  [&](const Rate& rate) { return SameOptions(rate.key, key); });
  if (known == rates_.end()) {
    rates_.push_front({key, 0});
    if (rates_.size() > kMostKinds) rates_.pop_back();
  } else {
    rates_.splice(rates_.begin(), rates_, known);
  }
  double& reached = rates_.front().reached;
  reached += kForgetting * ((reached_limit ? 1.0 : 0.0) - reached);
}

}  // namespace ct2triton
