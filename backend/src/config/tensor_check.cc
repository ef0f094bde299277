// SPDX-License-Identifier: Apache-2.0
#include "config/tensor_check.h"

#include <algorithm>
#include <string_view>

#include "config/nearest_name.h"
#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

std::string Named(const std::string& kind, std::string_view name) {
  return kind + " " + Quote(name);
}

std::string ShowDims(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (const auto dim : dims) text += (text.size() == 1 ? " " : ", ") + std::to_string(dim);
  return text + " ]";
}

std::ptrdiff_t Count(const std::vector<TensorSpec>& tensors, std::string_view name) {
  return std::count_if(tensors.begin(), tensors.end(),
                       [&](const TensorSpec& tensor) { return tensor.name == name; });
}

const TensorRule& RuleOf(const std::string& kind, const std::vector<TensorRule>& rules,
                         std::string_view name) {
  if (const TensorRule* rule = FindRule(rules, name)) return *rule;
  std::vector<std::string_view> known;
  std::string list;
  for (const TensorRule& rule : rules) {
    known.push_back(rule.name);
    list += (list.empty() ? "" : ", ") + std::string(rule.name);
  }
  const auto nearest = NearestName(name, known);
  ThrowInvalid(Named(kind, name) + " is not known; " +
               (nearest ? "did you mean " + Quote(*nearest) + "? Known" : "known") + " are " +
               list);
}

void CheckOne(const std::string& named, const TensorRule& rule, const TensorSpec& tensor) {
  const bool type_fits = rule.holds_ids ? LargestInteger(tensor.data_type).has_value()
                                        : tensor.data_type == rule.data_type;
  if (!type_fits) {
    ThrowInvalid(named + ": data_type " + tensor.data_type + " is not allowed; give " +
                 (rule.holds_ids ? "an integer type, such as " : "") + std::string(rule.data_type));
  }
  if (tensor.dims != rule.dims) {
    ThrowInvalid(named + ": dims " + ShowDims(tensor.dims) + " are not allowed; give " +
                 ShowDims(rule.dims) + ", the batch dimension left out");
  }
  if (tensor.optional && !rule.may_be_optional) {
    ThrowInvalid(named + " cannot be optional; remove optional: true");
  }
}

}  // namespace

void CheckTensors(const std::string& kind, const std::vector<TensorRule>& rules,
                  const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) {
    const TensorRule& rule = RuleOf(kind, rules, tensor.name);
    if (Count(tensors, tensor.name) > 1)
      ThrowInvalid(Named(kind, tensor.name) + " is declared twice");
    CheckOne(Named(kind, tensor.name), rule, tensor);
  }
  for (const TensorRule& rule : rules) {
    const bool declared = Count(tensors, rule.name) > 0;
    if (rule.required && !declared) {
      ThrowInvalid(Named(kind, rule.name) + " is missing; declare it with data_type " +
                   std::string(rule.data_type) + " and dims " + ShowDims(rule.dims));
    }
    if (declared && !rule.companion.empty() && Count(tensors, rule.companion) == 0) {
      ThrowInvalid(Named(kind, rule.name) + " needs " + Named(kind, rule.companion) +
                   "; declare both or none");
    }
  }
}

}  // namespace ct2triton
