// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/ids_verdicts.h"
#include "serving/model_metrics.h"

namespace ct2triton {

// The requested outputs of one request of IDs, each in the type declared in the model's config.
class IdsAnswer : public AnswerEncoder {
 public:
  // `batched`: shapes begin with the number of rows. `verdicts` null: not requested. `config` and
  // `metrics`, which counts the verdicts, outlive it.
  IdsAnswer(const ModelConfig& config, std::vector<std::string> wanted, bool batched,
            int64_t pad_id, std::shared_ptr<const IdsVerdicts> verdicts, ModelMetrics* metrics);

  void Encode(const std::vector<RowResult>& rows, Response* response) const override;
  Verdict Judge(size_t row, const RowResult& result) const override {
    return verdicts_->Of(row, result);
  }
  void Know(std::vector<Verdict> verdicts) override { known_ = std::move(verdicts); }

 private:
  std::vector<Verdict> AllVerdicts(const std::vector<RowResult>& rows) const;

  const ModelConfig& config_;
  const std::vector<std::string> wanted_;
  const bool batched_;
  const int64_t pad_id_;
  const std::shared_ptr<const IdsVerdicts> verdicts_;
  ModelMetrics* const metrics_;
  std::vector<Verdict> known_;  // one for each row, or empty
};

}  // namespace ct2triton
