// SPDX-License-Identifier: Apache-2.0
#include "engine/row_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "config/tensor_table.h"
#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& where, const std::string& what) {
  ThrowInvalid(where + ": " + what);
}

enum class Part { kSource, kPrefix, kDraft };

std::string NameOf(Part part, const RowNames& names, size_t row) {
  if (part == Part::kDraft) return names.Draft(row);
  return part == Part::kSource ? names.Source(row) : names.Prefix(row);
}

void CheckIds(const IdView& ids, Part part, const RowNames& names, size_t row,
              const Vocabulary& vocabulary) {
  const auto size = static_cast<int64_t>(vocabulary.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < size) continue;
    const bool source = part == Part::kSource;
    Refuse(NameOf(part, names, row), "id " + std::to_string(ids[i]) + " at position " +
                                         std::to_string(i) + " is not in the " +
                                         (source ? "source" : "target") + " vocabulary, ids 0 to " +
                                         std::to_string(size - 1));
  }
}

// The longest source a client may send, and what allows no more: a subject and its verb.
struct SourceLimit {
  int64_t tokens;
  const char* reason;
};

SourceLimit LongestSource(const DecodingOptions& options, const Weights& weights) {
  SourceLimit limit{std::numeric_limits<int64_t>::max(), ""};
  if (options.max_input_length > 0) limit = {options.max_input_length, "max_input_length allows"};
  if (weights.source_positions()) {
    const int64_t positions = *weights.source_positions() - weights.added_source_tokens();
    if (positions < limit.tokens) limit = {positions, "the positions of the model allow"};
  }
  return limit;
}

// The row cut to `tokens`. As in CTranslate2, its end is kept: the end token, and a language ID
// after it.
Ids Cut(const IdView& source, int64_t tokens, const Weights& weights) {
  const auto is_end = [&](size_t position) { return source[position] == weights.source_end_id(); };
  const size_t size = source.size();
  const auto length = static_cast<size_t>(tokens);
  size_t kept = 0;
  if (is_end(size - 1)) {
    kept = 1;
  } else if (size >= 2 && is_end(size - 2)) {
    kept = 2;
  }
  kept = std::min(kept, length);
  Ids cut = source.Slice(0, length - kept).Copy();
  for (size_t i = size - kept; i < size; ++i) cut.push_back(source[i]);
  return cut;
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

bool HasAnyOf(const IdView& row, const Ids& wanted) {
  if (wanted.empty()) return true;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::find(wanted.begin(), wanted.end(), row[i]) != wanted.end()) return true;
  }
  return false;
}

bool HasAll(const VocabularyMap& map, const IdView& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!map.Has(ids[i])) return false;
  }
  return true;
}

size_t ForcedIds(const CheckedRow& row, const Weights& weights) {
  const size_t starting = weights.NeedsPrefix() ? 1 : 0;
  return row.prefix.size() - std::min(row.prefix.size(), starting);
}

// Forced tokens beyond the limit are never generated; one more ID shows that there are more.
Ids PrefixWithinLimit(const IdView& prefix, int64_t limit_tokens, const Weights& weights) {
  const size_t most = static_cast<size_t>(limit_tokens) + 1 + (weights.NeedsPrefix() ? 1 : 0);
  return prefix.Slice(0, std::min(prefix.size(), most)).Copy();
}

// The options that decide whether a search is greedy.
std::string SearchText(const DecodingOptions& options) {
  std::string text = "beam_size " + std::to_string(options.beam_size) + ", num_hypotheses " +
                     std::to_string(options.num_hypotheses) + ", sampling_topk " +
                     std::to_string(options.sampling_topk);
  if (options.prefix_bias_beta > 0) text += ", prefix_bias_beta above 0";
  if (options.return_alternatives) text += ", return_alternatives";
  return text;
}

// Later tokens of the draft are never tried.
Ids DraftWithinLimit(const RowInput& row, size_t index, const RowNames& names, int64_t limit_tokens,
                     const SearchOptions& search, const Weights& weights) {
  CheckIds(row.draft, Part::kDraft, names, index, weights.target());
  if (row.draft.empty()) return {};
  const bool greedy = search.EndsRowsAlone() && !search.Draws();
  if (!greedy && search.options().draft_bias == 0) {
    Refuse(NameOf(Part::kDraft, names, index),
           "a draft is for a greedy search of one hypothesis; this one has " +
               SearchText(search.options()) +
               ". Send no draft, or beam_size, num_hypotheses and sampling_topk 1 with the others "
               "off, or with beams a draft_bias above 0");
  }
  return row.draft.Slice(0, std::min(row.draft.size(), static_cast<size_t>(limit_tokens))).Copy();
}

void PlanCalls(CheckedRow* row, const Weights& weights) {
  const SearchOptions& search = *row->search;
  const bool cpu = weights.device().kind == Device::Kind::kCpu;
  row->copies = search.Copies();
  row->search_tokens = search.Tokens(row->limit_tokens);
  row->may_overrun = search.MayOverrun();
  row->repeatable = search.Repeatable();
  row->only_in_loop = search.Seeded() || (search.options().draft_bias > 0 && !row->draft.empty());
  row->key.options = search.call_options();
  row->key.list = search.map() != nullptr ? search.map()->list_number() : 0;
  row->key.alone = search.MixesAttention() && cpu;
  if (search.PaddingMatters()) row->key.source_tokens = static_cast<int64_t>(row->source.size());
  if (!search.EndsRowsAlone() && !search.MayOverrun()) row->key.limit_tokens = row->limit_tokens;
  row->key.forced_tokens = search.ForcedTokensMatter() && row->forced_ids > 0;
}

}  // namespace

int64_t LongestSourceTokens(const DecodingOptions& options, const Weights& weights) {
  return LongestSource(options, weights).tokens;
}

const VocabularyMap* MapFor(const RowInput& row, const Weights& weights,
                            const EngineOptions& engine) {
  const VocabularyMap* map = weights.lists().Of(row.source, row.prefix);
  if (weights.vocabulary_map() && HasAnyOf(row.prefix, engine.vmap_prefix_ids) &&
      HasAnyOf(row.source, engine.vmap_source_ids)) {
    map = &*weights.vocabulary_map();
  }
  // CTranslate2 would add other tokens to the candidates of the whole call.
  return map != nullptr && map->fixed() && !HasAll(*map, row.prefix) ? nullptr : map;
}

std::optional<std::string> SearchComplaint(const SearchOptions& search, int64_t limit_tokens,
                                           const EngineOptions& engine) {
  const int64_t tokens = search.Tokens(limit_tokens);
  if (tokens <= engine.max_search_tokens) return std::nullopt;
  return "its search may keep " + std::to_string(tokens / limit_tokens) + " hypotheses of " +
         std::to_string(limit_tokens) + " tokens, " + std::to_string(tokens) +
         " in all, more than the model's max_search_tokens " +
         std::to_string(engine.max_search_tokens) +
         "; ask for fewer hypotheses or a lower max_decoding_length";
}

CheckedRow CheckRow(const RowInput& row, size_t index, const RowNames& names,
                    const std::shared_ptr<const SearchOptions>& search, const Weights& weights,
                    const EngineOptions& engine) {
  const DecodingOptions& options = search->options();
  CheckedRow checked;
  checked.search = search;
  checked.options = {search, &options};
  checked.mapped = search->map() != nullptr;
  const SourceLimit longest = LongestSource(options, weights);
  const bool too_long = static_cast<int64_t>(row.source.size()) > longest.tokens;
  if (too_long && (!options.truncate_input || longest.tokens < 1)) {
    Refuse(names.Source(index), "it has " + std::to_string(row.source.size()) +
                                    " ids, more than the " + std::to_string(longest.tokens) +
                                    " that " + longest.reason);
  }
  CheckIds(row.source, Part::kSource, names, index, weights.source());
  if (too_long) {
    checked.source = Cut(row.source, longest.tokens, weights);
    checked.cut = true;
  } else {
    checked.source = row.source.Copy();
  }
  CheckIds(row.prefix, Part::kPrefix, names, index, weights.target());
  checked.empty = weights.IsEmptySource(checked.source) || OnlySpecial(checked.source, engine);
  if (!checked.empty && weights.NeedsPrefix() && row.prefix.empty()) {
    Refuse(
        names.Prefix(index),
        "it is empty, but this model has no decoder start token: its first id starts the decoder");
  }
  checked.limit_tokens = DecodingLimit(checked.source, options, weights, engine);
  if (!checked.empty && options.min_decoding_length > checked.limit_tokens) {
    Refuse(names.Row(index), "min_decoding_length " + std::to_string(options.min_decoding_length) +
                                 " is above this row's limit of " +
                                 std::to_string(checked.limit_tokens) + " tokens");
  }
  const auto complaint = SearchComplaint(*search, checked.limit_tokens, engine);
  if (complaint) Refuse(names.Row(index), *complaint);
  checked.prefix = PrefixWithinLimit(row.prefix, checked.limit_tokens, weights);
  checked.forced_ids = ForcedIds(checked, weights);
  checked.draft = DraftWithinLimit(row, index, names, checked.limit_tokens, *search, weights);
  PlanCalls(&checked, weights);
  return checked;
}

}  // namespace ct2triton
