// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/device_model.h"
#include "engine/compute/loop_compute.h"
#include "engine/loop/loop_engine.h"
#include "engine/loop/running_row.h"
#include "engine/loop/shared_encodings.h"
#include "engine/loop/source_encoder.h"
#include "engine/loop/step_budget.h"
#include "engine/search/search_rules.h"
#include "rows/checked_row.h"

namespace ct2triton {

// The decode loop on a device. Loops of the same model share only its weights.
class DecodeLoop final : public LoopEngine {
 public:
  // `caches`: loops of one model may share them.
  DecodeLoop(std::shared_ptr<const DeviceModel> model, std::shared_ptr<LoopCaches> caches);
  ~DecodeLoop() override;
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows) override;
  void Step(LoopListener* listener) override;
  void Remove(LoopRow row) noexcept override;
  size_t running() const override { return rows_.size(); }
  const LoopCounters& counters() const override { return counters_; }

 private:
  // A row that chooses at this step, and its number of outputs.
  struct Choosing {
    RunningRow* row;
    size_t fed;  // its index in the step
    size_t count;
  };

  std::vector<bool> WhoTakesPart();
  std::vector<StepSequence> NextFeed(std::vector<Choosing>* choosing);
  void Choose(const std::vector<Choosing>& rows, const std::vector<Found>& found,
              std::vector<StepSequence>* feed);
  void Accept(LoopListener* listener) noexcept;

  const std::shared_ptr<const DeviceModel> model_;
  const std::shared_ptr<LoopCaches> caches_;
  const std::unique_ptr<LoopCompute> compute_;
  SourceEncoder encoder_;
  SearchRulesCache rules_;
  StepBudget budget_;
  std::vector<std::unique_ptr<RunningRow>> rows_;  // in order of arrival
  LoopRow next_row_ = 0;
  LoopCounters counters_;
};

}  // namespace ct2triton
