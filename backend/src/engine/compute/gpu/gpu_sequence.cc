// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_sequence.h"

#include <algorithm>
#include <cstring>

#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr size_t kListed = 32;  // tokens that each sequence has room for

void RequireRules(const TokenRules& rules) {
  if (rules.candidates == 0 || rules.candidates > kMostCandidates) {
    throw Error(ErrorCode::kUnsupported, "the GPU gives 1 to " + std::to_string(kMostCandidates) +
                                             " candidates of a token, not " +
                                             std::to_string(rules.candidates));
  }
  if (!rules.draws) return;
  if (rules.top_k > kMostCandidates || (rules.top_k == 0 && rules.top_p < 1)) {
    throw Error(ErrorCode::kUnsupported, "the GPU draws of the best 1 to " +
                                             std::to_string(kMostCandidates) +
                                             " tokens, or of all without sampling_topp");
  }
}

}  // namespace

GpuSequence& GpuDecoder::Known(int sequence) const {
  const auto place = static_cast<size_t>(sequence);
  if (sequence < 0 || place >= sequences_.size() || !sequences_[place]) {
    throw Error(ErrorCode::kInternal, "there is no sequence " + std::to_string(sequence));
  }
  return *sequences_[place];
}

int GpuDecoder::NewName() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i]) continue;
    sequences_[i] = std::make_unique<GpuSequence>();
    return static_cast<int>(i);
  }
  throw Error(ErrorCode::kUnavailable,
              "all " + std::to_string(sequences_.size()) + " sequences of the GPU run");
}

size_t GpuDecoder::free_sequences() const {
  return static_cast<size_t>(std::count(sequences_.begin(), sequences_.end(), nullptr));
}

int GpuDecoder::AddList(const std::vector<int>& tokens) {
  gpu_.MakeCurrent();
  const bool ascends = std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<int>());
  if (tokens.empty() || !ascends || tokens.front() < 0 || tokens.back() >= weights_.outputs()) {
    ThrowInvalid("a list needs ascending tokens of the vocabulary");
  }
  lists_.push_back(weights_.Select(tokens));
  list_ids_.emplace_back(gpu_, tokens);
  gpu_.Wait();  // the driver may still read `tokens`
  list_tokens_.push_back(tokens);
  return static_cast<int>(lists_.size()) - 1;
}

int GpuDecoder::OutputOf(const GpuSequence& sequence, int token) const {
  if (!sequence.rules.list) return token;
  const auto& tokens = list_tokens_[static_cast<size_t>(*sequence.rules.list)];
  const auto place = std::lower_bound(tokens.begin(), tokens.end(), token);
  return place == tokens.end() || *place != token ? -1 : static_cast<int>(place - tokens.begin());
}

bool GpuDecoder::SetRules(int name, const TokenRules& rules) {
  RequireRules(rules);
  gpu_.MakeCurrent();
  GpuSequence& sequence = Known(name);
  sequence.rules = rules;
  Rule rule = {};
  std::vector<int> listed;
  for (const int token : rules.ends) listed.push_back(OutputOf(sequence, token));
  rule.ends = static_cast<int>(listed.size());
  for (const int token : rules.forbidden) listed.push_back(OutputOf(sequence, token));
  rule.forbidden = static_cast<int>(listed.size()) - rule.ends;
  Buffer<int>& there = listed_[static_cast<size_t>(name)];
  const bool is_listed = listed == sequence.listed;
  if (!is_listed) {
    if (listed.size() > there.count()) there = {gpu_, std::max(2 * listed.size(), kListed)};
    there.Put(0, listed.data(), listed.size());
    sequence.listed = std::move(listed);
  }
  rule.listed = there.get();
  if (rules.list) rule.ids = list_ids_[static_cast<size_t>(*rules.list)].get();
  rule.key = rules.key;
  rule.unseen = static_cast<int>(rules.unseen);
  rule.limit = static_cast<int>(rules.limit);
  rule.min_length = static_cast<int>(rules.min_length);
  rule.draws = rules.draws ? 1 : 0;
  rule.top_k = static_cast<int>(rules.top_k);
  rule.candidates = static_cast<int>(std::max(rules.candidates, rules.draws ? rules.top_k : 0));
  rule.favored = rules.favored ? OutputOf(sequence, *rules.favored) : -1;
  rule.bias = rules.bias;
  rule.first_source = static_cast<int>(rules.first_source);
  rule.sources = static_cast<int>(rules.sources);
  rule.penalty = rules.penalty;
  rule.top_p = rules.top_p;
  rule.temperature = rules.temperature;
  if (sequence.rule && std::memcmp(&rule, &*sequence.rule, sizeof rule) == 0) return !is_listed;
  rules_.Put(static_cast<size_t>(name), rule);
  sequence.rule = rule;
  return true;
}

void GpuDecoder::PutSource(int name, const std::shared_ptr<GpuEncoded>& encoded) {
  Known(name).encoded = encoded;
  const size_t stride = source_table_.count() / sequences_.size();
  const auto& pages = encoded->pages.first_slots();
  source_table_.Put(static_cast<size_t>(name) * stride, pages.data(), pages.size());
  count_.Put(static_cast<size_t>(name), static_cast<int>(encoded->tokens));
}

int GpuDecoder::Join(int encoding, size_t prompt, const std::shared_ptr<Pages>& cache) {
  gpu_.MakeCurrent();
  const auto found = encodings_.find(encoding);
  if (found == encodings_.end()) {
    throw Error(ErrorCode::kInternal, "there is no encoding " + std::to_string(encoding));
  }
  const int name = NewName();
  GpuSequence& sequence = Known(name);
  try {
    sequence.cache = cache;
    sequence.prompt = prompt;
    PutSource(name, found->second);
    prompt_.Put(static_cast<size_t>(name), static_cast<int>(prompt));
  } catch (...) {
    sequences_[static_cast<size_t>(name)].reset();
    throw;
  }
  return name;
}

// Gives the sequence slots in order for at least this many tokens: all of its pages, so that few
// steps copy to the device.
void GpuDecoder::Reserve(int name, size_t tokens) {
  GpuSequence& sequence = Known(name);
  sequence.cache->Reserve(tokens);
  if (tokens <= sequence.in_order) return;
  tokens = std::min(sequence.cache->slots(), limits_.target_tokens);
  std::vector<int> slots;
  for (size_t i = sequence.in_order; i < tokens; ++i) slots.push_back(sequence.cache->SlotOf(i));
  table_.Put(static_cast<size_t>(name) * limits_.target_tokens + sequence.in_order, slots.data(),
             slots.size());
  sequence.in_order = tokens;
}

void GpuDecoder::PutPlaces(int name, const std::vector<int>& places) {
  GpuSequence& sequence = Known(name);
  sequence.in_order = 0;
  sequence.cache->Reserve(static_cast<size_t>(*std::max_element(places.begin(), places.end())) + 1);
  std::vector<int> slots;
  for (const int place : places) {
    slots.push_back(sequence.cache->SlotOf(static_cast<size_t>(place)));
  }
  table_.Put(static_cast<size_t>(name) * limits_.target_tokens, slots.data(), slots.size());
}

void GpuDecoder::Forget(int name) {
  Known(name);
  sequences_[static_cast<size_t>(name)].reset();
}

void GpuDecoder::ForgetEncoding(int encoding) { encodings_.erase(encoding); }

}  // namespace ct2triton::gpu
