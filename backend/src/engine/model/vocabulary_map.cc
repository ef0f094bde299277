// SPDX-License-Identifier: Apache-2.0
#include "engine/model/vocabulary_map.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "error.h"

namespace ct2triton {

VocabularyMap::VocabularyMap(std::istream& file, const Vocabulary& vocabulary, int64_t end_id,
                             const std::vector<int64_t>& own)
    : always_(vocabulary.size()) {
  const auto refuse = [](size_t number, const char* what) {
    ThrowInvalid("vmap.txt, line " + std::to_string(number) + ": " + what +
                 "; a line is a source n-gram, one tab, and target tokens between single spaces");
  };
  bool has_always = false;
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) refuse(number, "there is no tab");
    if (line.find('\t', tab + 1) != std::string::npos) refuse(number, "there are several tabs");
    if (tab > 0) {
      fixed_ = false;
      continue;
    }
    if (has_always) refuse(number, "it is the second line of the empty n-gram");
    has_always = true;
    std::istringstream tokens(line.substr(1));
    for (std::string token; std::getline(tokens, token, ' ');) {
      // Unknown names give the unknown token.
      always_[static_cast<size_t>(vocabulary.to_id(token))] = true;
    }
  }
  Number(end_id, own);
}

VocabularyMap::VocabularyMap(const LanguageList& list, size_t number, const Vocabulary& vocabulary,
                             int64_t end_id, const std::vector<int64_t>& own)
    : language_(list.language), list_number_(number), always_(vocabulary.size()) {
  const auto add = [&](int64_t id) {  // by name, as for vmap.txt
    always_[static_cast<size_t>(vocabulary.by_name(id))] = true;
  };
  for (const int64_t id : list.tokens) add(id);
  if (list.prefix_id) add(*list.prefix_id);  // else no prefix would consist of candidates
  Number(end_id, own);
}

void VocabularyMap::Number(int64_t end_id, const std::vector<int64_t>& own) {
  always_[static_cast<size_t>(end_id)] = true;
  size_ = std::count(always_.begin(), always_.end(), true);
  std::vector<bool> candidates = always_;
  for (const int64_t id : own) candidates[static_cast<size_t>(id)] = true;
  for (size_t id = 0; id < candidates.size(); ++id) {
    if (candidates[id]) numbered_.push_back(static_cast<int64_t>(id));
  }
}

bool VocabularyMap::HasAll(const std::vector<int64_t>& ids) const {
  return std::all_of(ids.begin(), ids.end(), [this](int64_t id) { return Has(id); });
}

}  // namespace ct2triton
