// SPDX-License-Identifier: Apache-2.0
#include "config/auto_complete.h"

#include <nlohmann/json.hpp>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "error.h"

namespace ct2triton {
namespace {

using Json = nlohmann::json;

// Rows of one Triton batch. Large, because the backend splits batches into calls itself.
constexpr int kMaxBatchSize = 256;

Json& List(Json& config, const char* key) {
  Json& list = config[key];
  if (!list.is_array()) list = Json::array();
  return list;
}

Json Complete(const TensorRule& rule, bool is_input) {
  Json tensor = {{"name", rule.name}, {"data_type", rule.data_type}, {"dims", rule.dims}};
  if (is_input) {
    tensor["optional"] = rule.may_be_optional;
    tensor["allow_ragged_batch"] = rule.dims.front() == -1;
  }
  return tensor;
}

// Adds the type and the dims that a tensor of the protocol leaves out.
void FillTensor(Json& tensor, const std::vector<TensorRule>& rules) {
  const TensorRule* rule = FindRule(rules, tensor.value("name", ""));
  if (rule == nullptr) return;
  if (tensor.value("data_type", "TYPE_INVALID") == "TYPE_INVALID") {
    tensor["data_type"] = rule->data_type;
  }
  if (List(tensor, "dims").empty()) tensor["dims"] = rule->dims;
}

bool Has(const Json& tensors, std::string_view name) {
  for (const Json& tensor : tensors) {
    if (tensor.value("name", "") == name) return true;
  }
  return false;
}

// Adds all tensors of the protocol if the config declares none, else the required ones that are
// missing.
void FillTensors(Json& tensors, const std::vector<TensorRule>& rules, bool is_input) {
  for (Json& tensor : tensors) FillTensor(tensor, rules);
  const bool none = tensors.empty();
  for (const TensorRule& rule : rules) {
    if (none || (rule.required && !Has(tensors, rule.name))) {
      tensors.push_back(Complete(rule, is_input));
    }
  }
}

// A max_batch_size of 0 may be explicit or missing, which Triton does not distinguish. It is taken
// as explicit if the config names inputs.
void FillBatching(Json& config) {
  const Json& size = config["max_batch_size"];
  if (size.is_null() || size == 0) config["max_batch_size"] = kMaxBatchSize;
  for (const char* choice : {"dynamic_batching", "sequence_batching", "ensemble_scheduling"}) {
    if (config.contains(choice)) return;
  }
  config["dynamic_batching"] = Json::object();
}

}  // namespace

std::optional<std::string> AutoComplete(std::string_view json) {
  try {
    const Json given = Json::parse(json);
    Json config = given;
    if (List(config, "input").empty()) FillBatching(config);
    const bool of_text = Has(List(config, "input"), tensor::kTextInput);
    FillTensors(List(config, "input"), InputRules(of_text), true);
    const Json policy = config.value("model_transaction_policy", Json::object());
    const bool streams = of_text && policy.value("decoupled", false);
    FillTensors(List(config, "output"), streams ? StreamOutputRules() : OutputRules(of_text),
                false);
    if (config == given) return std::nullopt;
    return config.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInternal,
                "the model configuration cannot be completed: " + Quote(error.what(), 200));
  }
}

}  // namespace ct2triton
