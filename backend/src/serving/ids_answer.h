// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/ids_verdicts.h"

namespace ct2triton {

// The wanted outputs of one request of ids, each in the type that the model's config declares.
class IdsAnswer : public AnswerEncoder {
 public:
  // `batched`: shapes have a leading number of rows. `verdicts` null: nobody asks. `config`
  // outlives it.
  IdsAnswer(const ModelConfig& config, std::vector<std::string> wanted, bool batched,
            int64_t pad_id, std::shared_ptr<const IdsVerdicts> verdicts);

  void Encode(const std::vector<RowResult>& rows, Response* response) const override;

 private:
  const ModelConfig& config_;
  const std::vector<std::string> wanted_;
  const bool batched_;
  const int64_t pad_id_;
  const std::shared_ptr<const IdsVerdicts> verdicts_;
};

}  // namespace ct2triton
