// SPDX-License-Identifier: Apache-2.0
#include "quality/gaps.h"

#include <algorithm>
#include <cmath>

namespace ct2triton {
namespace {

// Marks the words in a span; returns whether one of them was not marked.
bool Mark(const std::vector<Word>& words, const Span& span, std::vector<bool>* marked) {
  const auto first = std::partition_point(
      words.begin(), words.end(), [&](const Word& word) { return word.place.end <= span.begin; });
  bool news = false;
  for (auto word = first; word != words.end() && word->place.begin < span.end; ++word) {
    const auto at = static_cast<size_t>(word - words.begin());
    news |= !(*marked)[at];
    (*marked)[at] = true;
  }
  return news;
}

double LongestRun(const std::vector<bool>& marked) {
  size_t longest = 0;
  size_t run = 0;
  for (const bool one : marked) {
    run = one ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return static_cast<double>(longest) / std::sqrt(static_cast<double>(marked.size() + 2));
}

}  // namespace

Alignment::Alignment(const std::vector<Span>& sources, const std::vector<Span>& targets,
                     const std::vector<int64_t>& positions) {
  whole = !positions.empty();
  for (size_t i = 0; i < std::min(positions.size(), targets.size()); ++i) {
    if (targets[i].begin >= targets[i].end) continue;
    if (positions[i] < 0) whole = false;
    const auto position = static_cast<size_t>(positions[i]);
    if (positions[i] < 0 || position >= sources.size()) continue;
    const Span& source = sources[position];
    if (source.begin < source.end) spans.push_back({source, targets[i]});
  }
}

Gaps FindGaps(const std::vector<Word>& source, const std::vector<Word>& target,
              const Alignment& alignment) {
  std::vector<bool> covered(source.size());
  std::vector<bool> has_own(target.size());
  auto first = alignment.spans.begin();
  for (size_t i = 0; i < target.size(); ++i) {
    const Span& word = target[i].place;
    while (first != alignment.spans.end() && first->target.end <= word.begin) ++first;
    for (auto one = first; one != alignment.spans.end() && one->target.begin < word.end; ++one) {
      if (Mark(source, one->source, &covered)) has_own[i] = true;
    }
  }
  return {LongestRun(covered), LongestRun(has_own)};
}

}  // namespace ct2triton
