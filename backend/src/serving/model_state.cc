// SPDX-License-Identifier: Apache-2.0
#include "serving/model_state.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/auto_complete.h"
#include "config/model_files.h"
#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "serving/file_check.h"
#include "triton/guard.h"
#include "triton/log.h"
#include "triton/model.h"
#include "triton/model_directory.h"

namespace ct2triton {
namespace {

constexpr size_t kMostDigits = 19;  // of a version

ModelConfig ReadConfig(TRITONBACKEND_Model* model) {
  if (AutoCompleteWanted(model)) {
    if (const auto completed = AutoComplete(ModelConfigJson(model))) {
      SetModelConfigJson(model, *completed);
    }
  }
  return ParseModelConfig(ModelConfigJson(model));
}

// Origin of a version of a prepared model; empty if ct2-prepare did not write it. `directory`: its
// files, which may be those of another model.
std::string OriginOf(const std::string& directory) {
  const std::filesystem::path version_folder = std::filesystem::path(directory).parent_path();
  const std::string version = version_folder.filename();
  if (version.empty() || version.size() > kMostDigits ||
      version.find_first_not_of("0123456789") != std::string::npos) {
    return "";
  }
  std::ifstream file(RecordFile(version_folder.parent_path(), std::stoull(version)));
  if (!file) return "";
  try {
    return ", made of " + DescribeOrigin(std::string{std::istreambuf_iterator<char>(file), {}});
  } catch (const Error& error) {
    return std::string(", of unknown origin: ") + error.what();
  }
}

void RequireWideIds(const std::vector<TensorSpec>& tensors, const std::vector<TensorRule>& rules,
                    int64_t vocabulary_size) {
  for (const TensorSpec& tensor : tensors) {
    if (!FindRule(rules, tensor.name)->holds_ids) continue;
    if (vocabulary_size - 1 <= *LargestInteger(tensor.data_type)) continue;
    ThrowInvalid(tensor.name + ": data_type " + tensor.data_type +
                 " is too narrow for the ids 0 to " + std::to_string(vocabulary_size - 1) +
                 " of the vocabulary; give it a wider type, such as TYPE_INT32");
  }
}

std::filesystem::path TokenizerFolder(TRITONBACKEND_Model* model, const ModelConfig& config) {
  return std::filesystem::path(ModelFolder(model)) / config.engine.tokenizer_path;
}

// Empty if the languages are not listed, or in a form that only clients can read.
TargetIds ReadLanguages(const std::filesystem::path& tokenizer_folder) {
  std::ifstream file(tokenizer_folder / "languages.json");
  if (!file) return {};
  try {
    return ParseTargetIds(std::string{std::istreambuf_iterator<char>(file), {}});
  } catch (...) {
    LogCurrentError();
    return {};
  }
}

// A model with several languages refuses requests without a language, and refusing a warmup request
// may crash the server.
void CheckWarmUp(const WarmUp& warm_up, const ModelConfig& config, const Tokenizer& tokenizer) {
  const auto check = [&](const char* input, const std::string& otherwise, Side side) {
    const auto& inputs = warm_up.inputs;
    if (std::find(inputs.begin(), inputs.end(), input) != inputs.end()) return;
    try {
      tokenizer.Language(otherwise, side);
    } catch (const Error& error) {
      throw Error(error.code(),
                  "model_warmup " + Quote(warm_up.name) + ": its " + input +
                      " names no language (zero_data is an empty text), and " + error.what() +
                      "; write an input_data_file for text_input, source_language and "
                      "target_languages, with the length of each text in 4 bytes before it");
    }
  };
  check(tensor::kSourceLanguage, config.engine.source_language, Side::kSource);
  check(tensor::kTargetLanguages, "", Side::kTarget);
}

// Null for a token-ID model. Throws for a default language that the tokenizer does not have.
std::shared_ptr<const Tokenizer> LoadTokenizer(const std::filesystem::path& folder,
                                               const ModelConfig& config) {
  if (!config.takes_text) return nullptr;
  auto tokenizer = Tokenizer::Load(folder);
  const std::string& source = config.engine.source_language;
  if (!source.empty()) tokenizer->Language(source, Side::kSource);
  for (const WarmUp& warm_up : config.warm_ups) CheckWarmUp(warm_up, config, *tokenizer);
  return tokenizer;
}

// Null if it has no state.
ModelState* StateOf(TRITONBACKEND_Model* model) {
  void* state = nullptr;
  ThrowIfError(TRITONBACKEND_ModelState(model, &state), "reading the state of a model");
  return static_cast<ModelState*>(state);
}

}  // namespace

void ModelState::Attach(TRITONBACKEND_Model* model) {
  auto state = std::make_unique<ModelState>(model);
  ThrowIfError(TRITONBACKEND_ModelSetState(model, state.get()), "keeping the state of a model");
  state.release();
}

void ModelState::Detach(TRITONBACKEND_Model* model) {
  delete StateOf(model);
  // Triton loads each model on a thread of its own; without this, the memory of the freed weights
  // stays with that thread's heap, and each reload makes the process grow.
  malloc_trim(0);
}

ModelState& ModelState::Of(TRITONBACKEND_Model* model) { return *StateOf(model); }

ModelState::ModelState(TRITONBACKEND_Model* model)
    : name_(ModelName(model)),
      version_(ModelVersion(model)),
      label_("model '" + name_ + "' version " + std::to_string(version_)),
      config_(ReadConfig(model)),
      directory_(FindModelDirectory(ModelFolder(model), version_, config_)),
      tokenizer_(LoadTokenizer(TokenizerFolder(model, config_), config_)),
      languages_(ReadLanguages(TokenizerFolder(model, config_))),
      metrics_(languages_, name_, version_),
      judge_(ReadQualityStatistics(directory_)) {
  if (config_.engine.verify_files) VerifyFiles(ModelFolder(model), version_);
  for (const std::string& warning : config_.warnings) LogWarning(label_ + ": " + warning);
  LogInfo(label_ + ": loading '" + directory_ + "'" + OriginOf(directory_));
}

ModelState::~ModelState() {
  uint64_t busy_ns = 0;
  for (const auto& [device, translator] : translators_) busy_ns += translator->BusyTime_ns();
  LogInfo(label_ + ": unloaded; its weights kept decoding threads busy for " +
          std::to_string(busy_ns / 1'000'000) + " ms");
}

std::shared_ptr<Translator> ModelState::TranslatorOn(const Device& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [known, translator] : translators_) {
    if (known == device) return translator;
  }
  RequireDevice(device);
  auto translator =
      std::make_shared<Translator>(directory_, device, config_.decoding, config_.engine);
  const int64_t vocabulary_size = translator->model().vocabulary_size();
  RequireWideIds(config_.inputs, InputRules(config_.takes_text), vocabulary_size);
  RequireWideIds(config_.outputs, config_.output_rules(), vocabulary_size);
  LogInfo(label_ + ": " + translator->Description());
  const std::string& refusal = translator->model().loop_refusal();
  if (!refusal.empty()) {
    LogWarning(
        label_ +
        ": its rows run as calls of CTranslate2, since decode loops cannot run it: " + refusal);
  }
  metrics_.Follow(translator);
  translators_.emplace_back(device, translator);
  return translator;
}

}  // namespace ct2triton
