// SPDX-License-Identifier: Apache-2.0
#include "config/decoding_options.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "config/parameters.h"

namespace ct2triton {
namespace {

// Does nothing for members of EngineOptions, which are not decoding options.
bool EqualIn(const Parameter& parameter, const DecodingOptions& a, const DecodingOptions& b) {
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), const DecodingOptions&>) {
          return a.*member == b.*member;
        } else {
          return true;
        }
      },
      parameter.member);
}

}  // namespace

bool operator==(const DecodingOptions& a, const DecodingOptions& b) {
  const auto& table = Parameters();
  return std::all_of(table.begin(), table.end(),
                     [&](const Parameter& parameter) { return EqualIn(parameter, a, b); });
}

}  // namespace ct2triton
