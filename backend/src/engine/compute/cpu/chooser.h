// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/token_choice.h"

namespace ct2triton {

// The product of a step with the vocabulary, and each row's choice. Logits are written only for
// rows that change them; for other beams the best outputs are kept. In the rare case that these do
// not determine the candidates of a search, its logits are written too. Not thread-safe.
class Chooser {
 public:
  // `logits_bytes`: counts the memory of all loops' logits; must outlive it.
  Chooser(const HostModel& model, std::atomic<size_t>* logits_bytes)
      : model_(model), logits_bytes_(logits_bytes) {}
  ~Chooser() { *logits_bytes_ -= counted_; }
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  // rules: one per row; hidden: [rows, width].
  std::vector<Found> Choose(const std::vector<OutputRules>& rules, const float* hidden);
  // Of each row, among the candidates of a map; null: the whole vocabulary.
  std::vector<std::vector<float>> Logits(const VocabularyMap* map, const float* hidden,
                                         size_t rows) const;
  // Frees the logits buffer; call when no row is left.
  void Rest() noexcept;

 private:
  float* LogitsRoom(size_t count);
  void Count() noexcept;
  std::vector<products::ChoiceRules> RulesOf(const std::vector<OutputRules>& given);
  void ChooseByMap(const std::vector<OutputRules>& rules, const float* hidden,
                   const std::vector<products::ChoiceRules>& asked,
                   std::vector<products::ChosenLogit>* chosen);
  void Join(const std::vector<OutputRules>& rules, const std::vector<OfferedOutput>& offered,
            const float* hidden, std::vector<Found>* found);
  void JoinAgain(const std::vector<OutputRules>& rules, const std::vector<size_t>& open,
                 const float* hidden, std::vector<Found>* found);

  const HostModel& model_;
  std::atomic<size_t>* const logits_bytes_;
  FloatBuffer logits_, gathered_, open_;
  size_t counted_ = 0;   // bytes of it
  size_t largest_ = 0;   // floats needed at most in the last products
  size_t products_ = 0;  // number of these products
  std::vector<products::RankedOutput> top_;
};

}  // namespace ct2triton
