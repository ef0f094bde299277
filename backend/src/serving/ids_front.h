// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "config/model_config.h"
#include "engine/loaded_model.h"
#include "serving/front.h"

namespace ct2triton {

// Token ids in, token ids out: docs/protocol.md.
class IdsFront : public Front {
 public:
  // Both outlive it and its readers.
  IdsFront(const ModelConfig& config, const LoadedModel& model) : config_(config), model_(model) {}

  std::unique_ptr<RequestReader> Start(const RequestHandle& request) const override;

 private:
  const ModelConfig& config_;
  const LoadedModel& model_;
};

}  // namespace ct2triton
