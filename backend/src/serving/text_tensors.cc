// SPDX-License-Identifier: Apache-2.0
#include "serving/text_tensors.h"

#include <utility>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "error.h"
#include "rows/row_tensors.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

struct TextInputs {
  std::optional<Input> texts, sources, targets, stream;
};

TextInputs FindInputs(const RequestHandle& request, bool batched) {
  TextInputs inputs;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = DescribeInput(handle);
    // Triton leaves the batch dimension out of the shape where it is 0: a request of no texts.
    if (batched && input.shape.size() == 1) input.shape.insert(input.shape.begin(), 0);
    if (input.name == tensor::kTextInput) {
      inputs.texts = std::move(input);
    } else if (input.name == tensor::kSourceLanguage) {
      inputs.sources = std::move(input);
    } else if (input.name == tensor::kTargetLanguages) {
      inputs.targets = std::move(input);
    } else if (input.name == tensor::kStream) {
      inputs.stream = std::move(input);
    } else {
      Refuse("unknown input " + Quote(input.name));
    }
  }
  if (!inputs.texts) Refuse(std::string(tensor::kTextInput) + " is missing");
  return inputs;
}

// Triton compares shapes with the declared ones before; what is read by index is checked here too.
void CheckShape(const char* name, const std::vector<int64_t>& shape,
                const std::vector<int64_t>& leading, bool languages) {
  auto fits = leading;
  fits.push_back(languages && !shape.empty() ? shape.back() : 1);
  if (shape == fits) return;
  const std::string texts = leading.empty() ? "" : std::to_string(leading.front()) + ",";
  Refuse(std::string(name) + " has shape " + ShapeText(shape) + ", it must be [" + texts +
         (languages ? "n]" : "1]"));
}

void CheckShapes(const TextInputs& inputs, bool batched, int64_t most_targets) {
  std::vector<int64_t> leading;
  if (batched) leading.push_back(inputs.texts->shape.empty() ? 1 : inputs.texts->shape.front());
  CheckShape(tensor::kTextInput, inputs.texts->shape, leading, false);
  if (inputs.sources) CheckShape(tensor::kSourceLanguage, inputs.sources->shape, leading, false);
  if (!inputs.targets) return;
  CheckShape(tensor::kTargetLanguages, inputs.targets->shape, leading, true);
  const bool no_texts = batched && leading.front() == 0;
  if (inputs.targets->shape.back() == 0 && !no_texts) {
    Refuse(std::string(tensor::kTargetLanguages) + " is empty; name at least one language");
  }
  if (inputs.targets->shape.back() > most_targets) {
    Refuse(std::string(tensor::kTargetLanguages) + ": " +
           std::to_string(inputs.targets->shape.back()) +
           " languages are more than the model's max_targets " + std::to_string(most_targets));
  }
}

}  // namespace

std::string TextTensors::Source(size_t text, const std::string& otherwise) const {
  return sources && !sources->values[text].empty() ? std::string(sources->values[text]) : otherwise;
}

std::vector<std::string> TextTensors::Targets(size_t text) const {
  const size_t count = targets_of_each();
  if (!targets) return std::vector<std::string>(count);
  const auto begin = targets->values.begin() + static_cast<std::ptrdiff_t>(text * count);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

TextTensors ReadTextTensors(const RequestHandle& request, const ModelConfig& config) {
  const bool batched = config.max_batch_size > 0;
  const TextInputs inputs = FindInputs(request, batched);
  CheckShapes(inputs, batched, config.engine.max_targets);
  TextTensors tensors;
  tensors.texts = ReadStrings(*inputs.texts);
  if (inputs.sources) tensors.sources = ReadStrings(*inputs.sources);
  if (inputs.targets) tensors.targets = ReadStrings(*inputs.targets);
  if (inputs.stream) tensors.stream = ReadFlag(*inputs.stream);
  return tensors;
}

}  // namespace ct2triton
