// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/model_config.h"
#include "config/model_files.h"
#include "engine/loaded_model.h"
#include "serving/front.h"
#include "serving/judging.h"
#include "text/tokenizer.h"

namespace ct2triton {

// What fronts refer to outlives them, their readers and their encoders.

// Token ids in, token ids out: docs/protocol.md.
Front IdsFront(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
               const TargetIds& languages);

// Text in, text out, several languages in one request: docs/text.md.
Front TextFront(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
                const Tokenizer& tokenizer);

}  // namespace ct2triton
