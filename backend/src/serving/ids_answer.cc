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
                     int64_t pad_id)
    : config_(config), wanted_(std::move(wanted)), batched_(batched), pad_id_(pad_id) {}

void IdsAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  const AnswerTensors answer(rows, batched_, pad_id_);
  for (const std::string& name : wanted_) WriteOutput(config_.Output(name), answer, response);
}

}  // namespace ct2triton
