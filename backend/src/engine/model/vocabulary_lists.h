// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "config/shortlist_file.h"
#include "engine/model/vocabulary_map.h"
#include "rows/id_view.h"

namespace ct2triton {

// The shortlists of a model, at most one per target language (shortlists.json).
class VocabularyLists {
 public:
  VocabularyLists() = default;
  VocabularyLists(VocabularyLists&&) = default;
  VocabularyLists& operator=(VocabularyLists&&) = default;
  // `end_id`, `own`: as for VocabularyMap. Throws Error(kInvalidArgument), with the language, for
  // ids that the vocabularies do not have.
  VocabularyLists(const std::vector<LanguageList>& lists, const Vocabulary& source,
                  const Vocabulary& target, int64_t end_id, const std::vector<int64_t>& own);

  const std::deque<VocabularyMap>& all() const { return lists_; }
  // The list of the row's language, given by the first language ID in its prefix or, if there is
  // none, in its source; null: no list.
  const VocabularyMap* Of(const IdView& source, const IdView& prefix) const;

 private:
  using ById = std::map<int64_t, const VocabularyMap*>;

  static const VocabularyMap* Find(const ById& lists, const IdView& ids);

  std::deque<VocabularyMap> lists_;  // their addresses do not change
  ById by_prefix_, by_source_;
};

}  // namespace ct2triton
