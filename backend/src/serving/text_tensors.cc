// SPDX-License-Identifier: Apache-2.0
#include "serving/text_tensors.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "error.h"
#include "rows/row_tensors.h"

namespace ct2triton {
namespace {

struct TextInputs {
  std::optional<Input> texts, sources, targets, prefixes, drafts, stream;
};

TextInputs FindInputs(const RequestHandle& request, bool batched) {
  TextInputs inputs;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = DescribeInput(handle);
    // Triton omits a batch dimension of 0 from the shape: a request without texts.
    if (batched && input.shape.size() == 1) input.shape.insert(input.shape.begin(), 0);
    if (input.name == tensor::kTextInput) {
      inputs.texts = std::move(input);
    } else if (input.name == tensor::kSourceLanguage) {
      inputs.sources = std::move(input);
    } else if (input.name == tensor::kTargetLanguages) {
      inputs.targets = std::move(input);
    } else if (input.name == tensor::kTextPrefix) {
      inputs.prefixes = std::move(input);
    } else if (input.name == tensor::kDraft) {
      inputs.drafts = std::move(input);
    } else if (input.name == tensor::kStream) {
      inputs.stream = std::move(input);
    } else {
      ThrowInvalid("unknown input " + Quote(input.name));
    }
  }
  if (!inputs.texts) ThrowInvalid(std::string(tensor::kTextInput) + " is missing");
  return inputs;
}

// Triton has checked shapes against the declared ones; dimensions read by index are checked here
// too.
void CheckShape(const char* name, const std::vector<int64_t>& shape,
                const std::vector<int64_t>& leading, bool languages) {
  auto fits = leading;
  fits.push_back(languages && !shape.empty() ? shape.back() : 1);
  if (shape == fits) return;
  const std::string texts = leading.empty() ? "" : std::to_string(leading.front()) + ",";
  ThrowInvalid(std::string(name) + " has shape " + ShapeText(shape) + ", it must be [" + texts +
               (languages ? "n]" : "1]"));
}

void CheckTargets(const TextInputs& inputs, bool batched, const std::vector<int64_t>& leading,
                  int64_t most_targets) {
  CheckShape(tensor::kTargetLanguages, inputs.targets->shape, leading, true);
  const bool no_texts = batched && leading.front() == 0;
  if (inputs.targets->shape.back() == 0 && !no_texts) {
    ThrowInvalid(std::string(tensor::kTargetLanguages) + " is empty; name at least one language");
  }
  if (inputs.targets->shape.back() > most_targets) {
    ThrowInvalid(std::string(tensor::kTargetLanguages) + ": " +
                 std::to_string(inputs.targets->shape.back()) +
                 " languages are more than the model's max_targets " +
                 std::to_string(most_targets));
  }
}

// One value for each translation.
void CheckBesideTargets(const char* name, const Input& input, const TextInputs& inputs,
                        const std::vector<int64_t>& leading) {
  auto fits = leading;
  fits.push_back(inputs.targets ? inputs.targets->shape.back() : 1);
  if (input.shape == fits) return;
  ThrowInvalid(std::string(name) + " has shape " + ShapeText(input.shape) + ", it must be " +
               ShapeText(fits) + ": one value for each target language, empty for none");
}

void CheckShapes(const TextInputs& inputs, bool batched, int64_t most_targets) {
  std::vector<int64_t> leading;
  if (batched) leading.push_back(inputs.texts->shape.empty() ? 1 : inputs.texts->shape.front());
  CheckShape(tensor::kTextInput, inputs.texts->shape, leading, false);
  if (inputs.sources) CheckShape(tensor::kSourceLanguage, inputs.sources->shape, leading, false);
  if (inputs.targets) CheckTargets(inputs, batched, leading, most_targets);
  if (inputs.prefixes) CheckBesideTargets(tensor::kTextPrefix, *inputs.prefixes, inputs, leading);
  if (inputs.drafts) CheckBesideTargets(tensor::kDraft, *inputs.drafts, inputs, leading);
}

}  // namespace

bool TextTensors::has_draft() const {
  const auto given = [](std::string_view text) { return !text.empty(); };
  return drafts && std::any_of(drafts->values.begin(), drafts->values.end(), given);
}

std::string TextTensors::Source(size_t text, const std::string& otherwise) const {
  return sources && !sources->values[text].empty() ? std::string(sources->values[text]) : otherwise;
}

std::vector<WantedTarget> TextTensors::Targets(size_t text) const {
  const size_t count = targets_of_each();
  std::vector<WantedTarget> wanted(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = text * count + i;
    if (targets) wanted[i].language = targets->values[at];
    if (prefixes) wanted[i].prefix = prefixes->values[at];
    if (drafts) wanted[i].draft = drafts->values[at];
  }
  return wanted;
}

TextTensors ReadTextTensors(const RequestHandle& request, const ModelConfig& config) {
  const bool batched = config.max_batch_size > 0;
  const TextInputs inputs = FindInputs(request, batched);
  CheckShapes(inputs, batched, config.engine.max_targets);
  TextTensors tensors;
  tensors.texts = ReadStrings(*inputs.texts);
  if (inputs.sources) tensors.sources = ReadStrings(*inputs.sources);
  if (inputs.targets) tensors.targets = ReadStrings(*inputs.targets);
  if (inputs.prefixes) tensors.prefixes = ReadStrings(*inputs.prefixes);
  if (inputs.drafts) tensors.drafts = ReadStrings(*inputs.drafts);
  if (inputs.stream) tensors.stream = ReadFlag(*inputs.stream);
  return tensors;
}

}  // namespace ct2triton
