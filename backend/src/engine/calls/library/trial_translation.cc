// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/trial_translation.h"

#include <array>

#include "error.h"

namespace ct2triton {
namespace {

// Greedy rows are ended by the step callback and answered with the tokens that it reported. These
// must equal CTranslate2's own result. The callback ends the first of two rows at its second step;
// the other row runs until the callback reports its last step. Both are forced to begin with the
// token that is numbered last, because its position shows the number of tokens before it. `map`:
// the candidates; null: the whole vocabulary.
bool ReportsAnswers(const Ct2Model& model, const VocabularyMap* map, int64_t end_id) {
  struct Reported {
    Ids ids;
    bool ended = false;
  };
  std::array<Reported, 2> reported;
  bool agrees = true;
  const auto id_of = [&](const ctranslate2::GenerationStepResult& step) -> int64_t {
    if (map == nullptr) return static_cast<int64_t>(model.target().to_id(step.token));
    return step.token_id < map->numbered().size() ? map->Id(step.token_id) : -1;
  };
  ctranslate2::TranslationOptions options;
  options.beam_size = 1;
  options.max_decoding_length = 4;
  options.return_end_token = true;
  options.use_vmap = map != nullptr;
  options.callback = [&](const ctranslate2::GenerationStepResult& step) {
    const size_t row = step.batch_id;
    agrees = agrees && row < reported.size() && !reported[row].ended &&
             step.step == reported[row].ids.size() &&
             (map != nullptr || step.token == model.target().to_token(step.token_id));
    if (!agrees) return true;
    reported[row].ids.push_back(id_of(step));
    const bool end = row == 0 && step.step == 1;
    reported[row].ended = end || step.is_last;
    return end;
  };
  const std::string& last = model.source().to_token(model.source().size() - 1);
  const auto numbered_last =
      map != nullptr ? static_cast<size_t>(map->numbered().back()) : model.target().size() - 1;
  const std::vector<std::string> prefix = {model.target().to_token(static_cast<size_t>(end_id)),
                                           model.target().to_token(numbered_last)};
  const auto results =
      model.NewReplica()->translate({{last, last}, {last, last, last}}, {prefix, prefix}, options);
  for (size_t row = 0; agrees && row < reported.size(); ++row) {
    Ids answered;
    for (const auto& token : results.at(row).hypotheses.at(0)) {
      answered.push_back(static_cast<int64_t>(model.target().to_id(token)));
    }
    agrees = reported[row].ended && reported[row].ids == answered;
  }
  return agrees;
}

}  // namespace

void TryTranslation(const Ct2Model& model, const VocabularyMap* map, int64_t end_id) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kUnsupported, "a trial translation with " + model.directory() + " on " +
                                             model.device().Name() + " failed: " + what);
  };
  if (model.target().size() < 4) refuse("a target vocabulary of fewer than 4 tokens");
  const std::string& first = model.source().to_token(0);
  const std::string& last = model.source().to_token(model.source().size() - 1);
  const std::vector<std::vector<std::string>> source = {{first, last, last}, {last, last}};
  const std::vector<std::vector<std::string>> prefix(
      2, {model.target().to_token(model.target().size() - 1)});
  ctranslate2::TranslationOptions options;
  options.num_hypotheses = 2;
  options.return_scores = true;
  options.max_decoding_length = 3;
  options.min_decoding_length = 0;
  try {
    const auto replica = model.NewReplica();
    for (const auto& result : replica->translate(source, prefix, options)) {
      if (result.hypotheses.size() != 2 || result.scores.size() != 2) refuse("not two hypotheses");
      for (const auto& token : result.hypotheses[0]) {
        if (!model.target().contains(token)) refuse("a token outside the vocabulary came back");
      }
    }
    if (!ReportsAnswers(model, nullptr, end_id)) {
      refuse("the steps of a greedy search do not report its answers");
    }
    if (map != nullptr && map->fixed() && !ReportsAnswers(model, map, end_id)) {
      refuse("the candidates of vmap.txt are numbered in an unknown way");
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse(error.what());
  }
}

}  // namespace ct2triton
