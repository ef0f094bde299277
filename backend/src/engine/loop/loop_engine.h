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
enum class ElementType : uint8_t;
struct LoopCaches;
class SearchOptions;
class VocabularyMap;
class Weights;

// Identifies one row of one loop, from Admit until it has ended or was removed; never reused.
using LoopRow = uint64_t;

// Receives the results of a step, and ignores them unless it is derived from. It must not call the
// loop.
class LoopListener {
 public:
  virtual ~LoopListener() = default;
  // The output of this row has grown by an ID that will not change. Forced IDs come first.
  virtual void RowGrew(LoopRow /*row*/, int64_t /*id*/) noexcept {}
  // The row has left the loop.
  virtual void RowEnded(LoopRow /*row*/, RowResult /*result*/) noexcept {}
};

// What a loop has done so far.
struct LoopCounters {
  uint64_t encodes = 0;  // calls of the encoder
  uint64_t encoded_rows = 0;
  uint64_t encoded_tokens = 0;    // source tokens
  uint64_t encode_ns = 0;         // including the sources' keys and values
  uint64_t shared_encodings = 0;  // rows that used another row's encoding
  uint64_t steps = 0;
  uint64_t step_rows = 0;    // sum over the steps of the rows that took part; each beam counts
  uint64_t step_tokens = 0;  // tokens fed, forced ones included
  uint64_t step_ns = 0;
  uint64_t helped_parts = 0;       // of steps and encodings, computed by threads that helped
  uint64_t draft_tokens = 0;       // of step_tokens, those of drafts
  uint64_t draft_tokens_kept = 0;  // draft tokens that became output
  uint64_t written_rows = 0;      // beams that chose from written logits, not from the best outputs
  uint64_t joined_rows = 0;       // rows admitted while others ran
  uint64_t gpu_passes = 0;        // of a GPU's decoder; a step of many tokens takes several
  uint64_t gpu_passes_ahead = 0;  // launched before the tokens of the pass before were read
  uint64_t gpu_host_choices = 0;  // made on the host, because the kernels lack a rule
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
    {"helped_parts", &LoopCounters::helped_parts},
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

// The running rows of one model. Rows of any progress and any options decode together. They join
// between two steps, each step gives every row a token, or several of its draft, and each row
// leaves when it ends.
//
// One thread at a time uses a loop. A row's answer does not depend on the other rows.
class LoopEngine {
 public:
  virtual ~LoopEngine() = default;

  // Encodes the sources and admits the rows: they take part from the next step on. The rows must
  // have been checked by a LoadedModel that lets the loop run them. Each CheckedRow must live until
  // its row has ended or was removed. Returns the rows' names, in order. Throws Error or
  // std::bad_alloc on failure; then no row was admitted. kUnavailable: a GPU's memory is short.
  virtual std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows) = 0;

  // Gives running rows their next tokens: every light row, and heavy ones alternately
  // (step_budget.h). A row with many forced tokens may need some steps before its first token.
  // Throws as Admit does; then every row is as before the step, and nothing was reported. The
  // caller may step again, or remove rows and admit them again.
  virtual void Step(LoopListener* listener) = 0;

  // Removes a row that is no longer needed. Names of ended rows are ignored.
  virtual void Remove(LoopRow row) noexcept = 0;

  virtual size_t running() const = 0;
  virtual const LoopCounters& counters() const = 0;
};

// When a trial compares the loop with calls of CTranslate2: never, only without a proof (proof.h),
// or always.
enum class Proving { kNever, kOnce, kAlways };

// Shared by all loops on one set of weights: the model's layers and their memory.
class LoopModel {
 public:
  // The one of these weights. It is made at the first call, and proved at the first call that
  // demands it. Does not block calls for other weights. Throws Error(kUnsupported), with the
  // reason, if the loop cannot run the model, or Error(kNoKernels).
  static std::shared_ptr<LoopModel> Get(const std::shared_ptr<const Weights>& weights,
                                        Proving proving);

  LoopModel(const std::shared_ptr<const Weights>& weights, Proving proving);

  virtual ~LoopModel() = default;
  virtual std::unique_ptr<LoopEngine> NewLoop() const;
  // Encodes the source of a row, for loops that admit the row while the encoding is held. Throws as
  // LoopEngine::Admit does. Thread-safe. Only if EncodesBeside.
  virtual std::shared_ptr<const void> Encode(const CheckedRow& row, LoopCounters* counters) const;
  // The heads that the operator chooses for alignments; null: the model's. Throws
  // Error(kInvalidArgument) if the decoder has no such layer or head.
  std::shared_ptr<const AlignmentHeads> ChosenAlignment(const EngineOptions& engine) const;
  // The same check for a model without loops; does nothing if its decoder is unknown.
  static void RequireAlignment(const EngineOptions& engine, const Weights& weights);
  // Reason for messages why loops cannot run rows of this search, or this row; none: they can.
  // Calls of CTranslate2 can run every row.
  std::optional<std::string> WhyNot(const SearchOptions& search) const;
  std::optional<std::string> WhyNot(const CheckedRow& row) const;
  // Memory of keys and values that the row holds while it runs: of its own tokens, and of its
  // source, which rows with the same source share.
  size_t CacheBytes(const CheckedRow& row) const;
  size_t SourceCacheBytes(const CheckedRow& row) const;
  // Whether the row's source is encoded.
  bool HasEncoding(const CheckedRow& row) const;
  size_t cache_bytes_in_use() const;
  bool EncodesBeside() const { return on_host_; }
  // Measured step times of these weights; empty: on a GPU, or if they could not be measured.
  virtual const StepTimes& step_times() const { return step_times_; }
  std::optional<Error> loss() const;               // of the model's device: see DeviceModel
  std::optional<size_t> most_cache_bytes() const;  // see DeviceModel
  std::optional<size_t> most_cache_bytes_now() const;
  void MeasureCache() const noexcept;
  size_t gpu_cache_bytes() const;   // of pages on a GPU that rows and sources hold
  size_t logits_bytes() const;      // held by all loops for logits
  ElementType weight_type() const;  // of the layers
  size_t packed_bytes() const;      // of copies of the weights, made for loops
  // What the candidates of one vocabulary map take while they are packed.
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
  std::optional<std::string> proof_;  // description of the proof; none: not proved
  StepTimes step_times_;
  bool on_host_ = false;  // computes with our CPU code
  std::shared_ptr<const DeviceModel> model_;
  const std::shared_ptr<LoopCaches> caches_;
};

}  // namespace ct2triton
