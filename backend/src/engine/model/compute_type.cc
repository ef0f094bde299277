// SPDX-License-Identifier: Apache-2.0
#include "engine/model/compute_type.h"

#include <map>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {

ElementType ResolveComputeType(const std::string& compute_type, ElementType stored) {
  if (compute_type == "default") return IsFloat(stored) ? ElementType::kFloat32 : stored;
  static const std::map<std::string, ElementType> known = {{"auto", ElementType::kInt8},
                                                           {"float32", ElementType::kFloat32},
                                                           {"int16", ElementType::kInt16},
                                                           {"int8", ElementType::kInt8},
                                                           {"int8_float32", ElementType::kInt8}};
  const auto found = known.find(compute_type);
  if (found != known.end()) return found->second;
  ThrowInvalid("parameter compute_type: no CPU computes with " + Quote(compute_type) +
               "; allowed are default, auto, float32, int8, int8_float32 and int16");
}

}  // namespace ct2triton
