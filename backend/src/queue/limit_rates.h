// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <utility>

#include "rows/call_key.h"

namespace ct2triton {

// Rate at which beam rows reached their limits, per search, for recently used searches.
class LimitRates {
 public:
  // Whether rows of different limits may share a call of this kind of search: a row that reaches a
  // limit below the call's largest must run again.
  bool AllowOverrun(const CallKey& key) const;
  void Count(const CallKey& key, bool reached_limit);

 private:
  struct Rate {
    CallKey key;
    double reached = 0;  // share of the rows, exponentially weighted towards the newest
  };
  std::list<Rate> rates_;  // most recently used first
};

}  // namespace ct2triton
