// SPDX-License-Identifier: Apache-2.0
#include "config/model_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {

const std::string& TargetIds::Of(const std::vector<int64_t>& source,
                                 const std::vector<int64_t>& prefix) const {
  if (!prefix.empty()) {
    const auto known = in_prefix.find(prefix.front());
    if (known != in_prefix.end()) return known->second;
  }
  // After the ID of the source language, if the model has one.
  const size_t places = in_source.empty() ? 0 : std::min<size_t>(2, source.size());
  for (size_t i = 0; i < places; ++i) {
    const auto known = in_source.find(source[i]);
    if (known != in_source.end()) return known->second;
  }
  return only;
}

const std::string& TargetIds::SourceOf(const std::vector<int64_t>& source) const {
  constexpr size_t kPlaces = 2;  // at each end: the end token may follow the language
  for (size_t i = 0; i < source.size() && !of_source.empty(); ++i) {
    if (i == kPlaces) i = std::max(i, source.size() - kPlaces);
    const auto known = of_source.find(source[i]);
    if (known != of_source.end()) return known->second;
  }
  return only_source;
}

ModelFileConfig ParseModelFileConfig(std::string_view json) {
  ModelFileConfig config;
  try {
    const auto root = nlohmann::json::parse(json);
    config.unk_token = root.value("unk_token", config.unk_token);
    config.bos_token = root.value("bos_token", config.bos_token);
    config.eos_token = root.value("eos_token", config.eos_token);
    config.add_source_bos = root.value("add_source_bos", config.add_source_bos);
    config.add_source_eos = root.value("add_source_eos", config.add_source_eos);
    const auto start = root.find("decoder_start_token");
    if (start != root.end()) {
      config.decoder_start_token =
          start->is_null() ? std::nullopt : std::optional(start->get<std::string>());
    }
    const auto epsilon = root.find("layer_norm_epsilon");
    if (epsilon != root.end() && !epsilon->is_null()) {
      config.layer_norm_epsilon = epsilon->get<float>();
    }
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("config.json of the CTranslate2 model cannot be read: " +
                 Quote(error.what(), 200));
  }
  return config;
}

std::vector<std::string> ParseVocabulary(std::string_view json, const std::string& file) {
  try {
    return nlohmann::json::parse(json).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid(file + " is not a JSON array of strings: " + Quote(error.what(), 200));
  }
}

std::map<std::string, std::string> ParseManifestFiles(std::string_view json) {
  std::map<std::string, std::string> files;
  try {
    files = nlohmann::json::parse(json).at("files").get<decltype(files)>();
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("ct2_model.json cannot be read: " + Quote(error.what(), 200));
  }
  if (!files.empty()) return files;
  ThrowInvalid("ct2_model.json lists no files");
}

std::map<std::string, std::string> ParseManifestProofs(std::string_view json) {
  const auto root = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  std::map<std::string, std::string> proofs;
  if (!root.is_object()) return proofs;
  const auto found = root.find("loop_proofs");
  if (found == root.end() || !found->is_object()) return proofs;
  for (const auto& proof : *found) {
    if (!proof.is_object() || !proof.value("id", nlohmann::json()).is_string()) continue;
    const auto refused = proof.find("refused");
    std::string why;
    if (refused != proof.end()) why = refused->is_string() ? refused->get<std::string>() : "?";
    proofs[proof["id"].get<std::string>()] = why;
  }
  return proofs;
}

std::string DescribeOrigin(std::string_view json) {
  try {
    const auto root = nlohmann::json::parse(json);
    const auto& source = root.at("source");
    std::string text = Quote(source.at("id").get<std::string>(), 200);
    for (const char* name : {"revision", "commit"}) {
      const auto& value = source.at(name);
      if (!value.is_null())
        text += std::string(", ") + name + " " + Quote(value.get<std::string>(), 80);
    }
    return text + ", " + root.at("conversion").at("quantization").get<std::string>();
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("ct2_model.json cannot be read: " + Quote(error.what(), 200));
  }
}

TargetIds ParseTargetIds(std::string_view json) {
  TargetIds targets;
  size_t count = 0;
  size_t sources = 0;
  try {
    const auto root = nlohmann::json::parse(json);
    for (const auto& language : root.at("languages")) {
      const auto code = language.at("code").get<std::string>();
      const auto prefix = language.at("target_prefix_ids").get<std::vector<int64_t>>();
      const auto source = language.at("target_source_ids").get<std::vector<int64_t>>();
      if (language.value("source", false)) {
        const auto ids = language.value("source_ids", std::vector<int64_t>());
        targets.only_source = ++sources == 1 ? code : "";
        if (ids.size() == 1) targets.of_source.emplace(ids.front(), code);
      }
      if (!language.at("target").get<bool>()) continue;
      targets.only = ++count == 1 ? code : "";
      if (!prefix.empty()) targets.in_prefix.emplace(prefix.front(), code);
      if (prefix.empty() && source.size() == 1) targets.in_source.emplace(source.front(), code);
    }
  } catch (const nlohmann::json::exception& error) {
    ThrowInvalid("languages.json cannot be read: " + Quote(error.what(), 200));
  }
  if (!targets.in_prefix.empty() || !targets.in_source.empty()) targets.only.clear();
  return targets;
}

}  // namespace ct2triton
