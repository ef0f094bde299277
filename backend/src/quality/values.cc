// SPDX-License-Identifier: Apache-2.0
#include "quality/values.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "quality/names.h"

namespace ct2triton {
namespace {

constexpr size_t kMostDigits = 18;  // of a number that is compared by its size
constexpr int64_t kHalfDay_h = 12;

using Found = std::map<std::string, Number>;

Found Missing(const Numbers& here, const Numbers& there) {
  Found missing;
  for (const auto& [digits, number] : here.found) {
    if (!Stands(digits, number, there)) missing.emplace(digits, number);
  }
  return missing;
}

size_t Missing(const std::set<std::string>& here, const std::set<std::string>& there) {
  std::set<std::string> missing;
  std::set_difference(here.begin(), here.end(), there.begin(), there.end(),
                      std::inserter(missing, missing.end()));
  return missing.size();
}

// Removes pairs of hours from both sets if they are one hour on a 12-hour and a 24-hour clock.
void PairHours(Found* missing, Found* added) {
  for (auto one = missing->begin(); one != missing->end();) {
    auto other = added->end();
    if (one->first.size() <= 2) {
      const int64_t hour = std::stoll(one->first);
      const int64_t later = hour <= kHalfDay_h ? hour + kHalfDay_h : hour - kHalfDay_h;
      other = added->find(std::to_string(later));
      if (other == added->end() && hour == kHalfDay_h) other = added->find("0");
    }
    if (other != added->end() && (one->second.hour || other->second.hour)) {
      added->erase(other);
      one = missing->erase(one);
    } else {
      ++one;
    }
  }
}

size_t CountFrom(const Found& numbers, int64_t least) {
  return static_cast<size_t>(std::count_if(numbers.begin(), numbers.end(), [&](const auto& one) {
    return one.first.size() > kMostDigits || std::stoll(one.first) >= least;
  }));
}

}  // namespace

Values FindValues(std::string_view text) {
  Values values;
  values.rest = text;
  for (const Span& place : FindNames(text)) {
    std::string name(text.substr(place.begin, place.end - place.begin));
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    values.names.insert(std::move(name));
    std::fill(values.rest.begin() + static_cast<std::ptrdiff_t>(place.begin),
              values.rest.begin() + static_cast<std::ptrdiff_t>(place.end), '|');
  }
  values.numbers = FindNumbers(values.rest);
  return values;
}

double ValuesDoubt(const Values& source, const Values& target, int64_t least_number) {
  Found missing = Missing(source.numbers, target.numbers);
  Found added = Missing(target.numbers, source.numbers);
  PairHours(&missing, &added);
  const bool changed = !missing.empty() && !added.empty();
  const int64_t least = changed ? 0 : least_number;
  const size_t wrong = CountFrom(missing, least) + CountFrom(added, least) +
                       Missing(source.names, target.names) + Missing(target.names, source.names);
  return wrong == 0 ? 0 : 1 + static_cast<double>(wrong);
}

}  // namespace ct2triton
