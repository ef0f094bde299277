// SPDX-License-Identifier: Apache-2.0
#include "serving/text_answer.h"

#include <cstdint>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "serving/output_tensor.h"
#include "serving/target_text.h"

namespace ct2triton {
namespace {

Translation Translated(const TextPlan& plan, size_t target, const Tokenizer& tokenizer,
                       const std::vector<RowResult>& rows) {
  TargetText text(plan, target, tokenizer);
  while (const auto row = text.next_row()) text.Add(rows[*row]);
  return text.so_far();
}

template <class Value, class Get>
Matrix<Value> Collect(const std::vector<int64_t>& shape, const std::vector<Translation>& all,
                      const Get& get) {
  Matrix<Value> matrix;
  matrix.shape = shape;
  for (const Translation& one : all) matrix.values.push_back(static_cast<Value>(get(one)));
  return matrix;
}

void WriteOutput(const TensorSpec& spec, const std::vector<int64_t>& shape,
                 const std::vector<Translation>& all, Response* response) {
  using T = Translation;
  const auto write = [&](const auto& matrix) { WriteTensor(spec, matrix, response); };
  if (spec.name == tensor::kTextOutput) {
    write(Collect<std::string>(shape, all, [](const T& one) { return one.text; }));
  } else if (spec.name == tensor::kScore) {
    write(Collect<float>(shape, all, [](const T& one) { return one.score; }));
  } else if (spec.name == tensor::kTextFinishReason) {
    write(Collect<std::string>(shape, all, [](const T& one) { return one.finish; }));
  } else if (spec.name == tensor::kNumInputTokens) {
    write(Collect<int64_t>(shape, all, [](const T& one) { return one.input_tokens; }));
  } else if (spec.name == tensor::kNumOutputTokens) {
    write(Collect<int64_t>(shape, all, [](const T& one) { return one.output_tokens; }));
  } else {
    throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
  }
}

}  // namespace

TextAnswer::TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer,
                       std::vector<std::string> wanted, std::vector<TextPlan> plans, size_t targets)
    : config_(config),
      tokenizer_(tokenizer),
      wanted_(std::move(wanted)),
      plans_(std::move(plans)),
      targets_(targets) {}

void TextAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  std::vector<Translation> all;
  for (const TextPlan& plan : plans_) {
    for (size_t i = 0; i < targets_; ++i) all.push_back(Translated(plan, i, tokenizer_, rows));
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(targets_)};
  if (config_.max_batch_size > 0) {
    shape.insert(shape.begin(), static_cast<int64_t>(plans_.size()));
  }
  for (const std::string& name : wanted_) {
    const TensorSpec* spec = config_.Output(name);
    if (spec == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "output " + name + " is not declared by the model");
    }
    WriteOutput(*spec, shape, all, response);
  }
}

}  // namespace ct2triton
