// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "config/model_config.h"
#include "config/model_files.h"
#include "engine/loaded_model.h"
#include "serving/front.h"
#include "serving/judging.h"

namespace ct2triton {

// Token ids in, token ids out: docs/protocol.md.
class IdsFront : public Front {
 public:
  // All outlive it, its readers and their encoders.
  IdsFront(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
           const TargetIds& languages)
      : config_(config), model_(model), judging_(judging), languages_(languages) {}

  std::unique_ptr<RequestReader> Start(const RequestHandle& request) const override;

 private:
  const ModelConfig& config_;
  const LoadedModel& model_;
  const Judging judging_;
  const TargetIds& languages_;
};

}  // namespace ct2triton
