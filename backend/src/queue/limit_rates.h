// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <utility>

#include "rows/call_key.h"

namespace ct2triton {

// How often beam rows reached their limits lately, for each of the searches used last: they differ.
class LimitRates {
 public:
  // Whether rows of different limits may share a call of this kind of search: a row that reaches a
  // limit below the call's largest has run for nothing, and runs again.
  bool AllowOverrun(const CallKey& key) const;
  void Count(const CallKey& key, bool reached_limit);

 private:
  struct Rate {
    CallKey key;
    double reached = 0;  // share of the rows, the newest weigh most
  };
  std::list<Rate> rates_;  // used last stands first
};

}  // namespace ct2triton
