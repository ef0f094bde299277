// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ct2triton {

// The tokens of one side of a model, by id, as CTranslate2 numbers them. Immutable.
class Vocabulary {
 public:
  // `unknown`: the unknown token, which is added where it is missing.
  Vocabulary(std::vector<std::string> tokens, const std::string& unknown);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  size_t size() const { return tokens_.size(); }
  bool contains(const std::string& token) const { return ids_.count(token) != 0; }
  const std::string& to_token(size_t id) const { return *tokens_.at(id); }
  // Of a token that stands twice, the first id; of one that is not there, the unknown token's.
  size_t to_id(const std::string& token) const;

 private:
  void Add(std::string token);

  std::unordered_map<std::string, size_t> ids_;
  std::vector<const std::string*> tokens_;  // the keys of ids_, which stay where they are
  size_t unknown_;
};

struct Vocabularies {
  std::shared_ptr<const Vocabulary> source;
  std::shared_ptr<const Vocabulary> target;  // may be the same
};

// Those of a model directory: shared_vocabulary, or source_vocabulary and target_vocabulary, each
// as .json, an array of strings, or else as .txt, a token a line. Throws Error: kNotFound where one
// is missing, kInvalidArgument for a file of another form, kUnsupported for several sources.
Vocabularies ReadVocabularies(const std::string& directory, const std::string& unknown);

}  // namespace ct2triton
