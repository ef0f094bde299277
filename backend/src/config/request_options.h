// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ct2triton {

// Options of a request other than decoding options. Ranges and documentation: the table in
// parameter_table.cc.
struct RequestOptions {
  std::string supersede_key;  // a newer request with the same key ends this one; empty = none does
  std::int64_t timeout = 0;   // microseconds until it must be answered; 0 = no limit
  bool stream = false;        // send the translations of a text in parts
  std::string split = "sentences";  // where a text is cut: sentences, lines or none
};

}  // namespace ct2triton
