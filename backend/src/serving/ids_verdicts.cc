// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_verdicts.h"

#include "quality/token_text.h"

namespace ct2triton {

size_t IdsVerdicts::Add(const CheckedRow& row) {
  sources_.push_back(
      {row.source, languages_.Of(row.source, row.prefix), languages_.SourceOf(row.source)});
  return sizeof(Source) + row.source.size() * sizeof(Ids::value_type);
}

Verdict IdsVerdicts::Of(size_t row, const RowResult& result) const {
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

}  // namespace ct2triton
