// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/beam_trial.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/loop/decode_loop.h"
#include "engine/loop/decoder_model.h"
#include "engine/search.h"
#include "error.h"

namespace ct2triton {
namespace {

constexpr int64_t kSteps = 4;

class Scores : public LoopListener {
 public:
  void RowGrew(LoopRow, int64_t) noexcept override {}
  void RowEnded(LoopRow, RowResult result) noexcept override { answer_ = std::move(result); }
  std::vector<float> Take() const {
    std::vector<float> scores;
    for (const auto& hypothesis : answer_.hypotheses) scores.push_back(hypothesis.score);
    return scores;
  }

 private:
  RowResult answer_;
};

CheckedRow MakeRow(const Weights& weights) {
  DecodingOptions options;
  options.beam_size = 2;
  options.num_hypotheses = 2;
  options.return_scores = true;
  CheckedRow row;
  row.limit_tokens = std::min(kSteps, weights.target_positions().value_or(kSteps));
  options.min_decoding_length = row.limit_tokens;
  options.max_decoding_length = row.limit_tokens;
  row.search = std::make_shared<const Search>(options, weights);
  row.options = {row.search, &row.search->options()};
  const auto positions = weights.source_positions().value_or(16) - weights.added_source_tokens();
  const auto tokens = static_cast<size_t>(std::clamp<int64_t>(positions, 1, 5));
  for (size_t i = 1; i <= tokens; ++i) {
    row.source.push_back(static_cast<int64_t>(weights.source().size() * i / (tokens + 1)));
  }
  if (weights.NeedsPrefix()) {
    row.prefix.push_back(static_cast<int64_t>(weights.target().size() / 2));
  }
  return row;
}

std::vector<std::string> Tokens(const Ids& ids, const ctranslate2::Vocabulary& vocabulary) {
  std::vector<std::string> tokens;
  for (const int64_t id : ids) tokens.push_back(vocabulary.to_token(static_cast<size_t>(id)));
  return tokens;
}

std::vector<float> OfLoop(const DecoderModel& model, const CheckedRow& row) {
  // The model outlives the loop, which ends here.
  const std::shared_ptr<const DecoderModel> borrowed(std::shared_ptr<void>(), &model);
  DecodeLoop loop(borrowed, std::make_shared<LoopCaches>(/*keep_bytes=*/0));
  Scores scores;
  loop.Admit({&row});
  while (loop.running() > 0) loop.Step(&scores);
  return scores.Take();
}

}  // namespace

BeamTrialReport TryBeams(const DecoderModel& model, float tolerance) {
  BeamTrialReport report;
  const Weights& weights = model.weights();
  if (weights.target().size() < 4) return report;  // too few candidates: such rows are refused
  const CheckedRow row = MakeRow(weights);
  const auto expected =
      weights.NewReplica()
          ->translate({Tokens(row.source, weights.source())},
                      {Tokens(row.prefix, weights.target())}, row.search->ForCall(row.limit_tokens))
          .at(0)
          .scores;
  const auto found = OfLoop(model, row);
  report.hypotheses = found.size();
  bool agree = found.size() == expected.size();
  for (size_t i = 0; agree && i < found.size(); ++i) {
    const float error = std::fabs(found[i] - expected[i]) / std::max(1.0F, std::fabs(expected[i]));
    report.largest_error = std::max(report.largest_error, error);
    agree = error <= tolerance;  // and not the other way round: it may be no number
  }
  if (agree) return report;
  std::ostringstream text;
  text << "the decode loop does not agree with CTranslate2 in a trial of this model: two beams "
          "have the scores";
  for (const float score : found) text << ' ' << score;
  text << ", where CTranslate2 has";
  for (const float score : expected) text << ' ' << score;
  text << "; a difference of " << tolerance << " is allowed";
  throw Error(ErrorCode::kUnsupported, text.str());
}

}  // namespace ct2triton
