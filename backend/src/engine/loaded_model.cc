// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_model.h"

#include <algorithm>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "engine/calls/call_model.h"
#include "engine/calls/shared_library_model.h"
#include "engine/compute/row_alignment.h"
#include "engine/loop/loop_engine.h"
#include "engine/model/shared_weights.h"
#include "engine/row_check.h"
#include "engine/search/search_options.h"
#include "error.h"

namespace ct2triton {
namespace {

const DecodingOptions& Valid(const DecodingOptions& options, const EngineOptions& engine) {
  ValidateCombination(options, engine);
  return options;
}

// Checks a model's defaults at load, so that they are not refused at the first request.
void RequireFittingSearch(const SearchOptions& search, const Weights& weights,
                          const EngineOptions& engine) {
  if (search.options().max_decoding_length_multiple > 0) return;  // depends on the row
  int64_t limit = search.options().max_decoding_length;
  if (weights.target_positions()) limit = std::min(limit, *weights.target_positions());
  if (const auto complaint = SearchComplaint(search, limit, engine)) {
    ThrowInvalid("a row with the model's defaults: " + *complaint);
  }
}

std::vector<std::string_view> TokensOf(const Ids& ids, const Vocabulary& vocabulary) {
  std::vector<std::string_view> tokens;
  tokens.reserve(ids.size());
  for (const int64_t id : ids) tokens.push_back(vocabulary.to_token(id));
  return tokens;
}

// "auto": the loop on a CPU, calls on a GPU.
bool UseLoop(const EngineOptions& engine, const Device& device) {
  return engine.decoding == "loop" ||
         (engine.decoding == "auto" && device.kind == Device::Kind::kCpu);
}

// One for each vocabulary map, and one for the whole vocabulary.
std::map<const VocabularyMap*, std::shared_ptr<const SearchOptions>> AllSearches(
    const DecodingOptions& options, const Weights& weights) {
  std::map<const VocabularyMap*, std::shared_ptr<const SearchOptions>> searches;
  auto maps = weights.AllMaps();
  maps.push_back(nullptr);
  for (const auto* map : maps) {
    searches[map] = std::make_shared<const SearchOptions>(options, weights, map);
  }
  return searches;
}

[[noreturn]] void RefuseCall(const std::string& reason, const std::string& where = "") {
  ThrowInvalid(where + "this search needs a call of CTranslate2, because " + reason +
               ", and the model's parameter calls is \"refuse\"; change what needs the call, or "
               "let the operator set calls to \"allow\"");
}

std::string MebibytesText(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

LoadedModel::LoadedModel(const std::string& directory, const Device& device,
                         const DecodingOptions& defaults, const EngineOptions& engine,
                         size_t threads)
    : engine_(engine),
      weights_(SharedWeights(directory, device, engine.compute_type)),
      defaults_(Valid(defaults, engine)),
      default_searches_(AllSearches(defaults, *weights_)) {
  RequireFittingSearch(*default_searches_.at(nullptr), *weights_, engine_);
  if (UseLoop(engine_, device)) TryLoop();
  for (const auto& [map, search] : default_searches_) RequireLoopIfNeeded(*search);
  if (engine_.calls == "allow") {
    calls_ = CallModel::Get(weights_, threads);
    if (loop_ == nullptr || device.kind == Device::Kind::kGpu) calls_->Keep();
  }
  ChooseAlignment();
}

void LoadedModel::ChooseAlignment() {
  if (loop_ != nullptr) {
    alignment_ = loop_->ChosenAlignment(engine_);
  } else if (engine_.alignment_layer || !engine_.alignment_heads.empty()) {
    LoopModel::RequireAlignment(engine_, *weights_);
    alignment_ = std::make_shared<const AlignmentHeads>();  // calls cannot use it
  }
}

void LoadedModel::TryLoop() {
  try {
    loop_ = LoopModel::Get(weights_, engine_.proof == "off" ? Proving::kNever : Proving::kOnce);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) throw;  // calls need the files too
    loop_refusal_ = error.what();
    // One config serves machines with and without a GPU that has kernels.
    const bool calls_may = error.code() == ErrorCode::kNoKernels && engine_.calls == "allow";
    if (engine_.decoding == "loop" && !calls_may) {
      throw Error(ErrorCode::kUnsupported,
                  "parameter decoding: \"loop\" cannot run this model: " + loop_refusal_);
    }
  }
}

// Why rows of this search run in calls; empty: they run in loops.
std::string LoadedModel::WhyCalls(const SearchOptions& search) const {
  if (loop_ != nullptr) return loop_->WhyNot(search).value_or("");
  if (!loop_refusal_.empty()) return loop_refusal_;
  if (engine_.decoding == "calls") return "the model's decoding is \"calls\"";
  return "the model runs on " + weights_->device().Name();
}

void LoadedModel::RequireLoopIfNeeded(const SearchOptions& search) const {
  const DecodingOptions& options = search.options();
  if (engine_.calls == "allow") RequireDrawsOfCalls(options, *weights_);
  std::string what, least;
  if (engine_.calls == "refuse") {
    const std::string reason = WhyCalls(search);
    if (!reason.empty()) RefuseCall(reason);
  } else if (search.Seeded()) {
    what = "sampling_seed " + std::to_string(options.sampling_seed);
    least = "sampling_seed out, or give -1";
  } else if (options.draft_bias > 0) {
    what = "draft_bias " + Show(options.draft_bias);
    least = "draft_bias out, or give 0";
  }
  if (what.empty()) return;
  const std::string reason = WhyCalls(search);
  if (reason.empty()) return;
  ThrowInvalid(what + " needs a decode loop, and calls of CTranslate2 run this search, because " +
               reason + "; leave " + least);
}

const Device& LoadedModel::device() const { return weights_->device(); }

std::vector<CheckedRow> LoadedModel::Check(const std::vector<RowInput>& rows,
                                           const DecodingOptions* options,
                                           const RowNames& names) const {
  const bool defaults = options == nullptr || *options == defaults_;
  if (!defaults) {
    ValidateCombination(*options, engine_);
  }
  Searches of_request;
  const auto search_for = [&](const VocabularyMap* map) {
    if (defaults) return default_searches_.at(map);
    auto& search = of_request[map];
    if (!search) {
      search = std::make_shared<const SearchOptions>(*options, *weights_, map);
      RequireLoopIfNeeded(*search);
    }
    return search;
  };
  if (rows.empty()) search_for(nullptr);  // its options are checked anyway
  std::vector<CheckedRow> checked;
  checked.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto search = search_for(MapFor(rows[i], *weights_, engine_));
    checked.push_back(CheckRow(rows[i], i, names, search, *weights_, engine_));
    CheckedRow& row = checked.back();
    if (search->LoopAligns()) row.alignment = alignment_;
    if (!row.empty) PlanRun(&row, names.Row(i));
  }
  return checked;
}

void LoadedModel::PlanRun(CheckedRow* row, const std::string& name) const {
  if (loop_ == nullptr) return;
  if (const auto reason = loop_->WhyNot(*row)) {
    if (calls_ == nullptr) RefuseCall(*reason, name + ": ");
    return;
  }
  row->in_loop = true;
  // Calls would replace unknown tokens by the attention of the model's own heads.
  row->only_in_loop |= row->alignment && row->search->options().replace_unknowns;
  row->cache_bytes = loop_->CacheBytes(*row);
  row->source_cache_bytes = loop_->SourceCacheBytes(*row);
}

int64_t LoadedModel::pad_id() const {
  if (engine_.pad_id) return *engine_.pad_id;
  return weights_->padding_id().value_or(weights_->end_id());
}

std::optional<int64_t> LoadedModel::padding_to_strip() const {
  const int64_t id = pad_id();
  return id == weights_->end_id() ? std::nullopt : std::optional(id);
}

int64_t LoadedModel::longest_source() const { return LongestSourceTokens(defaults_, *weights_); }

bool LoadedModel::has_vocabulary_map() const { return !weights_->AllMaps().empty(); }

int64_t LoadedModel::unknown_source_id() const {
  return weights_->source().to_id(weights_->files().unk_token);
}

std::vector<std::string_view> LoadedModel::SourceTokens(const Ids& ids) const {
  return TokensOf(ids, weights_->source());
}

std::vector<std::string_view> LoadedModel::TargetTokens(const Ids& ids) const {
  return TokensOf(ids, weights_->target());
}

int64_t LoadedModel::unknown_id() const {
  return weights_->target().to_id(weights_->files().unk_token);
}

size_t LoadedModel::weight_bytes() const {
  return (loop_ ? loop_->packed_bytes() : 0) + call_bytes();
}

size_t LoadedModel::call_bytes() const { return calls_ ? calls_->bytes() : 0; }

uint64_t LoadedModel::call_loads() const { return calls_ ? calls_->loads() : 0; }

int64_t LoadedModel::vocabulary_size() const {
  return static_cast<int64_t>(std::max(weights_->source().size(), weights_->target().size()));
}

std::string LoadedModel::Description() const {
  const CallLibrary* library = CallLibrary::Opened();
  const std::string version = library ? "CTranslate2 " + library->Version() + " on " : "";
  return version + weights_->device().Name() + ", compute_type \"" + engine_.compute_type + "\" (" +
         WeightWidth() + " weights)";
}

// "8-bit", "16-bit" or "32-bit", with compute_type "auto" resolved.
std::string LoadedModel::WeightWidth() const {
  size_t bytes = 0;
  if (loop_ != nullptr) {
    bytes = ElementBytes(loop_->weight_type());
  } else if (weights_->device().kind == Device::Kind::kGpu) {
    bytes = LibraryOf(*weights_)->ElementSize(kFirstWeight);
  } else if (weights_->has_file()) {
    bytes = ElementBytes(weights_->loop_type());
  }
  return bytes == 0 ? "unknown" : std::to_string(8 * bytes) + "-bit";
}

std::string LoadedModel::MapDescription() const {
  std::string text;
  bool used = false;
  for (const VocabularyMap* map : weights_->AllMaps()) {
    text += map->list_number() == 0 ? ", vocabulary map of " : ", vocabulary list for ";
    if (map->list_number() != 0) text += map->language() + " of ";
    text += std::to_string(map->size()) + " of " + std::to_string(weights_->target().size()) +
            " tokens" + (map->fixed() ? "" : " and more by source");
    if (loop_ && map->list_number() != 0) text += " (" + MebibytesText(loop_->MapBytes(*map)) + ")";
    used = used || default_searches_.at(map)->map() != nullptr;
  }
  return text.empty() || used ? text : text + ", used on request (use_vmap)";
}

}  // namespace ct2triton
