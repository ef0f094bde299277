// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/text_plan.h"
#include "triton/input.h"
#include "triton/request.h"

namespace ct2triton {

// The inputs of one request of b texts with n targets each. Without batching, shapes have no b:
// requests have one text.
struct TextTensors {
  StringTensor texts;                    // [b, 1]
  std::optional<StringTensor> sources;   // [b, 1]
  std::optional<StringTensor> targets;   // [b, n]
  std::optional<StringTensor> prefixes;  // [b, n]
  std::optional<StringTensor> drafts;    // [b, n]
  std::optional<bool> stream;            // [b, 1]

  size_t targets_of_each() const {
    return targets ? static_cast<size_t>(targets->shape.back()) : 1;
  }
  bool has_draft() const;
  std::string Source(size_t text, const std::string& otherwise) const;
  std::vector<WantedTarget> Targets(size_t text) const;
};

// Throws Error(kInvalidArgument) for an input that is unknown, missing, or of another type or
// shape, and for more targets than the model allows. Shapes are checked before strings are read.
TextTensors ReadTextTensors(const RequestHandle& request, const ModelConfig& config);

}  // namespace ct2triton
