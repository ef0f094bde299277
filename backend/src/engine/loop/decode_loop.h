// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/loop/chooser.h"
#include "engine/loop/decoder_model.h"
#include "engine/loop/decoder_step.h"
#include "engine/loop/greedy.h"
#include "engine/loop/loop_engine.h"
#include "engine/loop/shared_encodings.h"
#include "engine/loop/source_encoder.h"
#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

// The loop on CTranslate2's layers. Loops of the same model share its layers, and nothing else.
// About int8, where answers must not depend on the company either, see SourceEncoder.
class DecodeLoop final : public LoopEngine {
 public:
  // Of a row's forced tokens, at most so many run in one step, so that a long prefix does not hold
  // up the other rows.
  static constexpr size_t kForcedTokensPerStep = 128;

  // `caches`: loops of one model may share them.
  DecodeLoop(std::shared_ptr<const DecoderModel> model, std::shared_ptr<LoopCaches> caches);
  ~DecodeLoop() override;
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows) override;
  void Step(LoopListener* listener) override;
  void Remove(LoopRow row) noexcept override;
  // Takes all rows out.
  void Clear() noexcept;

  size_t running() const override { return rows_.size(); }
  const LoopCounters& counters() const override { return counters_; }

 private:
  struct Running;
  struct Outcome;

  std::unique_ptr<Running> Begin(const CheckedRow& row);
  std::vector<StepRow> NextFeed(std::vector<Running*>* choosing);
  std::vector<Outcome> Choose(const std::vector<Running*>& rows, const float* hidden);
  void ChooseAmong(const std::vector<size_t>& positions, const std::vector<Running*>& rows,
                   const float* hidden, const Linear& projection, std::vector<Outcome>* outcomes);
  Outcome OutcomeOf(const Running& row, const Choice& choice) const;
  void Commit(std::vector<Outcome> outcomes, LoopListener* listener) noexcept;
  static void ReportGrowth(Running* row, LoopListener* listener) noexcept;

  const std::shared_ptr<const DecoderModel> model_;
  const std::shared_ptr<LoopCaches> caches_;
  SourceEncoder encoder_;
  DecoderStep step_;
  Chooser chooser_;
  GreedyRulesCache rules_;
  FloatBuffer top_;
  std::vector<std::unique_ptr<Running>> rows_;  // in the order they came
  LoopRow next_row_ = 0;
  LoopCounters counters_;
};

}  // namespace ct2triton
