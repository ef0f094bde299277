// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_sequence.h"

#include <algorithm>
#include <cstring>

#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr int kNotYet = -1;  // in a history

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
    throw Error(ErrorCode::kInvalidArgument, "a list needs ascending tokens of the vocabulary");
  }
  lists_.push_back(weights_.Select(tokens));
  list_ids_.emplace_back(gpu_, tokens);
  list_tokens_.push_back(tokens);
  return static_cast<int>(lists_.size()) - 1;
}

int GpuDecoder::OutputOf(const GpuSequence& sequence, int token) const {
  if (!sequence.rules.list) return token;
  const auto& tokens = list_tokens_[static_cast<size_t>(*sequence.rules.list)];
  const auto place = std::lower_bound(tokens.begin(), tokens.end(), token);
  return place == tokens.end() || *place != token ? -1 : static_cast<int>(place - tokens.begin());
}

void GpuDecoder::SetRules(int name, const TokenRules& rules) {
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
  if (listed != sequence.listed) {
    if (listed.size() > sequence.listed_there.count()) {
      sequence.listed_there = {gpu_, listed.size()};
    }
    sequence.listed_there.Put(0, listed.data(), listed.size());
    sequence.listed = std::move(listed);
  }
  rule.listed = sequence.listed_there.get();
  if (rules.list) rule.ids = list_ids_[static_cast<size_t>(*rules.list)].get();
  rule.key = rules.key;
  rule.forced = static_cast<int>(sequence.forced);
  rule.limit = static_cast<int>(sequence.limit);
  rule.min_length = static_cast<int>(rules.min_length);
  rule.draws = rules.draws ? 1 : 0;
  rule.top_k = static_cast<int>(rules.top_k);
  rule.candidates = static_cast<int>(std::max(rules.candidates, rules.draws ? rules.top_k : 0));
  rule.leaning = rules.leaning ? OutputOf(sequence, *rules.leaning) : -1;
  rule.bias = rules.bias;
  rule.first_source = static_cast<int>(rules.first_source);
  rule.sources = static_cast<int>(rules.sources);
  rule.penalty = rules.penalty;
  rule.top_p = rules.top_p;
  rule.temperature = rules.temperature;
  if (sequence.rule && std::memcmp(&rule, &*sequence.rule, sizeof rule) == 0) return;
  rules_.Put(static_cast<size_t>(name), rule);
  sequence.rule = rule;
}

void GpuDecoder::PutHistory(int name, size_t begin, size_t end) {
  const GpuSequence& sequence = Known(name);
  if (begin >= end) return;
  history_.Put(static_cast<size_t>(name) * limits_.target_tokens + begin,
               sequence.outputs.data() + begin, end - begin);
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
    scores_.Put(static_cast<size_t>(name), 0);
  } catch (...) {
    sequences_[static_cast<size_t>(name)].reset();
    throw;
  }
  return name;
}

int GpuDecoder::Begin(const NewSequence& begins) {
  gpu_.MakeCurrent();
  if (begins.limit == 0 || begins.limit > limits_.target_tokens ||
      begins.forced.size() >= begins.limit) {
    throw Error(ErrorCode::kInvalidArgument,
                "a sequence of " + std::to_string(begins.forced.size()) +
                    " forced tokens cannot end at " + std::to_string(begins.limit) +
                    "; allowed are more than the forced ones, at most " +
                    std::to_string(limits_.target_tokens));
  }
  RequireRules(begins.rules);
  RequireTokens(begins.forced, weights_.decoder());
  RequireTokens({begins.start}, weights_.decoder());
  const int name = Join(begins.encoding, begins.prompt, NewCache());
  GpuSequence& sequence = Known(name);
  sequence.limit = begins.limit;
  sequence.forced = begins.forced.size();
  SetRules(name, begins.rules);
  for (const int token : begins.forced) sequence.outputs.push_back(OutputOf(sequence, token));
  const std::vector<int> none(limits_.target_tokens, kNotYet);
  history_.Put(static_cast<size_t>(name) * limits_.target_tokens, none.data(), none.size());
  Continue(name, 0, begins.start);
  return name;
}

void GpuDecoder::Continue(int name, size_t position, int token) {
  GpuSequence& sequence = Known(name);
  sequence.position = position;
  sequence.running = true;
  PutHistory(name, 0, sequence.outputs.size());
  const auto place = static_cast<size_t>(name);
  running_.token.Put(place, token);
  running_.position.Put(place, static_cast<int>(position));
}

// Gives the sequence slots for so many tokens in order.
void GpuDecoder::Reserve(int name, size_t tokens) {
  GpuSequence& sequence = Known(name);
  sequence.cache->Reserve(tokens);
  if (tokens <= sequence.in_order) return;
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
  GpuSequence& sequence = Known(name);
  if (sequence.running) {
    gpu_.MakeCurrent();
    running_.position.Put(static_cast<size_t>(name), -1);
  }
  sequences_[static_cast<size_t>(name)].reset();
}

void GpuDecoder::ForgetEncoding(int encoding) { encodings_.erase(encoding); }

// What the device has done by itself.
void GpuDecoder::ReadStates() {
  const auto positions = running_.position.Get(0, sequences_.size());
  const auto scores = scores_.Get(0, sequences_.size());
  const auto histories = history_.Get(0, history_.count());
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (!sequences_[i] || !sequences_[i]->running) continue;
    GpuSequence& sequence = *sequences_[i];
    const auto begin = histories.begin() + static_cast<std::ptrdiff_t>(i * limits_.target_tokens);
    const auto end = begin + static_cast<std::ptrdiff_t>(limits_.target_tokens);
    sequence.outputs.assign(begin, std::find(begin, end, kNotYet));
    sequence.score = scores[i];
    sequence.ended = positions[i] < 0;
    sequence.running = !sequence.ended;
    if (!sequence.running) continue;
    if (positions[i] == static_cast<int>(sequence.position)) {
      throw Error(ErrorCode::kInternal, "GPU " + gpu_.name() + ": no logit is a number");
    }
    sequence.position = static_cast<size_t>(positions[i]);
  }
}

SequenceState GpuDecoder::State(int name) const {
  const GpuSequence& sequence = Known(name);
  SequenceState state;
  for (const int output : sequence.outputs) {
    state.tokens.push_back(TokenOf(sequence.rules.list.value_or(-1), output));
  }
  state.score = sequence.score;
  state.ended = sequence.ended;
  return state;
}

ChosenToken GpuDecoder::Last(int name) const {
  for (const Place& place : last_) {
    if (place.sequence == name) return ReadChoices({place}).front();
  }
  throw Error(ErrorCode::kInternal, "nothing was chosen for sequence " + std::to_string(name));
}

}  // namespace ct2triton::gpu
