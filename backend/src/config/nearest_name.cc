// SPDX-License-Identifier: Apache-2.0
#include "config/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace ct2triton {
namespace {

// A longer name is not a typing error. The limit bounds the work that a request can cause.
constexpr std::size_t kLongestName = 64;

std::string Folded(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

// Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours.
std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

bool HasWords(const std::string& name, const std::string& words) {
  return ("_" + name + "_").find("_" + words + "_") != std::string::npos;
}

}  // namespace

std::optional<std::string_view> NearestName(std::string_view name,
                                            const std::vector<std::string_view>& known) {
  if (name.empty() || name.size() > kLongestName) return std::nullopt;
  const std::string given = Folded(name);
  std::optional<std::string_view> nearest;
  std::size_t least = given.size() / 3 + 1;  // distances from this one on are too large
  std::vector<std::string_view> related;
  for (const auto candidate : known) {
    const std::string folded = Folded(candidate);
    const std::size_t distance = EditDistance(given, folded);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
    if (HasWords(folded, given) || HasWords(given, folded)) related.push_back(candidate);
  }
  if (!nearest && related.size() == 1) nearest = related.front();
  return nearest;
}

}  // namespace ct2triton
