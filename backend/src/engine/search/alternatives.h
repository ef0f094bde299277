// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compute/sampler.h"
#include "engine/search/beam_search.h"
#include "engine/search/wide_search.h"

namespace ct2triton {

// Hypotheses that differ in the first token after the forced ones (`return_alternatives`), as
// CTranslate2's decode_alternatives (src/decoding.cc): the best tokens for that place, and after
// each a search of its own, one beam or several.
// - For the first token of each, and after it, penalty, n-grams and sequences do not see what
//   came before. The first one is never an end token.
// - The order is that of the first tokens. A score is the sum of the first token's and that of the
//   rest, which is divided by the length of the rest.
class Alternatives final : public WideSearch {
 public:
  // `forced`: first outputs of the row, fewer than `limit`.
  Alternatives(const SearchRules& rules, const BeamSettings& settings, const Outputs& forced,
               size_t limit, const std::optional<Sampler>& sampler,
               const RowAlignment* alignment = nullptr);

  size_t beams() const override { return alternatives_.empty() ? 1 : strands_.size(); }
  size_t length() const override { return length_; }
  int32_t last(size_t beam) const override;
  const int32_t* slots(size_t beam) const override { return slots_[beam].data(); }
  void AddRules(std::vector<OutputRules>* all) const override;
  void Choose(const Found* found) override;
  bool Ends() const override;
  std::vector<Hypothesis> Results() const override;
  void Accept() noexcept override;

 private:
  // One first token, and the search after it.
  struct Alternative {
    int32_t first = 0;
    float score = 0;
    std::unique_ptr<WideSearch> rest;       // null: the search has ended
    std::optional<Hypothesis> rest_result;  // result of a search that ends or has ended
  };
  // A beam of one of the searches, or its first token before the search has begun.
  struct Strand {
    size_t alternative;
    size_t beam;
  };

  void ChooseFirst(const std::vector<Candidate>& candidates);
  std::unique_ptr<WideSearch> NewRest(size_t alternative) const;
  void AddStrand(size_t alternative, size_t beam) noexcept;
  size_t FirstSlot(size_t alternative) const;
  size_t rest_limit() const { return limit_ - forced_.size() - 1; }

  const std::shared_ptr<const SearchRules> first_rules_;
  const std::shared_ptr<const SearchRules> rest_rules_;
  const BeamSettings settings_;
  const Outputs forced_;
  const Outputs nothing_;  // the empty sequence before the first token, for its rules
  const size_t limit_;
  const std::optional<Sampler> sampler_;
  const RowAlignment* alignment_;  // of the row; null: not requested
  std::vector<Alternative> next_;  // after the first choice
  std::vector<Alternative> alternatives_;
  std::vector<Strand> strands_;
  std::vector<std::vector<int32_t>> slots_;  // of the strands
  size_t length_;
};

}  // namespace ct2triton
