// SPDX-License-Identifier: Apache-2.0
#include "engine/row_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const char* tensor, size_t row, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument,
              std::string(tensor) + ", row " + std::to_string(row) + ": " + what);
}

// Nothing is wrong with the row as such, but with the options for a row of its length.
[[noreturn]] void RefuseOptions(size_t row, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "row " + std::to_string(row) + ": " + what);
}

void CheckIds(const Ids& ids, const char* tensor, size_t row, const char* side,
              const ctranslate2::Vocabulary& vocabulary) {
  const auto size = static_cast<int64_t>(vocabulary.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < size) continue;
    Refuse(tensor, row,
           "id " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
               " is not in the " + side + " vocabulary, ids 0 to " + std::to_string(size - 1));
  }
}

// The longest source a client may send, and why.
struct SourceLimit {
  int64_t tokens;
  const char* reason;
};

SourceLimit LongestSource(const DecodingOptions& options, const Weights& weights) {
  SourceLimit limit{std::numeric_limits<int64_t>::max(), ""};
  if (options.max_input_length > 0) limit = {options.max_input_length, "max_input_length"};
  if (weights.source_positions()) {
    const int64_t positions = *weights.source_positions() - weights.added_source_tokens();
    if (positions < limit.tokens) limit = {positions, "the positions of the model"};
  }
  return limit;
}

// Keeps the end of the row, as CTranslate2 does: the end token, and a language id behind it.
void Cut(Ids* source, int64_t tokens, const Weights& weights) {
  const auto is_end = [&](size_t position) {
    return (*source)[position] == weights.source_end_id();
  };
  const size_t size = source->size();
  const auto length = static_cast<size_t>(tokens);
  size_t kept = 0;
  if (is_end(size - 1)) {
    kept = 1;
  } else if (size >= 2 && is_end(size - 2)) {
    kept = 2;
  }
  kept = std::min(kept, length);
  std::copy(source->end() - static_cast<std::ptrdiff_t>(kept), source->end(),
            source->begin() + static_cast<std::ptrdiff_t>(length - kept));
  source->resize(length);
}

int64_t DecodingLimit(const Ids& source, const DecodingOptions& options, const Weights& weights,
                      const EngineOptions& engine) {
  int64_t limit = options.max_decoding_length;
  if (options.max_decoding_length_multiple > 0) {
    const double product =
        options.max_decoding_length_multiple * static_cast<double>(source.size());
    limit = std::max<int64_t>(1, static_cast<int64_t>(std::floor(product)));
  }
  limit = std::min(limit, engine.decoding_length_limit);
  if (weights.target_positions()) limit = std::min(limit, *weights.target_positions());
  return limit;
}

bool OnlySpecial(const Ids& source, const EngineOptions& engine) {
  const auto& special = engine.special_ids;
  return !special.empty() && std::all_of(source.begin(), source.end(), [&](int64_t id) {
    return std::find(special.begin(), special.end(), id) != special.end();
  });
}

bool HasAnyOf(const Ids& row, const Ids& wanted) {
  return wanted.empty() ||
         std::find_first_of(row.begin(), row.end(), wanted.begin(), wanted.end()) != row.end();
}

}  // namespace

bool MapCovers(const RowInput& row, const Weights& weights, const EngineOptions& engine) {
  const VocabularyMap& map = *weights.vocabulary_map();
  // CTranslate2 would add them to the candidates of the whole call.
  if (map.fixed() && !map.HasAll(row.prefix)) return false;
  return HasAnyOf(row.prefix, engine.vmap_prefix_ids) &&
         HasAnyOf(row.source, engine.vmap_source_ids);
}

std::optional<std::string> SearchComplaint(const Search& search, int64_t limit_tokens,
                                           const EngineOptions& engine) {
  const int64_t tokens = search.Tokens(limit_tokens);
  if (tokens <= engine.max_search_tokens) return std::nullopt;
  return "its search may keep " + std::to_string(tokens / limit_tokens) + " hypotheses of " +
         std::to_string(limit_tokens) + " tokens, " + std::to_string(tokens) +
         " in all, more than the model's max_search_tokens " +
         std::to_string(engine.max_search_tokens) +
         "; ask for fewer hypotheses or a lower max_decoding_length";
}

CheckedRow CheckRow(RowInput row, size_t index, const std::shared_ptr<const Search>& search,
                    const Weights& weights, const EngineOptions& engine) {
  const DecodingOptions& options = search->options();
  CheckedRow checked;
  checked.search = search;
  checked.mapped = search->UsesMap();
  CheckIds(row.source, "INPUT_IDS", index, "source", weights.source());
  const SourceLimit longest = LongestSource(options, weights);
  if (static_cast<int64_t>(row.source.size()) > longest.tokens) {
    if (!options.truncate_input || longest.tokens < 1) {
      Refuse("INPUT_IDS", index,
             "it has " + std::to_string(row.source.size()) + " ids, more than the " +
                 std::to_string(longest.tokens) + " that " + longest.reason + " allow(s)");
    }
    Cut(&row.source, longest.tokens, weights);
    checked.cut = true;
  }
  CheckIds(row.prefix, "TARGET_PREFIX", index, "target", weights.target());
  checked.empty = weights.IsEmptySource(row.source) || OnlySpecial(row.source, engine);
  if (!checked.empty && weights.NeedsPrefix() && row.prefix.empty()) {
    Refuse(
        "TARGET_PREFIX", index,
        "it is empty, but this model has no decoder start token: its first id starts the decoder");
  }
  checked.limit_tokens = DecodingLimit(row.source, options, weights, engine);
  if (!checked.empty && options.min_decoding_length > checked.limit_tokens) {
    RefuseOptions(index, "min_decoding_length " + std::to_string(options.min_decoding_length) +
                             " is above this row's limit of " +
                             std::to_string(checked.limit_tokens) + " tokens");
  }
  const auto complaint = SearchComplaint(*search, checked.limit_tokens, engine);
  if (complaint) RefuseOptions(index, *complaint);
  checked.source = std::move(row.source);
  checked.prefix = std::move(row.prefix);
  return checked;
}

}  // namespace ct2triton
