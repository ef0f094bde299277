// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/model_config.h"
#include "config/model_files.h"
#include "engine/loaded_model.h"
#include "serving/front.h"
#include "serving/judging.h"

namespace ct2triton {

// The requested outputs of one request of IDs, each in the type declared in the model's config.
class IdsAnswer : public AnswerEncoder {
 public:
  // The model, its configuration and its languages outlive it. `batched`: shapes begin with the
  // number of rows.
  IdsAnswer(const ModelConfig& config, const LoadedModel& model, const TargetIds& languages,
            const Judging& judging, std::vector<std::string> wanted, bool batched);

  // Remembers the next row, if the request is judged. Returns the bytes that this takes.
  size_t Add(const CheckedRow& row);
  void Encode(const std::vector<RowResult>& rows, Response* response) const override;
  // By the text of the row's tokens.
  Verdict Judge(size_t row, const RowResult& result) const override;
  void Know(std::vector<Verdict> verdicts) override { known_ = std::move(verdicts); }

 private:
  struct Source {
    Ids ids;
    std::string language;  // of the target
    std::string source_language;
  };

  std::vector<Verdict> AllVerdicts(const std::vector<RowResult>& rows) const;

  const ModelConfig& config_;
  const LoadedModel& model_;
  const TargetIds& languages_;
  const Judging judging_;
  const std::vector<std::string> wanted_;
  const bool batched_;
  std::vector<Source> sources_;  // of the rows, if they are judged
  std::vector<Verdict> known_;   // one for each row, or empty
};

}  // namespace ct2triton
