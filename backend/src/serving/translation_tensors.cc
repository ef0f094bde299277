// SPDX-License-Identifier: Apache-2.0
#include "serving/translation_tensors.h"

#include <string>

#include "config/tensor_table.h"
#include "serving/output_tensor.h"

namespace ct2triton {
namespace {

constexpr char kUndetermined[] = "und";  // ISO 639: of a model that names no languages

// Empty if verdicts are not requested, and before the last part of a stream.
template <class Value, class Get>
Matrix<Value> OfVerdicts(std::vector<int64_t> shape, const Translations& all, const Get& get) {
  const bool judged = !all.empty() && all.front()->verdict;
  if (!judged) shape.back() = 0;
  const auto value = [&](const Translation& one) { return get(*one.verdict); };
  return Collect<Value>(shape, judged ? all : Translations(), value);
}

}  // namespace

bool WriteOfEach(const TensorSpec& spec, const std::vector<int64_t>& shape, const Translations& all,
                 Response* response) {
  using T = Translation;
  const auto texts = [&](const auto& get) {
    WriteTensor(spec, Collect<std::string>(shape, all, get), response);
    return true;
  };
  const auto numbers = [&](size_t T::*member) {
    const auto get = [member](const T& one) { return one.*member; };
    WriteTensor(spec, Collect<int64_t>(shape, all, get), response);
    return true;
  };
  const auto code = [](const T& one) { return one.target.empty() ? kUndetermined : one.target; };
  if (spec.name == tensor::kTextOutput) return texts([](const T& one) { return one.text; });
  if (spec.name == tensor::kTextFinishReason) return texts([](const T& one) { return one.finish; });
  if (spec.name == tensor::kTargetLanguage) return texts(code);
  if (spec.name == tensor::kTextQuality) {
    const auto quality = [](const Verdict& one) { return static_cast<float>(one.Quality()); };
    WriteTensor(spec, OfVerdicts<float>(shape, all, quality), response);
    return true;
  }
  if (spec.name == tensor::kTextQualityFlags) {
    const auto flags = [](const Verdict& one) { return one.Json(); };
    WriteTensor(spec, OfVerdicts<std::string>(shape, all, flags), response);
    return true;
  }
  if (spec.name == tensor::kTargetIndex) return numbers(&T::target_index);
  if (spec.name == tensor::kNumInputTokens) return numbers(&T::input_tokens);
  if (spec.name == tensor::kNumOutputTokens) return numbers(&T::output_tokens);
  return false;
}

}  // namespace ct2triton
