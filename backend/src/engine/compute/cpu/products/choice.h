// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/cpu/products/kernel.h"

namespace ct2triton::products {

// The results that a row needs from the product with the vocabulary.
struct ChoiceRules {
  bool log_total = false;          // for scores
  float* logits = nullptr;         // where to write [outputs] logits as well, null for nowhere
  std::vector<int64_t> forbidden;  // outputs not to choose, ascending; they are in no total either,
                                   // but their logits are written as they are
  RankedOutput* top = nullptr;     // where to write the best `wanted` outputs, best first; of equal
                                   // ones the first output; null for nowhere
  int32_t wanted = 0;
};

// A row's greedy choice among the outputs of a layer.
struct ChosenLogit {
  int64_t output = 0;   // the first that has the largest logit
  float logit = 0;      // its logit
  float log_total = 0;  // log of the sum of exp(logit), if requested; score = logit - log_total
  int32_t found = 0;    // number of best outputs; may be fewer than wanted
};

// Chooses for some rows among outputs that are computed in parts, by one thread or several. Totals
// are summed by part and then in order of the parts, so results depend on the parts only.
class SplitChoice {
 public:
  // `members`: threads that may take parts at the same time; `panel_outputs`: see Kernel. `rules`
  // must outlive it, one per row.
  SplitChoice(const std::vector<ChoiceRules>& rules, size_t parts, size_t members,
              int panel_outputs);

  // The states [rows] for a kernel's `choose` on the part of outputs that begins here. A member
  // takes its parts in ascending order.
  ChoiceState* Begin(size_t member, int64_t first_output) noexcept;
  void End(size_t member, size_t part) noexcept;

  // Call once all parts have ended. choices: [rows].
  void Finish(ChosenLogit* choices);

 private:
  // The choice of one row among the outputs of one part.
  struct PartChoice {
    int64_t output;
    float logit;
    double total;  // of exp(logit of an output - logit)
  };

  void Start(size_t member) noexcept;
  ChosenLogit Join(size_t row) const noexcept;
  int32_t JoinTop(size_t row);

  const std::vector<ChoiceRules>& rules_;
  const size_t parts_;
  const int panel_outputs_;
  std::vector<char> started_;  // by member
  size_t wanted_ = 0;          // best outputs of all rows
  // Memory that only a member which takes part touches.
  const std::unique_ptr<ChoiceState[]> states_;  // [members, rows]
  std::unique_ptr<RankedOutput[]> top_;          // [members - 1, wanted_]: of helpers
  std::vector<PartChoice> chosen_;               // [parts, rows]
};

}  // namespace ct2triton::products
