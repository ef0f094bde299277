// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/beam_trial.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/compute/device_model.h"
#include "engine/loop/decode_loop.h"

namespace ct2triton {
namespace {

class Scores : public LoopListener {
 public:
  void RowEnded(LoopRow, RowResult result) noexcept override { answer_ = std::move(result); }
  std::vector<float> Take() const {
    std::vector<float> scores;
    for (const auto& hypothesis : answer_.hypotheses) scores.push_back(hypothesis.score);
    return scores;
  }

 private:
  RowResult answer_;
};

std::vector<float> OfLoop(const DeviceModel& model, const CheckedRow& row) {
  // The model outlives the loop, which is destroyed here.
  const std::shared_ptr<const DeviceModel> borrowed(std::shared_ptr<void>(), &model);
  DecodeLoop loop(borrowed, std::make_shared<LoopCaches>(/*keep_bytes=*/0));
  Scores scores;
  loop.Admit({&row});
  while (loop.running() > 0) loop.Step(&scores);
  return scores.Take();
}

float ErrorOf(float found, float expected) {
  return std::fabs(found - expected) / std::max(1.0F, std::fabs(expected));
}

}  // namespace

BeamTrialReport TryBeams(const DeviceModel& model, const BeamTrialRow& truth,
                         const BeamTrialRow* exact, float tolerance) {
  BeamTrialReport report;
  const std::vector<float>& expected = exact == nullptr ? truth.scores : exact->scores;
  const auto found = OfLoop(model, truth.row);
  report.hypotheses = found.size();
  bool agree = found.size() == expected.size() && found.size() == truth.scores.size();
  for (size_t i = 0; agree && i < found.size(); ++i) {
    tolerance = std::max(tolerance, ErrorOf(truth.scores[i], expected[i]));
  }
  for (size_t i = 0; agree && i < found.size(); ++i) {
    const float error = ErrorOf(found[i], expected[i]);
    report.largest_error = std::max(report.largest_error, error);
    agree = error <= tolerance;  // not `>`, because the error may be NaN
  }
  if (agree) return report;
  std::ostringstream text;
  text << "two beams have the scores";
  for (const float score : found) text << ' ' << score;
  text << ", where CTranslate2" << (exact == nullptr ? "" : " with float32 weights") << " has";
  for (const float score : expected) text << ' ' << score;
  text << "; a difference of " << tolerance << " is allowed";
  RefuseTrial(text.str());
}

}  // namespace ct2triton
