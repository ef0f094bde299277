// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/model_config.h"
#include "engine/loaded_model.h"
#include "serving/front.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// Text in, text out, several languages in one request: docs/text.md.
class TextFront : public Front {
 public:
  // All outlive it and its encoders.
  TextFront(const ModelConfig& config, const LoadedModel& model, const Tokenizer& tokenizer)
      : config_(config), model_(model), tokenizer_(tokenizer) {}

  DecodedRequest Decode(const RequestHandle& request) const override;

 private:
  void AddStream(const RequestHandle& request, std::vector<TextPlan> plans,
                 DecodedRequest* decoded) const;

  const ModelConfig& config_;
  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
};

}  // namespace ct2triton
