// SPDX-License-Identifier: Apache-2.0
#include "quality/verdict.h"

#include <algorithm>
#include <cmath>

namespace ct2triton {
namespace {

constexpr double kMostDoubt = 1000;

void Append(const char* name, std::string* list) {
  if (!list->empty()) *list += ",";
  *list += std::string("\"") + name + "\"";
}

}  // namespace

const char* FlagName(Flag flag) {
  static constexpr const char* kNames[kFlags] = {"repeats", "uncovered", "invented", "values",
                                                 "copied",  "language",  "length",   "unsure"};
  return kNames[static_cast<size_t>(flag)];
}

Verdict Verdict::Clear() {
  Verdict verdict;
  verdict.doubts_.fill(0);
  return verdict;
}

void Verdict::Set(Flag flag, double doubt) {
  doubts_[static_cast<size_t>(flag)] =
      std::isfinite(doubt) ? std::clamp(doubt, 0.0, kMostDoubt) : kMostDoubt;
}

void Verdict::Join(const Verdict& other) {
  // An empty optional is less than any number.
  for (size_t i = 0; i < kFlags; ++i) doubts_[i] = std::max(doubts_[i], other.doubts_[i]);
}

bool Verdict::Raises(Flag flag) const { return doubt(flag).value_or(0) > 1; }

size_t Verdict::raised() const {
  size_t raised = 0;
  for (size_t i = 0; i < kFlags; ++i) raised += Raises(Flag{i}) ? 1 : 0;
  return raised;
}

bool Verdict::BetterThan(const Verdict& other) const {
  Verdict one = *this;
  Verdict two = other;
  for (size_t i = 0; i < kFlags; ++i) {
    if (!one.doubts_[i]) two.doubts_[i].reset();
    if (!two.doubts_[i]) one.doubts_[i].reset();
  }
  if (one.raised() != two.raised()) return one.raised() < two.raised();
  return one.Quality() > two.Quality();
}

double Verdict::Quality() const {
  const double most = std::max_element(doubts_.begin(), doubts_.end())->value_or(0);
  return 1 / (1 + most * most);
}

std::string Verdict::Json() const {
  std::string raised;
  std::string missing;
  for (size_t i = 0; i < kFlags; ++i) {
    const Flag flag{i};
    if (Raises(flag)) Append(FlagName(flag), &raised);
    if (!doubts_[i]) Append(FlagName(flag), &missing);
  }
  if (missing.empty()) return "[" + raised + "]";
  return "[" + raised + (raised.empty() ? "" : ",") + "{\"not_computed\":[" + missing + "]}]";
}

}  // namespace ct2triton
