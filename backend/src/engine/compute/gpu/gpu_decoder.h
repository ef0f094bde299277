// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/compute/gpu/gpu.h"
#include "engine/compute/gpu/pass.h"
#include "engine/compute/gpu/slots.h"
#include "engine/compute/gpu/weights.h"
#include "gpu/args.h"
#include "rows/alignment_heads.h"

namespace ct2triton::gpu {

// Rules for choosing a sequence's next token, as plain values. Tokens are vocabulary ids.
struct TokenRules {
  float penalty = 1;  // for tokens that the sequence has already
  size_t unseen = 0;  // number of first tokens that the penalty ignores
  std::vector<int> ends;
  std::vector<int> forbidden;
  size_t min_length = 0;  // tokens before an end may come
  size_t limit = 0;       // length at which the sequence ends; 0: it cannot continue by itself
  size_t candidates = 1;  // wanted, at most kMostCandidates
  bool draws = false;     // with random numbers determined by `key` and the position
  uint64_t key = 0;
  size_t top_k = 0;  // of a draw; 0: all, and top_p is 1 then
  float top_p = 1;
  float temperature = 1;
  std::optional<int> list;     // of AddList(); none: the whole vocabulary
  std::optional<int> favored;  // the draft's next token, and the bias towards it
  float bias = 0;
  size_t first_source = 0, sources = 0;  // tokens of the source where an alignment may point
};

// A sequence's input to a step: tokens, from `position` on.
struct GivenTokens {
  int sequence = 0;
  size_t position = 0;
  // Empty: the token chosen last for the sequence, which the host need not know yet; no token if it
  // ended the sequence.
  std::vector<int> tokens = {};
  size_t outputs = 1;  // number of last tokens whose logits are computed
  // Cache slot of each token of the sequence, including those to be run now; empty: in order.
  std::vector<int> places = {};
  // Outputs before the last one, for a penalty; empty: those on the device.
  std::vector<int> before = {};
};

struct TokenCandidate {
  int token = 0;
  float log_probability = 0;
};

struct ChosenToken {
  TokenCandidate chosen;  // token -1: the sequence had ended, or no logit was a number
  std::vector<TokenCandidate> candidates;  // best first
  int aligned_source = 0;                  // among the tokens where it may point
  float alignment_weight = 0;
};

struct GpuLimits {
  size_t sequences = 64;
  size_t step_tokens = 64;     // of a step with given tokens
  size_t encoded_tokens = 64;  // of a pass of the encoder
  size_t source_tokens = 64;   // of a source
  size_t target_tokens = 64;   // of a sequence
  size_t cache_bytes = 0;      // 0: nine tenths of what is free
  size_t outputs = 0;          // of a step; 0: one per sequence and token
};

// Place of an output that a step computes.
struct OutputPlace {
  int list, output;
  size_t candidates;
};

struct GpuEncoded;   // an encoding
struct GpuSequence;  // host's state of a sequence
struct GpuOutputs;   // buffers for logits and choices
class GpuStep;       // a step that the device may not have finished

// A translation model on a GPU: encodings, running sequences with their keys and values, and the
// choice of their tokens. Not thread-safe. Copies only requested numbers from the GPU. Throws
// failures of the device as Error.
class GpuDecoder {
 public:
  GpuDecoder(const GpuPlace& place, const ModelFile& file, const ComputeTypes& types,
             std::optional<float> epsilon, const GpuLimits& limits);
  ~GpuDecoder();

  // Encodes sources of any lengths, without padding. Returns the ID of each encoding.
  std::vector<int> Encode(const std::vector<std::vector<int>>& sources);
  void ForgetEncoding(int encoding);  // its sequences keep what they need

  // Adds a list of candidates, ascending. Returns the list's ID.
  int AddList(const std::vector<int>& tokens);

  // Adds a sequence, whose rules SetRules() sets. cache: for its keys and values; sequences may
  // share one. Returns its ID.
  int Join(int encoding, size_t prompt, const std::shared_ptr<Pages>& cache);
  std::shared_ptr<Pages> NewCache() { return std::make_shared<Pages>(&slots_); }
  size_t free_sequences() const;
  // Returns whether the rules changed.
  bool SetRules(int sequence, const TokenRules& rules);
  void Forget(int sequence);

  // Launches a step of these sequences without waiting for it; more steps may be launched. heads:
  // whose attention aligns tokens; null: the model's.
  std::unique_ptr<GpuStep> Launch(const std::vector<GivenTokens>& rows,
                                  const AlignmentHeads* heads = nullptr);
  // Runs such a step kernel by kernel, for benchmarks: its choices are lost.
  std::vector<KernelTime> TimeKernels(const std::vector<GivenTokens>& rows);
  // Waits for the step. Returns the chosen tokens of its outputs, in order.
  std::vector<ChosenToken> Read(std::unique_ptr<GpuStep> step);
  void Drop(std::unique_ptr<GpuStep> step) noexcept;  // its results are not needed
  void Wait() const { gpu_.Wait(); }                  // for all launched work

  size_t outputs() const { return last_.size(); }  // of the step that was launched last
  // Logits of one of these: [outputs of the projection or list]. Waits for the step.
  std::vector<float> Logits(size_t output) const;
  size_t taken_pages() const { return slots_.taken_pages(); }
  size_t cache_bytes() const { return slots_.bytes(); }
  size_t most_cache_bytes() const { return slots_.most_bytes(); }
  // Of that, what others have not taken, as of the last MeasureCache().
  size_t most_cache_bytes_now() const { return slots_.most_bytes_now(); }
  void MeasureCache() {
    gpu_.MakeCurrent();
    slots_.Measure();
  }
  size_t taken_bytes() const {  // of pages, without a lock
    return slots_.taken_pages() * Slots::kPageSlots * slots_.slot_bytes();
  }
  size_t slot_bytes() const { return slots_.slot_bytes(); }
  size_t weight_bytes() const { return weights_.bytes(); }
  size_t graphs() const { return graphs_.size(); }
  size_t kernels_of_last_step() const { return kernels_of_step_; }
  const std::string& device() const { return gpu_.name(); }
  std::optional<Error> loss() const { return gpu_.loss(); }  // without a lock

 private:
  // A row of a step with an output, and its list of candidates (-1: none).
  struct Wanted {
    int row, sequence, list;
  };
  // GpuOutputs of a step that are projected together.
  struct Group {
    int list;
    int first;   // among all outputs
    int bucket;  // outputs, padding included
  };
  struct Step {
    int rows;
    bool aligns;
    std::vector<Group> groups = {};
  };
  // What a graph runs: the layers of the encoder or of the decoder, for so many rows.
  // aligning_layer: of the decoder, whose attention is kept; -1: none.
  struct Layers {
    bool encodes;
    int rows;
    int aligning_layer = -1;
    bool operator<(const Layers& other) const {
      return std::tie(encodes, rows, aligning_layer) <
             std::tie(other.encodes, other.rows, other.aligning_layer);
    }
  };

  static void RequireTokens(const std::vector<int>& tokens, const SideWeights& side);
  void EncodePass(const std::vector<std::vector<int>>& sources, size_t begin, size_t end,
                  std::vector<int>* names);
  void LaunchEncoder(int rows);
  void LaunchDecoder(int rows, int aligning_layer);
  void LaunchChoice(const Group& group, bool aligns);
  const Graph& GraphOf(const Layers& layers);
  void RecordGraphs();
  Step MakeStep(int rows, const std::vector<Wanted>& wanted);
  GpuSequence& Known(int sequence) const;
  int NewName();
  void Reserve(int name, size_t tokens);
  void PutPlaces(int name, const std::vector<int>& places);
  void PutSource(int name, const std::shared_ptr<GpuEncoded>& encoded);
  void AlignBy(const AlignmentHeads& heads);
  void AddGiven(const GivenTokens& given, std::vector<int>* token, std::vector<int>* position,
                std::vector<int>* sequence, std::vector<Wanted>* wanted);
  int OutputOf(const GpuSequence& sequence, int token) const;
  int TokenOf(int list, int output) const;
  // Copies these tokens to the device.
  Step Give(const std::vector<GivenTokens>& rows, const AlignmentHeads* heads);
  std::unique_ptr<GpuStep> AskForChoices();

  Gpu gpu_;
  const GpuLimits limits_;
  ModelWeights weights_;
  Workspace workspace_;
  RowBuffers encoded_, given_;
  Buffer<int> source_first_, source_tokens_;  // of a pass of the encoder
  Buffer<void*> beside_;                      // where its keys and values begin
  // Of sequences:
  Buffer<int> table_, source_table_, count_, prompt_, history_;
  Buffer<Rule> rules_;
  Buffer<Next> next_;
  std::unique_ptr<GpuOutputs> outputs_;
  Slots slots_;  // of what the weights and buffers above leave free
  std::vector<Matrix> lists_;
  std::vector<std::vector<int>> list_tokens_;
  std::vector<Buffer<int>> list_ids_;
  std::map<int, std::shared_ptr<GpuEncoded>> encodings_;
  AlignmentHeads aligning_;
  int next_encoding_ = 0;
  std::vector<Buffer<int>> listed_;                      // by ID
  std::vector<std::unique_ptr<GpuSequence>> sequences_;  // by ID; null: free
  // The choice of tokens is in none of them: lists would make too many combinations.
  std::map<Layers, std::unique_ptr<Graph>> graphs_;
  std::optional<Pass> decoded_;  // after the decoder's last layer, of whatever rows
  size_t kernels_of_step_ = 0;
  std::vector<OutputPlace> last_;  // of the last step, in order of request
  std::vector<std::unique_ptr<GpuStep>> idle_;
};

}  // namespace ct2triton::gpu
