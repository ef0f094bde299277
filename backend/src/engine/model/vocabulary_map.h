// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "config/shortlist_file.h"
#include "engine/model/vocabulary.h"

namespace ct2triton {

// The candidates of a decoder, instead of the whole vocabulary.
//
// Of vmap.txt: a line is "source n-gram<TAB>target tokens", and the tokens of the empty n-gram are
// candidates for every source. CTranslate2 reads the file itself without exposing it; this class
// reads it by the same rules. Or of a language's shortlist, which CTranslate2 does not support.
class VocabularyMap {
 public:
  // `own`: tokens that CTranslate2 always makes candidates: unknown, begin, end and start token.
  // Throws Error(kInvalidArgument), with the line, for input that CTranslate2 would misread.
  VocabularyMap(std::istream& file, const Vocabulary& vocabulary, int64_t end_id,
                const std::vector<int64_t>& own);
  // The list has IDs of the vocabulary. `number`: of the list, from 1.
  VocabularyMap(const LanguageList& list, size_t number, const Vocabulary& vocabulary,
                int64_t end_id, const std::vector<int64_t>& own);

  // Empty for vmap.txt.
  const std::string& language() const { return language_; }
  // Of a language's list, from 1; 0: of vmap.txt, which calls of CTranslate2 use themselves.
  size_t list_number() const { return list_number_; }
  // Whether the candidates are the same for every source, so that answers do not depend on the
  // batch.
  bool fixed() const { return fixed_; }
  // Whether the token is a candidate for every source.
  bool Has(int64_t id) const {
    return id >= 0 && id < static_cast<int64_t>(always_.size()) && always_[static_cast<size_t>(id)];
  }
  bool HasAll(const std::vector<int64_t>& ids) const;
  int64_t size() const { return size_; }  // candidates for every source
  // Candidate IDs in the order in which CTranslate2's step callback numbers them; only for fixed
  // candidates and a prefix of candidates.
  const std::vector<int64_t>& numbered() const { return numbered_; }
  int64_t Id(size_t candidate) const { return numbered_.at(candidate); }

 private:
  void Number(int64_t end_id, const std::vector<int64_t>& own);

  std::string language_;
  size_t list_number_ = 0;
  std::vector<bool> always_;       // by id
  std::vector<int64_t> numbered_;  // ascending, as CTranslate2 numbers them
  int64_t size_ = 0;
  bool fixed_ = true;
};

}  // namespace ct2triton
