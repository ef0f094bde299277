// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share. A target ends the process when a property does not hold; libFuzzer
// then keeps the input.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>  // after <cstdint>, which it leaves out

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "error.h"

namespace fuzz {

inline void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "property broken: %s\n", what.c_str());
  std::abort();
}

// A refusal as a client or an operator gets it: a sentence of bounded length, in UTF-8.
inline void RequireSentence(const std::string& text, size_t most_bytes = 4096) {
  Require(!text.empty() && text.size() < most_bytes, "a message of " + std::to_string(text.size()));
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    Require(lead < 0x80 || (lead >= 0xC2 && lead <= 0xF4), "a message that is no UTF-8");
    Require(i + length <= text.size(), "a message that ends in a character");
    for (size_t k = 1; k < length; ++k) {
      Require((static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80, "no UTF-8");
    }
    i += length;
  }
}

// Runs `action`; false if it refused with an Error of the client's or operator's kind. Every other
// exception ends the process.
template <typename Action>
bool Accepted(const Action& action) {
  try {
    action();
    return true;
  } catch (const ct2triton::Error& error) {
    Require(error.code() == ct2triton::ErrorCode::kInvalidArgument ||
                error.code() == ct2triton::ErrorCode::kUnsupported,
            std::string("another kind of error: ") + error.what());
    RequireSentence(error.what());
    return false;
  }
}

}  // namespace fuzz
