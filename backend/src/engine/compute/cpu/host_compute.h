// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/compute/cpu/chooser.h"
#include "engine/compute/cpu/decoder_step.h"
#include "engine/compute/cpu/encoder_pass.h"
#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/loop_compute.h"

namespace ct2triton {

// Runs loops on a CPU.
class HostCompute final : public LoopCompute {
 public:
  HostCompute(const HostModel& model, RowMemory* memory)
      : model_(model),
        pool_(&memory->pool),
        encoder_(model.encoder()),
        step_(model.decoder(), model.shape()),
        chooser_(model, &memory->logits_bytes) {}

  // Without padding: with int8 weights, it would change the last bits of an encoding and so, at
  // times, a token of the answer.
  std::vector<std::unique_ptr<EncodedSource>> Encode(
      const std::vector<std::vector<size_t>>& sources) override;
  std::unique_ptr<RowCache> NewCache(size_t slots, size_t limit) override;
  std::vector<Found> Step(const std::vector<StepSequence>& rows,
                          const std::vector<OutputRules>& rules) override;
  std::vector<std::vector<float>> Logits(const std::vector<StepSequence>& rows,
                                         const std::vector<const VocabularyMap*>& maps) override;
  void Rest() noexcept override { chooser_.Rest(); }

 private:
  void Project(const float* memory, const std::vector<const HostSource*>& sources);

  const HostModel& model_;
  CachePool* const pool_;
  EncoderPass encoder_;
  FloatBuffer projected_;
  DecoderStep step_;
  Chooser chooser_;
};

}  // namespace ct2triton
