// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/loop/cache_pool.h"
#include "engine/loop/chooser.h"
#include "engine/loop/decoder_model.h"
#include "engine/loop/decoder_step.h"
#include "engine/loop/greedy.h"
#include "engine/loop/source_encoder.h"
#include "rows/checked_row.h"
#include "rows/row.h"

namespace ct2triton {

// Names one row of one DecodeLoop, from Admit until it has ended or was removed; never used again.
using LoopRow = uint64_t;

// Hears what a step did. It must not call the loop.
class LoopListener {
 public:
  virtual ~LoopListener() = default;
  // The answer of the row has grown by one id, which will not change; forced tokens come first. An
  // end token is reported when another token follows it, or when it stays in the answer: the ids so
  // reported are the answer.
  virtual void RowGrew(LoopRow row, int64_t id) noexcept = 0;
  // The row has left the loop.
  virtual void RowEnded(LoopRow row, RowResult result) noexcept = 0;
};

// What a loop has done so far.
struct LoopCounters {
  uint64_t encodes = 0;  // calls of the encoder
  uint64_t encoded_rows = 0;
  uint64_t encoded_tokens = 0;  // source tokens
  uint64_t encode_ns = 0;       // keys and values of the sources included
  uint64_t steps = 0;
  uint64_t step_rows = 0;    // sum over the steps of the rows that took part
  uint64_t step_tokens = 0;  // tokens fed, forced ones included
  uint64_t step_ns = 0;
};

// The running rows of one model. Rows of any age and any options decode together: they join
// between two steps, each step gives every row one token, and each row leaves alone.
//
// One thread at a time uses a loop. Loops of the same model share its layers, and nothing else.
// A row's answer is the one it has alone, whoever is in the loop: see SourceEncoder about int8.
class DecodeLoop {
 public:
  // Of a row's forced tokens, at most so many run in one step, so that a long prefix does not hold
  // up the other rows.
  static constexpr size_t kForcedTokensPerStep = 128;

  // `pool`: where caches come from and go back to; loops of one model may share it.
  DecodeLoop(std::shared_ptr<const DecoderModel> model, std::shared_ptr<CachePool> pool);
  ~DecodeLoop();
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  // Encodes the sources and takes the rows in: they take part from the next step on. The rows are
  // not empty and WhyNotLoop has nothing against their searches (loop_support.h). Each CheckedRow
  // must live until its row has ended or was removed.
  // Returns the rows' names, in order. Throws Error(kInternal) or std::bad_alloc if CTranslate2
  // fails: no row was taken in then.
  std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows);

  // Gives every running row its next token; a row with many forced tokens may need some steps
  // before. Throws as Admit does: every row is then as it was before the step, and nothing was
  // reported. The caller may step again, or remove rows and admit them again.
  void Step(LoopListener* listener);

  // Takes a row out that nobody waits for any more. Unknown names, of ended rows, are ignored.
  void Remove(LoopRow row) noexcept;
  // Takes all rows out.
  void Clear() noexcept;

  size_t running() const { return rows_.size(); }
  const LoopCounters& counters() const { return counters_; }

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
  const std::shared_ptr<CachePool> pool_;
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
