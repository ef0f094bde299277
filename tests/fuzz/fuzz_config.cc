// SPDX-License-Identifier: Apache-2.0
//
// The text of a model configuration, and of the files beside it. Whatever is read keeps every
// promise that the rest of the backend relies on; whatever is completed needs no completion again;
// all else is a sentence.
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "config/auto_complete.h"
#include "config/model_config.h"
#include "config/model_files.h"
#include "config/shortlist_file.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "fuzz.h"

namespace {

using namespace ct2triton;
using fuzz::Require;

void CheckTensors(const std::vector<TensorSpec>& tensors, const std::vector<TensorRule>& rules) {
  std::set<std::string> names;
  for (const TensorSpec& tensor : tensors) {
    const TensorRule* rule = FindRule(rules, tensor.name);
    Require(rule != nullptr, "a tensor that nobody knows");
    Require(names.insert(tensor.name).second, "a tensor declared twice");
    Require(tensor.dims == rule->dims, "dims other than the protocol's");
    Require(!tensor.optional || rule->may_be_optional, "a required tensor made optional");
    Require(!rule->holds_ids || LargestInteger(tensor.data_type), "ids of no integer type");
  }
  for (const TensorRule& rule : rules) {
    Require(!rule.required || names.count(std::string(rule.name)) == 1, "a tensor is missing");
  }
}

void CheckModel(const ModelConfig& model) {
  CheckTensors(model.inputs, InputRules());
  CheckTensors(model.outputs, OutputRules());
  Require(fuzz::Accepted([&] {
            ValidateCombination(model.decoding, model.engine);
            ValidateEngine(model.engine);
          }),
          "a config was read whose options are refused");
  if (model.engine.pad_id) {
    const TensorSpec* output = &model.Output("OUTPUT_IDS");
    Require(*model.engine.pad_id <= *LargestInteger(output->data_type), "pad_id does not fit");
  }
  for (const std::string& warning : model.warnings) fuzz::RequireSentence(warning);
}

// The config, or nothing when it is refused. Text that is no configuration of Triton's is an
// internal error, with a sentence too.
std::optional<ModelConfig> Read(std::string_view json) {
  try {
    ModelConfig model = ParseModelConfig(json);
    CheckModel(model);
    return model;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    // It may show the operator's dims, however many they are.
    fuzz::RequireSentence(error.what(), 4096 + 2 * json.size());
    Require(text.rfind("model ", 0) == 0 || text.rfind("the model configuration", 0) == 0,
            "a message that does not name the model");
    return std::nullopt;
  }
}

void CheckCompletion(std::string_view json, const std::optional<ModelConfig>& given) {
  std::optional<std::string> completed;
  try {
    completed = AutoComplete(json);
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInternal, "completion refuses nothing");
    fuzz::RequireSentence(error.what());
    return;
  }
  if (!completed) return;
  Require(!AutoComplete(*completed), "a completed config is completed again");
  const auto read = Read(*completed);
  if (!given) return;
  Require(read.has_value(), "completion spoiled a good config");
  Require(read->decoding == given->decoding, "completion changed the options");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  CheckCompletion(json, Read(json));
  fuzz::Accepted([&] { ParseModelFileConfig(json); });
  fuzz::Accepted([&] {
    for (const LanguageList& list : ParseShortlists(json)) {
      Require(!list.tokens.empty(), "a list without tokens");
      Require(list.prefix_id.has_value() != list.source_id.has_value(), "a list of no language");
    }
  });
  return 0;
}
