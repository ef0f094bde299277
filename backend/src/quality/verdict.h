// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace ct2triton {

// Possible faults of a translation.
enum class Flag : size_t {
  kRepeats,    // it loops, and its source does not
  kUncovered,  // a part of the source is not translated
  kInvented,   // a part of it has no counterpart in the source
  kValues,     // a number, URL, address or placeholder is missing or new
  kCopied,     // the source was copied
  kLanguage,   // it is in another of the model's languages
  kLength,     // it is too long or too short for its source
  kUnsure,     // its tokens are much less likely than those of known text
};

constexpr size_t kFlags = 8;

// "repeats", ...: the name in responses.
const char* FlagName(Flag flag);

// How doubtful a translation is: for each flag a number from 0 on, which raises the flag above 1,
// or nullopt if it was not computed.
class Verdict {
 public:
  // The verdict on a text that needed no translation: no doubt.
  static Verdict Clear();
  // A number that is not finite becomes the largest doubt.
  void Set(Flag flag, double doubt);
  // Takes the larger doubts of both: the verdict on a text, from those on its sentences.
  void Join(const Verdict& other);

  std::optional<double> doubt(Flag flag) const { return doubts_[static_cast<size_t>(flag)]; }
  bool Raises(Flag flag) const;
  size_t raised() const;  // how many flags
  // Whether it raises fewer flags than another verdict, or as many with a higher quality. Flags
  // that one of the two lacks do not count.
  bool BetterThan(const Verdict& other) const;
  // 0 to 1: 1 without any doubt, below 0.5 exactly where a flag is raised.
  double Quality() const;
  // ["repeats", {"not_computed": ["unsure"]}]: the flags that are raised, and at the end those that
  // were not computed, if any.
  std::string Json() const;

 private:
  std::array<std::optional<double>, kFlags> doubts_;
};

}  // namespace ct2triton
