// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_answer.h"

#include <cstdint>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "quality/token_text.h"
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

IdsAnswer::IdsAnswer(const ModelConfig& config, const LoadedModel& model,
                     const TargetIds& languages, const Judging& judging,
                     std::vector<std::string> wanted, bool batched)
    : config_(config),
      model_(model),
      languages_(languages),
      judging_(judging),
      wanted_(std::move(wanted)),
      batched_(batched) {}

size_t IdsAnswer::Add(const CheckedRow& row) {
  if (judging_.judge == nullptr) return 0;
  sources_.push_back(
      {row.source, languages_.Of(row.source, row.prefix), languages_.SourceOf(row.source)});
  return sizeof(Source) + row.source.size() * sizeof(Ids::value_type);
}

Verdict IdsAnswer::Judge(size_t row, const RowResult& result) const {
  const Hypothesis& best = result.hypotheses.front();
  if (best.finish == FinishReason::kEmpty) return Verdict::Clear();
  const Source& given = sources_[row];
  std::vector<Span> source_places;
  std::vector<Span> target_places;
  const std::string source = TokenText(model_.SourceTokens(given.ids), &source_places);
  const std::string target = TokenText(model_.TargetTokens(best.ids), &target_places);
  const Alignment alignment(source_places, target_places, best.alignments);
  return judging_.judge->Of(
      {source, target, given.language, judging_.ScoreOf(best), given.source_language, &alignment});
}

std::vector<Verdict> IdsAnswer::AllVerdicts(const std::vector<RowResult>& rows) const {
  std::vector<Verdict> verdicts = known_;
  verdicts.reserve(rows.size());
  for (size_t i = verdicts.size(); i < rows.size(); ++i) verdicts.push_back(Judge(i, rows[i]));
  for (const Verdict& verdict : verdicts) judging_.metrics->Count(verdict);
  return verdicts;
}

void IdsAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  std::vector<Verdict> verdicts;
  if (judging_.judge != nullptr) verdicts = AllVerdicts(rows);
  const AnswerTensors answer(rows, batched_, model_.pad_id());
  for (const std::string& name : wanted_) {
    const TensorSpec& spec = config_.Output(name);
    if (!WriteVerdicts(spec, verdicts, rows.size(), batched_, response)) {
      WriteOutput(spec, answer, response);
    }
  }
}

}  // namespace ct2triton
