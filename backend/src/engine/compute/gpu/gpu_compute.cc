// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_compute.h"

#include <algorithm>
#include <set>

#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr size_t kMostLists = 8;  // of a pass

bool SameDraw(const std::optional<Draw>& a, const std::optional<Draw>& b) {
  return a.has_value() == b.has_value();  // of one row: the step is the position
}

// Without the preceding tokens, which the device keeps itself.
bool SameRules(const OutputRules& a, const OutputRules& b) {
  return a.forbidden == b.forbidden && a.penalty == b.penalty && SameDraw(a.draw, b.draw) &&
         a.favored == b.favored && a.bias == b.bias && a.candidates == b.candidates &&
         a.of_best == b.of_best;
}

int IdOf(const VocabularyMap* map, int64_t output) {
  return static_cast<int>(map == nullptr ? output : map->Id(static_cast<size_t>(output)));
}

int32_t OutputOf(const VocabularyMap* map, int id) {
  if (map == nullptr) return id;
  const auto& known = map->numbered();
  return static_cast<int32_t>(std::lower_bound(known.begin(), known.end(), id) - known.begin());
}

bool IsEnd(const OutputRules& rules, int64_t output) {
  return std::find(rules.ends->begin(), rules.ends->end(), output) != rules.ends->end();
}

// Adds the ends, which the device then detects itself.
void AddEnds(const OutputRules& rules, TokenRules* to) {
  to->min_length = rules.min_length;
  for (const int32_t output : *rules.ends) {
    if (output >= 0) to->ends.push_back(IdOf(rules.map, output));
  }
}

}  // namespace

GpuSource::~GpuSource() {
  const std::lock_guard<std::mutex> lock(engine_->mutex);
  engine_->decoder.ForgetEncoding(name_);
}

GpuRowCache::GpuRowCache(std::shared_ptr<GpuEngine> engine, CacheBlock block, size_t limit)
    : block_(std::move(block)),
      engine_(std::move(engine)),
      pages_(engine_->decoder.NewCache()),
      limit_(limit) {
  const std::lock_guard<std::mutex> lock(engine_->mutex);
  engine_->caches.insert(this);
}

GpuRowCache::~GpuRowCache() {
  const std::lock_guard<std::mutex> lock(engine_->mutex);
  engine_->caches.erase(this);
  Forget();
  pages_->Clear();
}

void GpuRowCache::Forget() noexcept {
  for (const int sequence : sequences_) engine_->decoder.Forget(sequence);
  sequences_.clear();
  coming.reset();
}

// If no sequence is free, rows outside this step release theirs: the host can restore their state.
int GpuRowCache::NextSequence(const GpuSource& source, size_t prompt) {
  GpuDecoder& decoder = engine_->decoder;
  if (used_ == sequences_.size()) {
    sequences_.reserve(used_ + 1);
    if (decoder.free_sequences() == 0) {
      for (GpuRowCache* other : engine_->caches) {
        if (other->used_ == 0 && other != this) other->Forget();
      }
    }
    sequences_.push_back(decoder.Join(source.name(), prompt, pages_));
  }
  return sequences_[used_++];
}

std::vector<std::unique_ptr<EncodedSource>> GpuCompute::Encode(
    const std::vector<std::vector<size_t>>& sources) {
  std::vector<std::vector<int>> ids;
  std::vector<CacheBlock> blocks;
  for (const auto& source : sources) {
    ids.emplace_back(source.begin(), source.end());
    blocks.push_back(pool_->Reserve(model_.FloatsOf(source.size())));
  }
  std::vector<int> names;
  {
    const std::lock_guard<std::mutex> lock(model_.engine()->mutex);
    names = model_.engine()->decoder.Encode(ids);
  }
  std::vector<std::unique_ptr<EncodedSource>> encoded;
  for (size_t i = 0; i < names.size(); ++i) {
    encoded.push_back(std::make_unique<GpuSource>(sources[i].size(), std::move(blocks[i]),
                                                  model_.engine(), names[i]));
  }
  return encoded;
}

std::unique_ptr<RowCache> GpuCompute::NewCache(size_t slots, size_t limit) {
  return std::make_unique<GpuRowCache>(model_.engine(), pool_->Reserve(model_.FloatsOf(slots)),
                                       limit);
}

std::vector<Found> GpuCompute::Step(const std::vector<StepSequence>& rows,
                                    const std::vector<OutputRules>& rules) {
  rows_ = rows;
  const std::lock_guard<std::mutex> lock(model_.engine()->mutex);
  for (GpuRowCache* cache : model_.engine()->caches) cache->BeginStep();
  if (RunsAhead(rules)) return DecodeAhead(rules);
  model_.engine()->decoder.Drop(std::move(ahead_));
  std::vector<Given> given = Decode(rules);
  const std::vector<size_t> open = Join(rules, &given);
  if (!open.empty()) {  // rare: all logits are needed
    auto again = rules;
    for (const size_t output : open) again[output].of_best = false;
    for (GpuRowCache* cache : model_.engine()->caches) cache->BeginStep();
    given = Decode(again);
    Join(again, &given);
  }
  std::vector<Found> found;
  for (Given& one : given) found.push_back(std::move(one.found));
  return found;
}

void GpuCompute::Rest() noexcept {
  const std::lock_guard<std::mutex> lock(model_.engine()->mutex);
  model_.engine()->decoder.Drop(std::move(ahead_));
}

// Whether each row has one output from which the device can choose and continue, and all fit into
// one pass.
bool GpuCompute::RunsAhead(const std::vector<OutputRules>& rules) const {
  size_t tokens = 0, output = 0;
  std::set<const VocabularyMap*> maps;
  for (const StepSequence& row : rows_) {
    if (row.outputs != 1 || row.slots != nullptr || row.alignment != nullptr) return false;
    const OutputRules& rule = rules[output++];
    if (rule.candidates > 0 || rule.favored || HostChooses(rule, row)) return false;
    maps.insert(rule.map);
    tokens += row.count;
  }
  return tokens <= model_.limits().step_tokens && maps.size() <= kMostLists;
}

// Launches the next step, and then reads the one that was launched before it.
std::vector<Found> GpuCompute::DecodeAhead(const std::vector<OutputRules>& rules) {
  std::vector<Ahead> all;
  for (size_t i = 0; i < rows_.size(); ++i) all.push_back(AheadOf(rows_[i], rules[i]));
  auto before = std::exchange(ahead_, nullptr);
  const uint64_t number = std::exchange(ahead_number_, ++model_.engine()->steps);
  LaunchAhead(all);
  work_.passes_ahead += ahead_ && before ? 1 : 0;
  std::vector<ChosenToken> chosen;
  if (before) chosen = ReadAhead(number, std::move(before));
  std::vector<Found> found(rows_.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& ready = all[i].ready;
    found[i].later = !ready;
    if (!ready) continue;
    const ChosenToken& one = ready->chosen ? *ready->chosen : chosen[ready->output];
    found[i] = GivenTo(rows_[i], rules[i], one, /*output=*/0).found;
    if (all[i].given) all[i].cache->coming->tokens = {one.chosen.token};
  }
  return found;
}

// Rows that the next step leaves out keep their results.
std::vector<ChosenToken> GpuCompute::ReadAhead(uint64_t number, std::unique_ptr<GpuStep> step) {
  auto chosen = model_.engine()->decoder.Read(std::move(step));
  for (GpuRowCache* cache : model_.engine()->caches) {
    auto& coming = cache->coming;
    if (coming && coming->step == number) coming->chosen = chosen[coming->output];
  }
  return chosen;
}

void GpuCompute::LaunchAhead(const std::vector<Ahead>& rows) {
  std::vector<GivenTokens> given;
  for (const Ahead& row : rows) {
    if (row.given) given.push_back(*row.given);
  }
  if (!given.empty()) {
    ahead_ = model_.engine()->decoder.Launch(given);
    ++work_.passes;
  }
  size_t output = 0;
  for (const Ahead& row : rows) {
    row.cache->coming.reset();
    if (!row.given) continue;
    row.cache->coming = {ahead_number_, output++, row.given->position, {}, std::nullopt};
    const auto& tokens = row.given->tokens;
    row.cache->coming->tokens.assign(tokens.begin(), tokens.end());
  }
}

// The row's input to the next step: the previous step's choice, if that step ran these tokens by
// these rules, else the tokens.
GpuCompute::Ahead GpuCompute::AheadOf(const StepSequence& row, const OutputRules& rules) {
  auto& cache = static_cast<GpuRowCache&>(*row.cache);  // NewCache's own
  const int sequence = cache.NextSequence(static_cast<const GpuSource&>(*row.source), row.prompt);
  const bool same_rules = !model_.engine()->decoder.SetRules(
      sequence, RulesFor(rules, row, row.position + row.count - 1, cache.limit()));
  const auto& coming = cache.coming;
  Ahead ahead = {&cache, std::nullopt, GivenTokens{sequence, row.position}};
  if (same_rules && coming && (coming->chosen || (ahead_ && coming->step == ahead_number_)) &&
      coming->position == row.position && coming->tokens.size() == row.count &&
      std::equal(coming->tokens.begin(), coming->tokens.end(), row.tokens)) {
    ahead.ready = coming;
    ahead.given->position += row.count;
    if (ahead.given->position >= cache.limit()) ahead.given.reset();
    return ahead;
  }
  ahead.given->tokens.assign(row.tokens, row.tokens + row.count);
  if (rules.penalty != 1) ahead.given->before = *rules.before;
  return ahead;
}

// Returns the outputs of searches whose best outputs do not determine the candidates.
std::vector<size_t> GpuCompute::Join(const std::vector<OutputRules>& rules,
                                     std::vector<Given>* given) const {
  std::vector<OfferedOutput> offered;
  for (const Given& one : *given) offered.push_back(one.offered);
  std::vector<size_t> open;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].sequences == 0) continue;
    auto candidates =
        ChooseJointly(&rules[i], &offered[i], model_.Candidates(rules[i].map), model_.row_kernel());
    if (candidates) (*given)[i].found.candidates = std::move(*candidates);
    for (size_t k = 0; !candidates && k < rules[i].sequences; ++k) open.push_back(i + k);
  }
  return open;
}

std::vector<std::vector<float>> GpuCompute::Logits(const std::vector<StepSequence>& rows,
                                                   const std::vector<const VocabularyMap*>& maps) {
  rows_ = rows;
  size_t outputs = 0;
  for (const StepSequence& row : rows) outputs += row.outputs;
  std::vector<OutputRules> rules(outputs);
  for (OutputRules& one : rules) one.candidates = 1;  // and not of the best ones
  const std::lock_guard<std::mutex> lock(model_.engine()->mutex);
  for (GpuRowCache* cache : model_.engine()->caches) cache->BeginStep();
  Decode(rules);
  auto logits = std::move(numbers_);
  for (size_t i = 0; outputs > 0 && i < maps.size(); ++i) {
    rules.front().map = maps[i];
    for (GpuRowCache* cache : model_.engine()->caches) cache->BeginStep();
    Decode(rules);
    logits.push_back(std::move(numbers_.front()));
  }
  return logits;
}

std::vector<GpuCompute::Given> GpuCompute::Decode(const std::vector<OutputRules>& rules) {
  numbers_.clear();
  tops_.clear();
  std::vector<Piece> pieces;
  size_t first = 0;
  for (const StepSequence& row : rows_) {
    AddPieces(row, first, rules, &pieces);
    first += row.outputs;
  }
  std::vector<Given> found(rules.size());
  std::vector<Piece> pass;
  for (const Piece& piece : pieces) {
    if (!Fits(pass, piece, rules)) {
      RunPass(pass, rules, &found);
      pass.clear();
    }
    pass.push_back(piece);
  }
  if (!pass.empty()) RunPass(pass, rules, &found);
  return found;
}

// first: the rule of the row's first output.
void GpuCompute::AddPieces(const StepSequence& row, size_t first,
                           const std::vector<OutputRules>& rules, std::vector<Piece>* pieces) {
  const size_t given = row.count - row.outputs;  // tokens without a choice
  const auto rule_of = [&](size_t token) { return first + token - given; };
  for (size_t begin = 0; begin < row.count;) {
    size_t end = row.outputs == 0 ? row.count : std::max(begin, given) + 1;
    while (end < row.count && SameRules(rules[rule_of(end - 1)], rules[rule_of(end)])) ++end;
    const size_t chosen = row.outputs == 0 ? 0 : end - std::max(begin, given);
    pieces->push_back({&row, begin, end, chosen, chosen == 0 ? 0 : rule_of(end - chosen)});
    begin = end;
  }
}

// Whether they fit into one pass: size of the buffers, number of lists, and one selection of heads.
bool GpuCompute::Fits(const std::vector<Piece>& pass, const Piece& piece,
                      const std::vector<OutputRules>& rules) const {
  size_t tokens = piece.end - piece.begin;
  std::set<const VocabularyMap*> maps;
  const RowAlignment* alignment = piece.row->alignment;
  const auto map_of = [&](const Piece& one) {
    return one.chosen == 0 ? nullptr : rules[one.rule].map;
  };
  maps.insert(map_of(piece));
  for (const Piece& other : pass) {
    tokens += other.end - other.begin;
    maps.insert(map_of(other));
    const RowAlignment* others = other.row->alignment;
    if (others == nullptr || alignment == nullptr) continue;
    if (!(others->heads() == alignment->heads())) return false;
  }
  return tokens <= model_.limits().step_tokens && maps.size() <= kMostLists;
}

void GpuCompute::RunPass(const std::vector<Piece>& pass, const std::vector<OutputRules>& rules,
                         std::vector<Given>* found) {
  GpuDecoder& decoder = model_.engine()->decoder;
  const OutputRules nothing;
  std::vector<GivenTokens> given;
  const AlignmentHeads* heads = nullptr;
  for (const Piece& piece : pass) {
    given.push_back(GivenBy(piece, piece.chosen == 0 ? nothing : rules[piece.rule]));
    if (piece.chosen > 0 && rules[piece.rule].penalty != 1) {
      given.back().before = *rules[piece.rule + piece.chosen - 1].before;
    }
    if (piece.row->alignment != nullptr) heads = &piece.row->alignment->heads();
  }
  const auto chosen = decoder.Read(decoder.Launch(given, heads));
  ++work_.passes;
  size_t output = 0;
  for (size_t i = 0; i < pass.size(); ++i) {
    const Piece& piece = pass[i];
    for (size_t t = piece.end - given[i].outputs; t < piece.end; ++t, ++output) {
      if (piece.row->alignment != nullptr) {
        piece.row->alignment->Put(piece.row->Slot(t), chosen[output].aligned_source);
      }
      if (t + piece.chosen < piece.end) continue;
      const size_t rule = piece.rule + t - (piece.end - piece.chosen);
      (*found)[rule] = GivenTo(*piece.row, rules[rule], chosen[output], output);
    }
  }
}

// All tokens have an output if they are aligned.
GivenTokens GpuCompute::GivenBy(const Piece& piece, const OutputRules& rules) {
  const StepSequence& row = *piece.row;
  GivenTokens given;
  auto& cache = static_cast<GpuRowCache&>(*row.cache);  // NewCache's own
  given.sequence = cache.NextSequence(static_cast<const GpuSource&>(*row.source), row.prompt);
  model_.engine()->decoder.SetRules(
      given.sequence, RulesFor(rules, row, row.position + piece.end - piece.chosen, /*limit=*/0));
  given.position = row.position + piece.begin;
  given.tokens.assign(row.tokens + piece.begin, row.tokens + piece.end);
  given.outputs = row.alignment != nullptr ? given.tokens.size() : piece.chosen;
  if (row.slots != nullptr) given.places.assign(row.slots, row.slots + row.position + piece.end);
  return given;
}

// Draws that the device cannot make: from more candidates than it keeps; from all, with top_p below
// 1; and for several sequences, whose steps are not the device's positions.
bool GpuCompute::HostChooses(const OutputRules& rules, const StepSequence& row) const {
  if (rules.candidates > 0) return !rules.of_best || rules.Best() > kMostCandidates;
  if (!rules.draw) return false;
  if (row.slots != nullptr || rules.draw->sequences > 0) return true;
  const Sampler& sampler = rules.draw->sampler;
  const size_t outputs = model_.Candidates(rules.map);
  const bool of_all = sampler.topk() == 0 || sampler.topk() >= outputs;
  return of_all ? sampler.topp() < 1 : sampler.topk() > kMostCandidates;
}

// length: of the sequence when these rules first apply. limit: see TokenRules.
TokenRules GpuCompute::RulesFor(const OutputRules& rules, const StepSequence& row, size_t length,
                                size_t limit) const {
  TokenRules there;
  there.list = model_.ListOf(rules.map);
  if (row.alignment != nullptr) {
    there.first_source = row.alignment->first();
    there.sources = row.alignment->count();
  }
  if (HostChooses(rules, row)) return there;
  there.penalty = rules.penalty;
  if (rules.penalty != 1) there.unseen = length - rules.before->size();
  there.limit = limit;
  const bool early = limit > 0 && rules.before->size() < rules.min_length;
  for (const int64_t output : rules.forbidden) {
    if (early && IsEnd(rules, output)) continue;  // the device forbids it itself
    there.forbidden.push_back(IdOf(rules.map, output));
  }
  if (limit > 0) AddEnds(rules, &there);
  there.candidates = std::max<size_t>(rules.Best(), 1);
  if (rules.favored) there.favored = IdOf(rules.map, *rules.favored);
  there.bias = rules.bias;
  if (!rules.draw) return there;
  const Sampler& sampler = rules.draw->sampler;
  there.draws = true;
  there.key = sampler.key();
  there.top_k = sampler.topk() >= model_.Candidates(rules.map) ? 0 : sampler.topk();
  there.top_p = sampler.topp();
  there.temperature = sampler.temperature();
  return there;
}

GpuCompute::Given GpuCompute::GivenTo(const StepSequence& row, const OutputRules& rules,
                                      const ChosenToken& chosen, size_t output) {
  Given given;
  if (chosen.chosen.token < 0) {
    throw Error(ErrorCode::kInternal,
                "GPU " + model_.engine()->decoder.device() + ": all logits are NaN");
  }
  if (HostChooses(rules, row)) {
    numbers_.push_back(model_.engine()->decoder.Logits(output));
    ++work_.host_choices;
    float* const logits = numbers_.back().data();
    const size_t outputs = numbers_.back().size();
    if (rules.candidates == 0) {
      given.found = ChooseFrom(rules, logits, outputs, model_.row_kernel());
    } else {
      given.offered.logits = logits;
      given.found.written = true;
    }
  } else if (rules.candidates > 0) {
    auto& top = tops_.emplace_back();
    for (const TokenCandidate& one : chosen.candidates) {
      top.push_back({one.log_probability, OutputOf(rules.map, one.token)});
    }
    given.offered.best = {top.data(), top.size(), 0};
  } else {
    given.found.choice.output = OutputOf(rules.map, chosen.chosen.token);
    if (rules.scored) given.found.choice.log_probability = chosen.chosen.log_probability;
  }
  return given;
}

}  // namespace ct2triton::gpu
