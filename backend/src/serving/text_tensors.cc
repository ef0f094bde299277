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

TextTensors ReadAll(const RequestHandle& request, bool batched) {
  TextTensors tensors;
  bool has_text = false;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = DescribeInput(handle);
    // Triton leaves the batch dimension out of the shape where it is 0: a request of no texts.
    if (batched && input.shape.size() == 1) input.shape.insert(input.shape.begin(), 0);
    if (input.name == tensor::kTextInput) {
      tensors.texts = ReadStrings(input);
      has_text = true;
    } else if (input.name == tensor::kSourceLanguage) {
      tensors.sources = ReadStrings(input);
    } else if (input.name == tensor::kTargetLanguages) {
      tensors.targets = ReadStrings(input);
    } else {
      Refuse("unknown input " + Quote(input.name));
    }
  }
  if (!has_text) Refuse(std::string(tensor::kTextInput) + " is missing");
  return tensors;
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

void CheckShapes(const TextTensors& tensors, bool batched) {
  std::vector<int64_t> leading;
  if (batched) leading.push_back(tensors.texts.shape.empty() ? 1 : tensors.texts.shape.front());
  CheckShape(tensor::kTextInput, tensors.texts.shape, leading, false);
  if (tensors.sources) {
    CheckShape(tensor::kSourceLanguage, tensors.sources->shape, leading, false);
  }
  if (tensors.targets) {
    CheckShape(tensor::kTargetLanguages, tensors.targets->shape, leading, true);
  }
}

}  // namespace

std::string TextTensors::Source(size_t text, const std::string& otherwise) const {
  return sources && !sources->values[text].empty() ? sources->values[text] : otherwise;
}

std::vector<std::string> TextTensors::Targets(size_t text) const {
  const size_t count = targets_of_each();
  if (!targets) return std::vector<std::string>(count);
  const auto begin = targets->values.begin() + static_cast<std::ptrdiff_t>(text * count);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

TextTensors ReadTextTensors(const RequestHandle& request, const ModelConfig& config) {
  TextTensors tensors = ReadAll(request, config.max_batch_size > 0);
  CheckShapes(tensors, config.max_batch_size > 0);
  const size_t most = static_cast<size_t>(config.engine.max_targets);
  if (tensors.targets_of_each() > most) {
    Refuse(std::string(tensor::kTargetLanguages) + ": " +
           std::to_string(tensors.targets_of_each()) +
           " languages are more than the model's max_targets " + std::to_string(most));
  }
  return tensors;
}

}  // namespace ct2triton
