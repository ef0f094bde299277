// SPDX-License-Identifier: Apache-2.0
#include "engine/model/vocabulary_lists.h"

#include <optional>
#include <string>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

void RequireKnown(const LanguageList& list, const char* member, int64_t id, const char* side,
                  const Vocabulary& vocabulary) {
  const auto size = static_cast<int64_t>(vocabulary.size());
  if (id >= 0 && id < size) return;
  ThrowInvalid(std::string(kShortlistFile) + ": the list of " + Quote(list.language) + " has " +
               std::to_string(id) + " in " + member + ", which is not in the " + side +
               " vocabulary, ids 0 to " + std::to_string(size - 1) +
               "; the files do not belong together, prepare the model again");
}

}  // namespace

VocabularyLists::VocabularyLists(const std::vector<LanguageList>& lists, const Vocabulary& source,
                                 const Vocabulary& target, int64_t end_id,
                                 const std::vector<int64_t>& own) {
  for (const LanguageList& list : lists) {
    for (const int64_t id : list.tokens) RequireKnown(list, "tokens", id, "target", target);
    if (list.prefix_id) RequireKnown(list, "prefix_id", *list.prefix_id, "target", target);
    if (list.source_id) RequireKnown(list, "source_id", *list.source_id, "source", source);
    const VocabularyMap& added = lists_.emplace_back(list, lists_.size() + 1, target, end_id, own);
    if (list.prefix_id) by_prefix_[*list.prefix_id] = &added;
    if (list.source_id) by_source_[*list.source_id] = &added;
  }
}

const VocabularyMap* VocabularyLists::Find(const ById& lists, const IdView& ids) {
  if (lists.empty()) return nullptr;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = lists.find(ids[i]);
    if (found != lists.end()) return found->second;
  }
  return nullptr;
}

const VocabularyMap* VocabularyLists::Of(const IdView& source, const IdView& prefix) const {
  const VocabularyMap* named = Find(by_prefix_, prefix);
  return named != nullptr ? named : Find(by_source_, source);
}

}  // namespace ct2triton
