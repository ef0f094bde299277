// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/compute/cpu/float_buffer.h"
#include "engine/compute/cpu/kernels.h"
#include "engine/compute/cpu/linear.h"
#include "engine/search/greedy.h"
#include "engine/search/wide_search.h"

namespace ct2triton {

// The product of a step with the vocabulary, and what each row chooses of it. Logits are written
// only for the rows that change them; of a beam that does not, the best outputs are kept. One
// thread's.
class Chooser {
 public:
  // `logits_bytes`: where the memory of all loops' logits is counted; must be there as long.
  Chooser(const Kernels& kernels, std::atomic<size_t>* logits_bytes)
      : kernels_(kernels), logits_bytes_(logits_bytes) {}
  ~Chooser() { *logits_bytes_ -= counted_; }
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  // seekers: one per row; hidden: [rows, width]; projection: one of the model's.
  std::vector<Found> Choose(const std::vector<Seeker>& seekers, const float* hidden,
                            const Linear& projection);
  // No row is left: gives the room for logits back.
  void Rest() noexcept;

 private:
  // What a row wants of a product that can choose.
  struct Wants {
    bool logits = false;
    size_t top = 0;
  };

  float* LogitsRoom(size_t count);
  void Count() noexcept;
  static Wants WantsOf(const Seeker& seeker);
  std::vector<products::ChoiceRules> RulesOf(const std::vector<Seeker>& seekers, size_t outputs);

  const Kernels& kernels_;
  std::atomic<size_t>* const logits_bytes_;
  FloatBuffer logits_;
  size_t counted_ = 0;   // bytes of it
  size_t largest_ = 0;   // floats that were wanted in the last products,
  size_t products_ = 0;  // so many
  std::vector<products::RankedOutput> top_;
};

}  // namespace ct2triton
