// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ct2triton {

// The settings that the backend reads from the config.json of a CTranslate2 model directory.
struct ModelFileConfig {
  std::string unk_token = "<unk>";
  std::string bos_token = "<s>";
  std::string eos_token = "</s>";
  bool add_source_bos = false;  // CTranslate2 adds the token itself
  bool add_source_eos = false;
  // The token every target starts with. If there is none, the first ID of the target prefix is
  // used.
  std::optional<std::string> decoder_start_token = "<s>";
  std::optional<float> layer_norm_epsilon;  // of all norms; nullopt: each kind's default
};

// Throws Error(kInvalidArgument) for text that is not a JSON object or has a member of a wrong
// type.
ModelFileConfig ParseModelFileConfig(std::string_view json);

// The tokens of a vocabulary file of such a directory. Throws Error(kInvalidArgument), with the
// name of the file, for text that is not a JSON array of strings.
std::vector<std::string> ParseVocabulary(std::string_view json, const std::string& file);

// The files that the manifest of a prepared model (ct2_model.json) lists: SHA-256 in hexadecimal by
// path, relative to the model's folder. Throws Error(kInvalidArgument) if it lists none.
std::map<std::string, std::string> ParseManifestFiles(std::string_view json);

// The proofs (engine/loop/proof.h) in a manifest, by ID. The value is the reason if decode loops
// were refused, else empty. Returns nullopt if the manifest cannot be read.
std::map<std::string, std::string> ParseManifestProofs(std::string_view json);

// For the log: "facebook/nllb-200-distilled-600M, commit 1234abcd, int8", from the manifest of a
// prepared model. Throws Error(kInvalidArgument) if it is missing there.
std::string DescribeOrigin(std::string_view json);

// The token IDs that name the languages of a row, with the code of each language. The target
// language is named by the first ID of TARGET_PREFIX, or else by an ID of the source.
struct TargetIds {
  std::string only;  // if the model has one target language, which no ID names
  std::map<int64_t, std::string> in_prefix;
  std::map<int64_t, std::string> in_source;

  std::string only_source;  // if the model has one source language, which no ID names
  std::map<int64_t, std::string> of_source;

  bool empty() const { return only.empty() && in_prefix.empty() && in_source.empty(); }
  // The code of a row's target language; empty if no ID names one.
  const std::string& Of(const std::vector<int64_t>& source,
                        const std::vector<int64_t>& prefix) const;
  // The code of a row's source language, whose ID is at the beginning or the end of the source.
  const std::string& SourceOf(const std::vector<int64_t>& source) const;
};

// Reads tokenizer/languages.json of a prepared model. Throws Error(kInvalidArgument).
TargetIds ParseTargetIds(std::string_view json);

}  // namespace ct2triton
