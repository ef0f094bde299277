// SPDX-License-Identifier: Apache-2.0
//
// The decode loop as the queue sees it, without CTranslate2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/engine_options.h"
#include "engine/loop/step_time.h"
#include "error.h"
#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

class DeviceModel;
struct LoopCaches;
class SearchOptions;
class VocabularyMap;
class Weights;

// Names one row of one loop, from Admit until it has ended or was removed; never used again.
using LoopRow = uint64_t;

// Receives what a step did. It must not call the loop.
class LoopListener {
 public:
  virtual ~LoopListener() = default;
  // The answer of this row has grown by an id that will not change. Forced ids come first.
  virtual void RowGrew(LoopRow row, int64_t id) noexcept = 0;
  // The row has left the loop.
  virtual void RowEnded(LoopRow row, RowResult result) noexcept = 0;
};

// What a loop has done so far.
struct LoopCounters {
  uint64_t encodes = 0;  // calls of the encoder
  uint64_t encoded_rows = 0;
  uint64_t encoded_tokens = 0;    // source tokens
  uint64_t encode_ns = 0;         // keys and values of the sources included
  uint64_t shared_encodings = 0;  // rows that took the encoding of another row
  uint64_t steps = 0;
  uint64_t step_rows = 0;    // sum over the steps of the rows that took part; each beam counts
  uint64_t step_tokens = 0;  // tokens fed, forced ones included
  uint64_t step_ns = 0;
  uint64_t draft_tokens = 0;       // of step_tokens, those of drafts
  uint64_t draft_tokens_kept = 0;  // that took no step of their own
  uint64_t written_rows = 0;      // beams that chose from written logits, not from the best outputs
  uint64_t joined_rows = 0;       // that were admitted while others ran
  uint64_t gpu_passes = 0;        // of a GPU's decoder; a step of many tokens takes several
  uint64_t gpu_passes_ahead = 0;  // launched before the tokens of the pass before were read
  uint64_t gpu_host_choices = 0;  // of copied logits, since the kernels do not have the rules
};
inline constexpr std::pair<const char*, uint64_t LoopCounters::*> kLoopCounters[] = {
    {"encodes", &LoopCounters::encodes},
    {"encoded_rows", &LoopCounters::encoded_rows},
    {"encoded_tokens", &LoopCounters::encoded_tokens},
    {"encode_ns", &LoopCounters::encode_ns},
    {"shared_encodings", &LoopCounters::shared_encodings},
    {"steps", &LoopCounters::steps},
    {"step_rows", &LoopCounters::step_rows},
    {"step_tokens", &LoopCounters::step_tokens},
    {"step_ns", &LoopCounters::step_ns},
    {"draft_tokens", &LoopCounters::draft_tokens},
    {"draft_tokens_kept", &LoopCounters::draft_tokens_kept},
    {"written_rows", &LoopCounters::written_rows},
    {"joined_rows", &LoopCounters::joined_rows},
    {"gpu_passes", &LoopCounters::gpu_passes},
    {"gpu_passes_ahead", &LoopCounters::gpu_passes_ahead},
    {"gpu_host_choices", &LoopCounters::gpu_host_choices},
};
static_assert(sizeof(kLoopCounters) / sizeof(*kLoopCounters) * sizeof(uint64_t) ==
              sizeof(LoopCounters));

inline void operator+=(LoopCounters& sum, const LoopCounters& more) {
  for (const auto& [name, counter] : kLoopCounters) sum.*counter += more.*counter;
}
inline void operator-=(LoopCounters& sum, const LoopCounters& less) {
  for (const auto& [name, counter] : kLoopCounters) sum.*counter -= less.*counter;
}

// The running rows of one model. Rows of any age and any options decode together: they join
// between two steps, each step gives every row a token, or several of its draft, and each row
// leaves alone.
//
// One thread at a time uses a loop. A row's answer does not depend on the other rows.
class LoopEngine {
 public:
  virtual ~LoopEngine() = default;

  // Encodes the sources and admits the rows: they take part from the next step on. The rows were
  // checked by a LoadedModel that lets the loop run them. Each CheckedRow must live until its row
  // has ended or was removed.
  // Returns the rows' names, in order. Throws Error(kInternal) or std::bad_alloc if CTranslate2
  // fails: no row was admitted then.
  virtual std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows) = 0;

  // Gives running rows their next tokens: every light one, and heavy ones alternately
  // (step_budget.h). A row with many forced tokens may need some steps before. Throws as Admit
  // does: every row is then as it was before the step, and nothing was reported. The caller may
  // step again, or remove rows and admit them again.
  virtual void Step(LoopListener* listener) = 0;

  // Removes a row that is not wanted any more. Unknown names, of ended rows, are ignored.
  virtual void Remove(LoopRow row) noexcept = 0;

  virtual size_t running() const = 0;
  virtual const LoopCounters& counters() const = 0;
};

// Whether a trial holds the loop against calls of CTranslate2: never, unless a proof is known
// (proof.h), or in any case.
enum class Proving { kNever, kOnce, kAlways };

// What all loops on one set of weights share: the decoder's layers and their memory.
class LoopModel {
 public:
  // The one of these weights, made at the first call, and proved at the first that wants it. Those
  // of other weights may be made meanwhile. Throws Error(kUnsupported), with the reason, where the
  // loop cannot run the model.
  static std::shared_ptr<LoopModel> Get(const std::shared_ptr<const Weights>& weights,
                                        Proving proving);

  LoopModel(const std::shared_ptr<const Weights>& weights, Proving proving);

  virtual ~LoopModel() = default;
  virtual std::unique_ptr<LoopEngine> NewLoop() const;
  // Encodes the source of a row, for loops that admit the row while the encoding is held. Throws as
  // LoopEngine::Admit does. Threads may call it at once.
  // Only where EncodesBeside.
  virtual std::shared_ptr<const void> Encode(const CheckedRow& row, LoopCounters* counters) const;
  // The heads that the operator chooses for alignments; null where that is left to the model.
  // Throws Error(kInvalidArgument) where the decoder has no such layer or head.
  std::shared_ptr<const AlignmentHeads> ChosenAlignment(const EngineOptions& engine) const;
  // The same refusal for a model without loops; none where its decoder is not known.
  static void RequireAlignment(const EngineOptions& engine, const Weights& weights);
  // Why loops cannot run rows of this search, or this row, for a message; none: they can. A call of
  // CTranslate2 can run every row.
  std::optional<std::string> WhyNot(const SearchOptions& search) const;
  std::optional<std::string> WhyNot(const CheckedRow& row) const;
  // Memory for keys and values that the row holds while it runs: of its own tokens, and of its
  // source, which rows of the same source share.
  size_t CacheBytes(const CheckedRow& row) const;
  size_t SourceCacheBytes(const CheckedRow& row) const;
  // Whether the row's source is encoded, or is being so.
  bool HasEncoding(const CheckedRow& row) const;
  size_t cache_bytes_in_use() const;
  bool EncodesBeside() const { return on_host_; }
  // What steps of these weights take here; empty on a GPU, and where it could not be measured.
  virtual const StepTimes& step_times() const { return step_times_; }
  std::optional<Error> loss() const;  // of the model's device: see DeviceModel
  size_t gpu_cache_bytes() const;     // of pages on a GPU that rows and sources hold
  size_t logits_bytes() const;        // of the memory that all loops hold for logits
  size_t packed_bytes() const;        // of copies of the weights, made for loops
  // Of them, those of the candidates of one vocabulary map of the weights.
  size_t MapBytes(const VocabularyMap& map) const;
  // For the log: what was packed, what the trial found and how long it took.
  std::string description() const;

 private:
  struct Evidence;

  void Make(const std::shared_ptr<const Weights>& weights, Proving proving);
  Evidence Ask(const Weights& weights, Proving proving) const;
  std::string Settle(const Evidence& evidence) const;
  void ProveIfNot(const Weights& weights);

  std::string making_;
  mutable std::mutex proof_mutex_;
  std::optional<std::string> proof_;  // what proves it; none: nothing was asked
  StepTimes step_times_;
  bool on_host_ = false;  // our own code for CPUs computes
  std::shared_ptr<const DeviceModel> model_;
  const std::shared_ptr<LoopCaches> caches_;
};

}  // namespace ct2triton
