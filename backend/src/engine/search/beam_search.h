// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compute/sampler.h"
#include "engine/compute/top_candidates.h"
#include "engine/search/draft_bias.h"
#include "engine/search/prefix_bias.h"
#include "engine/search/search_rules.h"
#include "engine/search/wide_search.h"

namespace ct2triton {

// Width and end conditions of a beam search.
struct BeamSettings {
  size_t beams = 1;
  size_t hypotheses = 1;     // wanted
  size_t most_finished = 1;  // hypotheses at which the search ends
  bool ends_early = false;   // end when the top beam has ended and there are enough hypotheses

  static BeamSettings Of(const SearchOptions& search);
};

// The bias of its beams: at most one is set.
struct BeamBias {
  std::optional<PrefixBias> prefix = {};
  std::shared_ptr<const DraftBias> draft = nullptr;
};

// The state of one row's beam search. It follows CTranslate2's (src/decoding.cc) for a row that is
// alone in its call:
// - Of the best 2 x beams candidates the first `beams` may end: by an end token, or all of them at
//   the limit, ended or not. In the place of one that ends goes the next candidate after the first
//   `beams` that is no end token; where there is none left, it goes on after its end.
// - Where tokens were forced, an end token that is not the best candidate of the first free step
//   becomes token 0 with a score of -1e10.
// - The search ends when round(beams x patience) hypotheses have ended, which a step may exceed.
//   Without a length penalty it ends when the best candidate has ended, at this step or before, and
//   there are as many hypotheses as wanted.
// - A score is divided at the end, by the length with forced and end tokens. A sort that keeps no
//   order among equals puts the best first.
// - With a bias towards the prefix nothing is forced (prefix_bias.h). A bias towards a draft is
//   ours: each beam has its own (draft_bias.h).
// - With sampling the candidates are drawn, and the order is that of the draws.
//
// A slot that no beam uses any more is reused for a new token.
class BeamSearch final : public WideSearch {
 public:
  // `forced`: first outputs of the row, fewer than `limit`. `aligned`: set if the row requests an
  // alignment.
  BeamSearch(std::shared_ptr<const SearchRules> rules, const BeamSettings& settings,
             const Outputs& forced, size_t limit,
             const std::optional<Sampler>& sampler = std::nullopt, BeamBias bias = {},
             const AlignedSlots& aligned = {});

  size_t beams() const override { return beams_.size(); }
  size_t length() const override { return beams_.front().outputs.size(); }
  int32_t last(size_t beam) const override { return beams_[beam].outputs.back(); }
  const int32_t* slots(size_t beam) const override { return beams_[beam].slots.data(); }
  void AddRules(std::vector<OutputRules>* all) const override;
  void Choose(const Found* found) override;
  bool Ends() const override { return next_.ends; }
  std::vector<Hypothesis> Results() const override;
  void Accept() noexcept override;

  // Results of a row whose forced tokens reach its limit, so that it ends without a decode step.
  static std::vector<Hypothesis> ResultsOfForced(const SearchRules& rules,
                                                 const BeamSettings& settings,
                                                 const Outputs& forced);

 private:
  struct Beam {
    Outputs outputs;
    std::vector<int32_t> slots;
    float score = 0;
  };
  struct Next {
    std::vector<Beam> beams;
    std::vector<Hypothesis> finished;
    PrefixBias::Diverged diverged;
    bool top_ended = false;
    bool ends = false;
  };

  bool IsFirstChoice() const { return beams_.front().slots.empty(); }
  std::vector<size_t> Finish(const std::vector<Candidate>& candidates, Next* next) const;
  Hypothesis Ended(const Candidate& candidate) const;
  Outputs WithOutput(const Candidate& candidate) const;
  void GiveSlots(const std::vector<Candidate>& chosen, std::vector<Beam>* beams) const;

  std::shared_ptr<const SearchRules> rules_;
  BeamSettings settings_;
  std::optional<Sampler> sampler_;
  BeamBias bias_;
  AlignedSlots aligned_;
  PrefixBias::Diverged diverged_;
  size_t forced_;
  size_t limit_;
  std::vector<Beam> beams_;
  std::vector<Hypothesis> finished_;
  bool top_ended_ = false;
  Next next_;
};

}  // namespace ct2triton
