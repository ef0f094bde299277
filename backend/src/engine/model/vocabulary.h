// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ct2triton {

// The tokens of one side of a model by ID, numbered as in CTranslate2. Immutable.
class Vocabulary {
 public:
  // `unknown`: the unknown token, which is added if it is missing.
  Vocabulary(std::vector<std::string> tokens, const std::string& unknown);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  size_t size() const { return tokens_.size(); }
  bool contains(const std::string& token) const { return ids_.count(token) != 0; }
  const std::string& to_token(int64_t id) const { return *tokens_.at(static_cast<size_t>(id)); }
  // The first ID of a token that occurs twice; the unknown token's ID for one that does not occur.
  int64_t to_id(const std::string& token) const;
  // An ID as CTranslate2 derives it from its token.
  int64_t by_name(int64_t id) const { return to_id(to_token(id)); }

 private:
  void Add(std::string token);

  std::unordered_map<std::string, int64_t> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, whose addresses do not change
  int64_t unknown_;
};

struct Vocabularies {
  std::shared_ptr<const Vocabulary> source;
  std::shared_ptr<const Vocabulary> target;  // may be the same
};

// Reads those of a model directory: shared_vocabulary, or source_vocabulary and target_vocabulary,
// each as .json (an array of strings) or, if there is none, as .txt (one token per line). Throws
// Error: kNotFound if one is missing, kInvalidArgument for another form, kUnsupported for several
// sources.
Vocabularies ReadVocabularies(const std::string& directory, const std::string& unknown);

}  // namespace ct2triton
