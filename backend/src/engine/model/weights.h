// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/model_files.h"
#include "engine/device.h"
#include "engine/model/model_file.h"
#include "engine/model/vocabulary.h"
#include "engine/model/vocabulary_lists.h"
#include "engine/model/vocabulary_map.h"
#include "rows/row.h"

namespace ct2triton {

// A variable whose type all weights of the layers have.
inline constexpr const char* kFirstWeight = "decoder/layer_0/self_attention/linear_0/weight";

// The weights and vocabularies of one CTranslate2 model on one device: immutable, shared by every
// worker and every Triton model that names the same files.
class Weights {
 public:
  const Vocabulary& source() const { return *vocabularies_.source; }
  const Vocabulary& target() const { return *vocabularies_.target; }
  const Device& device() const { return device_; }
  const std::string& directory() const { return directory_; }
  const std::string& compute_type() const { return compute_type_; }
  // FilesIdentity, without links, of the files before they were loaded.
  const std::string& identity() const { return identity_; }
  const ModelFileConfig& files() const { return files_; }
  // The model's file. Throws Error(kUnsupported) for a format that only calls support.
  const ModelFile& file() const;
  bool has_file() const { return file_.Has(kFirstWeight); }  // in such a format
  std::set<std::string> names() const;                       // of its variables
  // Weight type of decode loops on a CPU.
  ElementType loop_type() const;

  // Whether rows need a prefix whose first ID starts the decoder (mBART-25).
  bool NeedsPrefix() const { return !files_.decoder_start_token; }
  // Number of tokens that CTranslate2 adds to every source row.
  int64_t added_source_tokens() const { return files_.add_source_bos + files_.add_source_eos; }
  // The longest source and target that the position embeddings allow; none: no such limit.
  std::optional<int64_t> source_positions() const { return source_positions_; }
  std::optional<int64_t> target_positions() const { return target_positions_; }

  // The vocabulary map (vmap.txt) of the directory, if it has one.
  const std::optional<VocabularyMap>& vocabulary_map() const { return map_; }
  // The lists of its target languages (shortlists.json); a directory has one or the other.
  const VocabularyLists& lists() const { return lists_; }
  // All maps and lists.
  std::vector<const VocabularyMap*> AllMaps() const;

  int64_t end_id() const;                     // the end token in the target vocabulary
  int64_t source_end_id() const;              // the end token in the source vocabulary
  std::optional<int64_t> padding_id() const;  // <pad> or <blank> of the target vocabulary
  // Whether there is nothing to translate: no IDs, or only beginning and end tokens, with or
  // without a language ID after the end token. For such rows CTranslate2 returns the prefix.
  bool IsEmptySource(const Ids& source) const;

  Weights(const std::string& directory, const Device& device, const std::string& compute_type);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

 private:
  std::optional<int64_t> Rows(const std::string& variable) const;
  void CheckEmbeddingRows() const;

  const std::string directory_;
  const Device device_;
  const std::string compute_type_;
  const std::string identity_;
  ModelFileConfig files_;
  const ModelFile file_;
  const Vocabularies vocabularies_;
  std::optional<int64_t> source_positions_;
  std::optional<int64_t> target_positions_;
  std::optional<VocabularyMap> map_;
  VocabularyLists lists_;
};

}  // namespace ct2triton
