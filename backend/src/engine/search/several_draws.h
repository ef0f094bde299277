// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/compute/sampler.h"
#include "engine/search/greedy.h"
#include "engine/search/wide_search.h"

namespace ct2triton {

// Several hypotheses at a beam size of 1: each is a search of its own, which draws and ends
// separately. Forced tokens are computed once. The best score comes first.
class SeveralDraws final : public WideSearch {
 public:
  // `forced`: first outputs of the row, fewer than `limit`. `rules` must be scored.
  SeveralDraws(const std::shared_ptr<const SearchRules>& rules, size_t hypotheses,
               const Outputs& forced, size_t limit, const std::optional<Sampler>& sampler,
               const AlignedSlots& aligned = {});

  size_t beams() const override { return has_chosen_ ? running_.size() : 1; }
  size_t length() const override { return length_; }
  int32_t last(size_t beam) const override { return draws_[running_[beam]].choice.output; }
  const int32_t* slots(size_t beam) const override { return draws_[running_[beam]].slots.data(); }
  void AddRules(std::vector<OutputRules>* all) const override;
  void Choose(const Found* found) override;
  bool Ends() const override;
  std::vector<Hypothesis> Results() const override;
  void Accept() noexcept override;

 private:
  struct Draw {
    GreedySearch search;
    Choice choice;               // at this step, or the last one
    std::vector<int32_t> slots;  // has its final capacity
    bool ended = false;
  };

  const std::shared_ptr<const SearchRules> rules_;
  const std::optional<Sampler> sampler_;
  AlignedSlots aligned_;
  std::vector<Draw> draws_;
  std::vector<size_t> running_;  // indices of running draws
  const size_t forced_;
  size_t length_;
  bool has_chosen_ = false;
};

}  // namespace ct2triton
