// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_verdicts.h"

#include "quality/token_text.h"

namespace ct2triton {

size_t IdsVerdicts::Add(const CheckedRow& row) {
  sources_.push_back({TokenText(model_.SourceTokens(row.source)),
                      languages_.Of(row.source, row.prefix), languages_.SourceOf(row.source)});
  return sizeof(Source) + sources_.back().text.size();
}

Verdict IdsVerdicts::Of(size_t row, const RowResult& result) const {
  const Hypothesis& best = result.hypotheses.front();
  if (best.finish == FinishReason::kEmpty) return Verdict::Clear();
  const Source& source = sources_[row];
  const std::string target = TokenText(model_.TargetTokens(best.ids));
  Judged judged{source.text, target, source.language, judging_.ScoreOf(best)};
  judged.source_language = source.source_language;
  return judging_.judge->Of(judged);
}

}  // namespace ct2triton
