// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compute/row_alignment.h"
#include "engine/search/search_rules.h"
#include "engine/search/token_choice.h"
#include "rows/row.h"

namespace ct2triton {

// A search of one row that keeps several sequences of tokens: its beams.
//
// They share the cache of their row. A token of it is computed once and lies in a slot; each beam
// has the slots of its own tokens in order, so that beams of one origin share their past, and
// nothing is ever copied.
class WideSearch {
 public:
  struct Hypothesis {
    Outputs outputs;  // forced and end tokens too
    float score = 0;
    Ids positions = {};  // where in the source each output comes from, if the row asks for it
  };

  virtual ~WideSearch() = default;

  // Beams that decode: one until the first choice.
  virtual size_t beams() const = 0;
  // Tokens of each beam, forced ones counted.
  virtual size_t length() const = 0;
  // The output that a beam brings into the next step, and the slots of all its tokens, that one
  // the last. Not before the first choice: forced tokens lie in order.
  virtual int32_t last(size_t beam) const = 0;
  virtual const int32_t* slots(size_t beam) const = 0;

  // Adds the rules of each beam's output; good until the search goes on.
  virtual void AddRules(std::vector<OutputRules>* rules) const = 0;
  // Takes what was found by these, and decides how to go on. Nothing shows before Accept; a step
  // that fails after this may be repeated.
  virtual void Choose(const Found* found) = 0;
  // After that: the search ends with it.
  virtual bool Ends() const = 0;
  // The wanted hypotheses, best first, of a search that ends. May be fewer than wanted.
  virtual std::vector<Hypothesis> Results() const = 0;
  virtual void Accept() noexcept = 0;
};

// The slots of a search in the alignment of its row; null: the row asks for none.
struct AlignedSlots {
  const RowAlignment* alignment = nullptr;
  size_t first = 0;
};

// Alignments of so many outputs: each is that of the token before it, whose slot is in `slots`;
// null: in order. Nothing where there is no alignment.
Ids PositionsOf(const AlignedSlots& aligned, const int32_t* slots, size_t outputs);

// Slots that `beams` sequences may need: for the token that starts the decoder and the forced ones,
// and for what each beam adds to them.
size_t SlotsFor(size_t beams, size_t forced, size_t limit);

// The wanted ones, best first: of their scores divided by their lengths. A sort that keeps no order
// among equals, as CTranslate2's.
std::vector<WideSearch::Hypothesis> BestFirst(std::vector<WideSearch::Hypothesis> finished,
                                              const SearchRules& rules, size_t wanted);

}  // namespace ct2triton
