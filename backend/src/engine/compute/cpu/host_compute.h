// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/compute/cpu/chooser.h"
#include "engine/compute/cpu/decoder_step.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_encoder.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/loop_compute.h"

namespace ct2triton {

// Runs loops on a CPU.
class HostCompute final : public LoopCompute {
 public:
  HostCompute(const HostModel& model, LoopCaches* caches)
      : model_(model),
        encoder_(model),
        step_(model.decoder(), model.shape()),
        chooser_(model, &caches->logits_bytes),
        caches_(caches) {}

  SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows, LoopCaches* caches,
                                  SourceEncoder::Counts* counts) override;
  std::unique_ptr<RowCache> NewCache(const CheckedRow& row, size_t slots) override;
  std::vector<Found> Step(const std::vector<StepSequence>& rows,
                          const std::vector<OutputRules>& rules) override;
  std::vector<std::vector<float>> Logits(const std::vector<StepSequence>& rows,
                                         const std::vector<const VocabularyMap*>& maps) override;
  void Rest() noexcept override { chooser_.Rest(); }

 private:
  const HostModel& model_;
  HostEncoder encoder_;
  DecoderStep step_;
  Chooser chooser_;
  LoopCaches* const caches_;
};

}  // namespace ct2triton
