// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_verdicts.h"

#include "quality/token_text.h"

namespace ct2triton {

size_t IdsVerdicts::Add(const CheckedRow& row) {
  sources_.push_back({TokenText(model_.SourceTokens(row.source)),
                      languages_.Of(row.source, row.prefix), languages_.SourceOf(row.source)});
  return sizeof(Source) + sources_.back().text.size();
}

Verdict IdsVerdicts::Of(const Source& source, const Hypothesis& best) const {
  if (best.finish == FinishReason::kEmpty) return Verdict::Clear();
  const std::string target = TokenText(model_.TargetTokens(best.ids));
  Judged judged{source.text, target, source.language, judging_.ScoreOf(best)};
  judged.source_language = source.source_language;
  return judging_.judge->Of(judged);
}

std::vector<Verdict> IdsVerdicts::Of(const std::vector<RowResult>& rows) const {
  std::vector<Verdict> verdicts;
  verdicts.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    verdicts.push_back(Of(sources_[i], rows[i].hypotheses.front()));
    judging_.metrics->Count(verdicts.back());
  }
  return verdicts;
}

}  // namespace ct2triton
