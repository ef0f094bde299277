// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/compute/cache_pool.h"
#include "engine/compute/gpu/gpu_model.h"
#include "engine/compute/gpu/gpu_sequence.h"
#include "engine/compute/loop_compute.h"

namespace ct2triton::gpu {

// An encoded source on a GPU.
class GpuSource final : public EncodedSource {
 public:
  GpuSource(size_t tokens, CacheBlock block, std::shared_ptr<GpuEngine> engine, int name)
      : EncodedSource(tokens), block_(std::move(block)), engine_(std::move(engine)), name_(name) {}
  ~GpuSource() override;

  int name() const { return name_; }

 private:
  const CacheBlock block_;  // accounts for its memory
  const std::shared_ptr<GpuEngine> engine_;
  const int name_;
};

// Keys and values of a row on a GPU, and its sequences there: one for each beam, and for each token
// of a draft that has rules of its own.
class GpuRowCache final : public RowCache {
 public:
  // limit: of tokens, for each sequence.
  GpuRowCache(std::shared_ptr<GpuEngine> engine, CacheBlock block, size_t limit);
  ~GpuRowCache() override;

  size_t limit() const { return limit_; }
  // The engine's mutex is held:
  void BeginStep() { used_ = 0; }
  int NextSequence(const GpuSource& source, size_t prompt);

  // The row's result in the step that runs ahead.
  struct Coming {
    uint64_t step;    // its number
    size_t output;    // of the step
    size_t position;  // of these tokens, which the step runs; none: not known to the host yet
    std::vector<int32_t> tokens;
    std::optional<ChosenToken> chosen;  // once it is read
  };
  std::optional<Coming> coming;

 private:
  void Forget() noexcept;

  const CacheBlock block_;  // accounts for its memory
  const std::shared_ptr<GpuEngine> engine_;
  const std::shared_ptr<Pages> pages_;
  const size_t limit_;
  std::vector<int> sequences_;
  size_t used_ = 0;  // sequences used in this step
};

// Runs loops on a GPU. If the kernels lack a rule, the choice is made on the host from copied
// logits.
//
// If each row of a step has one sequence whose next token the device chooses itself, the next step
// is launched before this step's tokens are read: its rows continue with the chosen tokens, and end
// themselves. So a joining row gets its choices one step later. If the next step needs other input
// for a row than was run ahead, the row is run again.
class GpuCompute final : public LoopCompute {
 public:
  GpuCompute(const GpuModel& model, RowMemory* memory) : model_(model), pool_(&memory->pool) {}
  ~GpuCompute() override { Rest(); }

  // Of all lengths together, without padding.
  std::vector<std::unique_ptr<EncodedSource>> Encode(
      const std::vector<std::vector<size_t>>& sources) override;
  std::unique_ptr<RowCache> NewCache(size_t slots, size_t limit) override;
  std::vector<Found> Step(const std::vector<StepSequence>& rows,
                          const std::vector<OutputRules>& rules) override;
  std::vector<std::vector<float>> Logits(const std::vector<StepSequence>& rows,
                                         const std::vector<const VocabularyMap*>& maps) override;
  GpuWork TakeWork() noexcept override { return std::exchange(work_, {}); }
  void Rest() noexcept override;

 private:
  // Some tokens of a row whose choices have the same rules.
  struct Piece {
    const StepSequence* row;
    size_t begin, end;  // of its tokens
    size_t chosen;      // number of last tokens with a choice
    size_t rule;        // index of the first choice's rules
  };

  // A step's result for an output, before the outputs of a search are joined.
  struct Given {
    Found found;
    OfferedOutput offered = {};
  };

  // A row of a step that runs ahead, and its input from the step before.
  struct Ahead {
    GpuRowCache* cache;
    std::optional<GpuRowCache::Coming> ready;
    std::optional<GivenTokens> given;  // none: the row ends
  };

  bool RunsAhead(const std::vector<OutputRules>& rules) const;
  std::vector<Found> DecodeAhead(const std::vector<OutputRules>& rules);
  std::vector<ChosenToken> ReadAhead(uint64_t number, std::unique_ptr<GpuStep> step);
  void LaunchAhead(const std::vector<Ahead>& rows);
  Ahead AheadOf(const StepSequence& row, const OutputRules& rules);
  std::vector<Given> Decode(const std::vector<OutputRules>& rules);
  std::vector<size_t> Join(const std::vector<OutputRules>& rules, std::vector<Given>* given) const;
  static void AddPieces(const StepSequence& row, size_t first,
                        const std::vector<OutputRules>& rules, std::vector<Piece>* pieces);
  bool Fits(const std::vector<Piece>& pass, const Piece& piece,
            const std::vector<OutputRules>& rules) const;
  void RunPass(const std::vector<Piece>& pass, const std::vector<OutputRules>& rules,
               std::vector<Given>* found);
  GivenTokens GivenBy(const Piece& piece, const OutputRules& rules);
  TokenRules RulesFor(const OutputRules& rules, const StepSequence& row, size_t length,
                      size_t limit) const;
  bool HostChooses(const OutputRules& rules, const StepSequence& row) const;
  Given GivenTo(const StepSequence& row, const OutputRules& rules, const ChosenToken& chosen,
                size_t output);

  const GpuModel& model_;
  CachePool* const pool_;
  GpuWork work_;
  std::unique_ptr<GpuStep> ahead_;  // null: no step runs ahead
  uint64_t ahead_number_ = 0;
  std::vector<StepSequence> rows_;  // of the last step
  std::vector<std::vector<float>> numbers_;
  std::vector<std::vector<products::RankedOutput>> tops_;
};

}  // namespace ct2triton::gpu
