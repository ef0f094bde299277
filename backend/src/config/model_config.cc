// SPDX-License-Identifier: Apache-2.0
#include "config/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/parameters.h"
#include "config/parse_value.h"
#include "config/tensor_check.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "error.h"

namespace ct2triton {
namespace {

using Json = nlohmann::json;

[[noreturn]] void RefuseFeature(const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text);
}

// Protobuf's JSON writes 64-bit integers as strings; Triton turns most of them into numbers.
std::int64_t Integer(const Json& value) {
  return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<std::int64_t>();
}

// Throws the JSON library's type_error if `json` is not an object.
Json Member(const Json& json, const char* key, Json otherwise) {
  const auto& members = json.get_ref<const Json::object_t&>();
  const auto found = members.find(key);
  return found == members.end() ? std::move(otherwise) : found->second;
}

TensorSpec ReadTensor(const Json& json) {
  TensorSpec tensor;
  tensor.name = Member(json, "name", "").get<std::string>();
  tensor.data_type = Member(json, "data_type", "TYPE_INVALID").get<std::string>();
  for (const Json& dim : Member(json, "dims", Json::array())) tensor.dims.push_back(Integer(dim));
  tensor.optional = Member(json, "optional", false).get<bool>();
  tensor.allow_ragged_batch = Member(json, "allow_ragged_batch", false).get<bool>();
  return tensor;
}

void CheckTensorFeatures(const std::string& kind, const std::string& name, const Json& json) {
  for (const char* feature : {"is_shape_tensor", "is_non_linear_format_io"}) {
    if (Member(json, feature, false).get<bool>()) {
      RefuseFeature(kind + " " + Quote(name) + ": " + feature + " is not supported; remove it");
    }
  }
  if (json.contains("reshape")) {
    RefuseFeature(kind + " " + Quote(name) + ": reshape is not supported; remove it");
  }
}

// `kind` is "input" or "output".
std::vector<TensorSpec> ReadTensors(const Json& config, const char* kind,
                                    const std::vector<TensorRule>& rules) {
  std::vector<TensorSpec> tensors;
  for (const Json& json : Member(config, kind, Json::array())) {
    tensors.push_back(ReadTensor(json));
    CheckTensorFeatures(kind, tensors.back().name, json);
  }
  CheckTensors(kind, rules, tensors);
  return tensors;
}

// A model takes text if it declares the input for it.
bool TakesText(const Json& config) {
  const Json inputs = Member(config, "input", Json::array());
  return std::any_of(inputs.begin(), inputs.end(), [](const Json& input) {
    return Member(input, "name", "").get<std::string>() == tensor::kTextInput;
  });
}

bool IsDecoupled(const Json& config) {
  const Json policy = Member(config, "model_transaction_policy", Json::object());
  return Member(policy, "decoupled", false).get<bool>();
}

void CheckFeatures(const Json& config) {
  if (Member(Member(config, "response_cache", Json::object()), "enable", false).get<bool>()) {
    RefuseFeature(
        "response_cache is refused: Triton's cache key leaves out request parameters, shapes and "
        "the outputs asked for, and it stores errors, so requests would get wrong answers; remove "
        "response_cache");
  }
  if (IsDecoupled(config) && !TakesText(config)) {
    RefuseFeature(
        "model_transaction_policy { decoupled: true } is not supported for token ids: each request "
        "has one response; remove it, or declare the input \"text_input\" for streams of text");
  }
  if (config.contains("sequence_batching")) {
    RefuseFeature(
        "sequence_batching is not supported: requests do not depend on earlier ones; use "
        "dynamic_batching { } instead");
  }
  for (const char* feature : {"batch_input", "batch_output"}) {
    if (!Member(config, feature, Json::array()).empty()) {
      RefuseFeature(std::string(feature) +
                    " is not supported: ragged rows are read without it; remove it");
    }
  }
}

// A warmup request that a backend refuses can crash Triton 2.51 (a segmentation fault while it
// destroys the instance), and random IDs are refused.
std::vector<WarmUp> ReadWarmUps(const Json& config) {
  std::vector<WarmUp> warm_ups;
  for (const Json& sample : Member(config, "model_warmup", Json::array())) {
    WarmUp warm_up{Member(sample, "name", "").get<std::string>(), {}};
    const Json inputs = Member(sample, "inputs", Json::object());
    for (const auto& [name, input] : inputs.items()) {
      if (Member(input, "random_data", false).get<bool>()) {
        ThrowInvalid(
            "model_warmup " + Quote(warm_up.name) + ": input " + Quote(name) +
            " has random_data, but random ids would be outside the vocabulary; use zero_data or "
            "input_data_file");
      }
      if (!Member(input, "zero_data", false).get<bool>()) warm_up.inputs.push_back(name);
    }
    warm_ups.push_back(std::move(warm_up));
  }
  return warm_ups;
}

void CheckInstanceKinds(const Json& config) {
  for (const Json& group : Member(config, "instance_group", Json::array())) {
    if (Member(group, "kind", "KIND_AUTO").get<std::string>() == "KIND_MODEL") {
      RefuseFeature(
          "instance_group kind KIND_MODEL is not supported: the backend does not choose devices "
          "itself; use KIND_CPU, or KIND_GPU with gpus: [ ... ]");
    }
  }
}

void ReadParameters(const Json& config, ModelConfig* model) {
  const Json parameters = Member(config, "parameters", Json::object());
  const auto set = [&](const std::string& name, const Json& value) {
    SetModelParameter(name, Member(value, "string_value", "").get<std::string>(), &model->decoding,
                      &model->engine);
  };
  // First, because it says which of the others to ignore.
  if (const auto allowed = parameters.find("allowed_parameters"); allowed != parameters.end()) {
    set(allowed.key(), allowed.value());
  }
  NamedOnce once;
  for (const auto& [name, value] : parameters.items()) {
    once.Add(name);
    set(name, value);
  }
  if (Judges(model->decoding)) model->decoding.return_scores = true;
  ValidateEngine(model->engine);
  ValidateCombination(model->decoding, model->engine);
  if (model->streams) ValidateStream(model->decoding);
}

void CheckPadId(const ModelConfig& model) {
  if (!model.engine.pad_id || model.takes_text) return;
  for (const TensorSpec& output : model.outputs) {
    if (!FindRule(model.output_rules(), output.name)->holds_ids) continue;
    if (*model.engine.pad_id <= *LargestInteger(output.data_type)) continue;
    ThrowInvalid("parameter \"pad_id\": " + std::to_string(*model.engine.pad_id) +
                 " does not fit into output " + Quote(output.name) + " of data_type " +
                 output.data_type + "; give the output a wider type");
  }
}

// Whether a setting of the batcher can make it stall: with any of these, Triton 2.51 does not
// prefetch and can miss a wake-up for 500 ms.
bool HasQueuePolicy(const Json& batching) {
  const Json policy = Member(batching, "default_queue_policy", Json::object());
  return Integer(Member(batching, "priority_levels", 0)) != 0 ||
         Integer(Member(policy, "default_timeout_microseconds", 0)) != 0 ||
         Integer(Member(policy, "max_queue_size", 0)) != 0 ||
         Member(policy, "allow_timeout_override", false).get<bool>();
}

// With a smaller prefix_bias_beta, NLLB can change the language: 30 of 60 rows did at 0.01, none
// did from 0.05 on.
bool LosesLanguages(const DecodingOptions& decoding) {
  return decoding.prefix_bias_beta > 0 && decoding.prefix_bias_beta < 0.05F;
}

std::vector<std::string> Warnings(const Json& config, const ModelConfig& model) {
  std::vector<std::string> warnings;
  if (LosesLanguages(model.decoding)) {
    warnings.push_back("prefix_bias_beta " + Show(model.decoding.prefix_bias_beta) +
                       " is so small that rows may leave the language of their prefix; give 0.05 "
                       "or more, or let requests set draft_bias, which always forces the prefix");
  }
  const auto batching = config.find("dynamic_batching");
  if (batching == config.end() || model.max_batch_size <= 1) return warnings;
  for (const TensorSpec& input : model.inputs) {
    if (input.dims.front() == -1 && !input.allow_ragged_batch) {
      warnings.push_back("input " + Quote(input.name) +
                         " lacks allow_ragged_batch: true, so only requests of equal length are "
                         "batched");
    }
  }
  if (HasQueuePolicy(*batching)) {
    warnings.push_back(
        "dynamic_batching sets a queue policy (priority_levels, max_queue_size or a timeout), "
        "with which Triton's batcher can stall for up to 500 ms");
  }
  return warnings;
}

ModelConfig Read(const Json& config) {
  ModelConfig model;
  model.name = Member(config, "name", "").get<std::string>();
  model.max_batch_size = Integer(Member(config, "max_batch_size", 0));
  CheckFeatures(config);
  CheckInstanceKinds(config);
  model.warm_ups = ReadWarmUps(config);
  model.takes_text = TakesText(config);
  model.inputs = ReadTensors(config, "input", InputRules(model.takes_text));
  model.streams = IsDecoupled(config);
  model.outputs = ReadTensors(config, "output", model.output_rules());
  model.default_model_filename = Member(config, "default_model_filename", "").get<std::string>();
  ReadParameters(config, &model);
  CheckPadId(model);
  model.warnings = Warnings(config, model);
  return model;
}

}  // namespace

const std::vector<TensorRule>& ModelConfig::output_rules() const {
  return streams ? StreamOutputRules() : OutputRules(takes_text);
}

const TensorSpec& ModelConfig::Output(std::string_view tensor) const {
  const auto found = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const TensorSpec& output) { return output.name == tensor; });
  if (found == outputs.end())
    ThrowInvalid("output " + Quote(tensor) + " is not declared by the model");
  return *found;
}

ModelConfig ParseModelConfig(std::string_view json) {
  std::string where = "the model configuration";
  try {
    const Json config = Json::parse(json);
    where = "model " + Quote(Member(config, "name", "").get<std::string>());
    return Read(config);
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  } catch (const std::exception& error) {
    // Not JSON, or a member of a type that Triton never writes: not a mistake of the operator.
    throw Error(ErrorCode::kInternal, where + " cannot be read: " + Quote(error.what(), 200));
  }
}

}  // namespace ct2triton
