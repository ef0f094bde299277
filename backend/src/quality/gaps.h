// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quality/words.h"
#include "text/code_points.h"

namespace ct2triton {

// Spans of a token of the translation and of its source, in bytes.
struct AlignedSpans {
  Span source;
  Span target;
};

// The alignments of a translation, if all its text has some. `positions`: for each token, the
// position of its source token, or -1 for a forced one. Tokens without text are left out.
struct Alignment {
  Alignment() = default;
  Alignment(const std::vector<Span>& sources, const std::vector<Span>& targets,
            const std::vector<int64_t>& positions);

  std::vector<AlignedSpans> spans;  // in the order of the tokens
  bool whole = false;               // no token with text was forced
};

// How much of two texts has no counterpart in the other: the words of the longest such run, divided
// by the square root of 2 + all words of the text.
struct Gaps {
  double uncovered = 0;  // source words that no token is aligned to
  double invented = 0;   // words of the translation without a source word of their own
};

Gaps FindGaps(const std::vector<Word>& source, const std::vector<Word>& target,
              const Alignment& alignment);

}  // namespace ct2triton
