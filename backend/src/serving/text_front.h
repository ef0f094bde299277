// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "config/model_config.h"
#include "engine/loaded_model.h"
#include "serving/front.h"
#include "serving/judging.h"
#include "text/tokenizer.h"

namespace ct2triton {

// Text in, text out, several languages in one request: docs/text.md.
class TextFront : public Front {
 public:
  // All outlive it, its readers and their encoders.
  TextFront(const ModelConfig& config, const LoadedModel& model, const Tokenizer& tokenizer,
            const Judging& judging)
      : config_(config), model_(model), tokenizer_(tokenizer), judging_(judging) {}

  std::unique_ptr<RequestReader> Start(const RequestHandle& request) const override;

 private:
  const ModelConfig& config_;
  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
  const Judging judging_;
};

}  // namespace ct2triton
