// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_answer.h"

#include <cstdint>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "rows/row_tensors.h"
#include "serving/output_tensor.h"

namespace ct2triton {
namespace {

// One value of each row's verdict, [b, 1]; [b, 0] if verdicts were not requested.
template <class Value, class Get>
Matrix<Value> OfVerdicts(const std::vector<Verdict>& verdicts, size_t rows, bool batched,
                         const Get& get) {
  Matrix<Value> matrix;
  if (batched) matrix.shape.push_back(static_cast<int64_t>(rows));
  matrix.shape.push_back(verdicts.empty() ? 0 : 1);
  for (const Verdict& verdict : verdicts) matrix.values.push_back(get(verdict));
  return matrix;
}

bool WriteVerdicts(const TensorSpec& spec, const std::vector<Verdict>& verdicts, size_t rows,
                   bool batched, Response* response) {
  if (spec.name == tensor::kQuality) {
    const auto quality = [](const Verdict& verdict) {
      return static_cast<float>(verdict.Quality());
    };
    WriteTensor(spec, OfVerdicts<float>(verdicts, rows, batched, quality), response);
  } else if (spec.name == tensor::kQualityFlags) {
    const auto flags = [](const Verdict& verdict) { return verdict.Json(); };
    WriteTensor(spec, OfVerdicts<std::string>(verdicts, rows, batched, flags), response);
  } else {
    return false;
  }
  return true;
}

void WriteOutput(const TensorSpec& spec, const AnswerTensors& answer, Response* response) {
  if (spec.name == tensor::kOutputIds) {
    WriteTensor(spec, answer.OutputIds(), response);
  } else if (spec.name == tensor::kOutputLengths) {
    WriteTensor(spec, answer.OutputLengths(), response);
  } else if (spec.name == tensor::kHypotheses) {
    WriteTensor(spec, answer.Hypotheses(), response);
  } else if (spec.name == tensor::kHypothesisLengths) {
    WriteTensor(spec, answer.HypothesisLengths(), response);
  } else if (spec.name == tensor::kScores) {
    WriteTensor(spec, answer.Scores(), response);
  } else if (spec.name == tensor::kFinishReason) {
    WriteTensor(spec, answer.FinishReasons(), response);
  } else if (spec.name == tensor::kDraftTokensKept) {
    WriteTensor(spec, answer.DraftTokensKept(), response);
  } else if (spec.name == tensor::kAlignments) {
    WriteTensor(spec, answer.Alignments(), response);
  } else {
    throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
  }
}

}  // namespace

IdsAnswer::IdsAnswer(const ModelConfig& config, std::vector<std::string> wanted, bool batched,
                     int64_t pad_id, std::shared_ptr<const IdsVerdicts> verdicts,
                     ModelMetrics* metrics)
    : config_(config),
      wanted_(std::move(wanted)),
      batched_(batched),
      pad_id_(pad_id),
      verdicts_(std::move(verdicts)),
      metrics_(metrics) {}

std::vector<Verdict> IdsAnswer::AllVerdicts(const std::vector<RowResult>& rows) const {
  std::vector<Verdict> verdicts = known_;
  verdicts.reserve(rows.size());
  for (size_t i = verdicts.size(); i < rows.size(); ++i) verdicts.push_back(Judge(i, rows[i]));
  for (const Verdict& verdict : verdicts) metrics_->Count(verdict);
  return verdicts;
}

void IdsAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  std::vector<Verdict> verdicts;
  if (verdicts_) verdicts = AllVerdicts(rows);
  const AnswerTensors answer(rows, batched_, pad_id_);
  for (const std::string& name : wanted_) {
    const TensorSpec& spec = config_.Output(name);
    if (!WriteVerdicts(spec, verdicts, rows.size(), batched_, response)) {
      WriteOutput(spec, answer, response);
    }
  }
}

}  // namespace ct2triton
