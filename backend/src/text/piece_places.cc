// SPDX-License-Identifier: Apache-2.0
#include "text/piece_places.h"

#include <algorithm>
#include <cstddef>

namespace ct2triton {
namespace {

std::vector<Span> Words(std::string_view text) {
  std::vector<Span> words;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool is_space = IsSpace(NextCodePoint(text, &at));
    if (!is_space && !inside) words.push_back({begin, at});
    if (!is_space) words.back().end = at;
    inside = !is_space;
  }
  return words;
}

// The words of a text, and its characters by number and by byte.
class Ruler {
 public:
  explicit Ruler(std::string_view text) : words_(Words(text)), numbers_(text.size() + 1) {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      NextCodePoint(text, &at);
      std::fill(&numbers_[begin], &numbers_[at], begins_.size());
      begins_.push_back(begin);
    }
    numbers_[text.size()] = begins_.size();
    begins_.push_back(text.size());
  }

  const std::vector<Span>& words() const { return words_; }
  size_t Number(size_t at) const { return numbers_[at]; }        // of the character at a byte
  size_t Begin(size_t number) const { return begins_[number]; }  // the byte of a character
  size_t Length(size_t word) const { return Number(words_[word].end) - Number(words_[word].begin); }
  // The word that contains a byte, which must not be a space.
  size_t WordAt(size_t at) const {
    const auto behind =
        std::upper_bound(words_.begin(), words_.end(), at,
                         [](size_t place, const Span& word) { return place < word.begin; });
    return static_cast<size_t>(behind - words_.begin()) - 1;
  }

 private:
  std::vector<Span> words_;
  std::vector<size_t> numbers_;
  std::vector<size_t> begins_;
};

// The place in the text of the place `at` in the joined pieces, which have as many words.
// `is_end`: `at` is the end of a piece, not its beginning.
size_t PlaceOf(size_t at, bool is_end, const Ruler& joined, const Ruler& text) {
  const size_t word = joined.WordAt(is_end ? at - 1 : at);
  const Span& written = text.words()[word];
  if (text.Length(word) != joined.Length(word)) return is_end ? written.end : written.begin;
  const size_t characters = joined.Number(at) - joined.Number(joined.words()[word].begin);
  return text.Begin(text.Number(written.begin) + characters);
}

}  // namespace

std::vector<Span> PiecePlaces(std::string_view text, std::string_view joined,
                              const std::vector<Span>& pieces) {
  const Ruler here(text);
  const Ruler there(joined);
  const size_t words = here.words().size();
  const bool is_alike = words > 0 && words == there.words().size();
  std::vector<Span> found;
  for (const Span& piece : pieces) {
    const Span kept = Trimmed(joined, piece);
    if (!is_alike) {
      found.push_back(Trimmed(text, {0, text.size()}));
    } else if (kept.begin >= kept.end) {
      found.emplace_back();
    } else {
      found.push_back(
          {PlaceOf(kept.begin, false, there, here), PlaceOf(kept.end, true, there, here)});
    }
  }
  return found;
}

}  // namespace ct2triton
