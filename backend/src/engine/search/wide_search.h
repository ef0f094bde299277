// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compute/row_alignment.h"
#include "engine/compute/token_choice.h"
#include "engine/search/search_rules.h"
#include "rows/row.h"

namespace ct2triton {

// A search of one row that keeps several sequences of tokens: its beams.
//
// They share the cache of their row. A token is computed once and is stored in a slot; each beam
// has the slots of its tokens in order, so beams of one origin share their past, and nothing is
// copied.
class WideSearch {
 public:
  struct Hypothesis {
    Outputs outputs;  // forced and end tokens too
    float score = 0;
    Ids positions = {};  // source position of each output, if requested
  };

  virtual ~WideSearch() = default;

  // Beams that decode: one until the first choice.
  virtual size_t beams() const = 0;
  // Tokens of each beam, including forced ones.
  virtual size_t length() const = 0;
  // The last output of a beam, which the next step runs, and the slots of all its tokens including
  // this one. Not before the first choice: forced tokens are stored in order.
  virtual int32_t last(size_t beam) const = 0;
  virtual const int32_t* slots(size_t beam) const = 0;

  // Adds the rules of each beam's output; valid until the search advances.
  virtual void AddRules(std::vector<OutputRules>* rules) const = 0;
  // Decides how to continue from the results for these rules. Changes no visible state before
  // Accept, so a step that fails after this may be repeated.
  virtual void Choose(const Found* found) = 0;
  // After Choose: whether the search ends with this step.
  virtual bool Ends() const = 0;
  // The hypotheses of a search that ends, best first. May be fewer than requested.
  virtual std::vector<Hypothesis> Results() const = 0;
  virtual void Accept() noexcept = 0;
};

// The slots of a search in the alignment of its row; null: not requested.
struct AlignedSlots {
  const RowAlignment* alignment = nullptr;
  size_t first = 0;
};

// Alignments of `outputs` outputs: each is that of the token before it, whose slot is in `slots`;
// null: in order. Empty if alignments are not requested.
Ids PositionsOf(const AlignedSlots& aligned, const int32_t* slots, size_t outputs);

// Slots that `beams` sequences may need: for the token that starts the decoder and the forced ones,
// and for what each beam adds to them.
size_t SlotsFor(size_t beams, size_t forced, size_t limit);

// The requested hypotheses, by score divided by length, best first. The sort is unstable, as in
// CTranslate2.
std::vector<WideSearch::Hypothesis> BestFirst(std::vector<WideSearch::Hypothesis> finished,
                                              const SearchRules& rules, size_t wanted);

}  // namespace ct2triton
