// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compute/cpu/chooser.h"
#include "engine/compute/cpu/decoder_step.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_encoder.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/loop_compute.h"

namespace ct2triton {

// On a CPU.
class HostCompute final : public LoopCompute {
 public:
  HostCompute(const HostModel& model, LoopCaches* caches)
      : model_(model),
        encoder_(model),
        step_(model.decoder(), model.shape()),
        chooser_(model.kernels(), &caches->logits_bytes) {}

  SourceEncoder::Encodings Encode(const std::vector<const CheckedRow*>& rows, LoopCaches* caches,
                                  SourceEncoder::Counts* counts) override;
  void Run(const std::vector<StepRow>& rows) override;
  std::vector<Found> Choose(const std::vector<size_t>& outputs, const std::vector<Seeker>& seekers,
                            const VocabularyMap* map) override;
  std::vector<float> Logits(const VocabularyMap* map) override;
  void Rest() noexcept override { chooser_.Rest(); }

 private:
  const float* Gather(const std::vector<size_t>& outputs);

  const HostModel& model_;
  HostEncoder encoder_;
  DecoderStep step_;
  Chooser chooser_;
  FloatBuffer gathered_;
  const float* hidden_ = nullptr;  // [outputs, width], of the last Run
  size_t outputs_ = 0;
};

}  // namespace ct2triton
