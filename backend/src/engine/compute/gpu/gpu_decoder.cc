// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_decoder.h"

#include <algorithm>
#include <utility>

#include "engine/compute/gpu/gpu_sequence.h"
#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr size_t kPaddingRows = 16;  // after the rows of a step; they never run
constexpr int kOnePage = 30;         // a shift that makes one page of all slots
constexpr size_t kMostIdleSteps = 16;

size_t Rounded(size_t rows) { return static_cast<size_t>(Bucket(rows)); }

size_t SlotBytes(const ModelWeights& weights) {
  return weights.decoder().layers.size() * 2 * static_cast<size_t>(weights.heads_width()) *
         weights.activation_bytes();
}

size_t StepRows(const GpuLimits& limits) {
  return Rounded(std::max(limits.sequences, limits.step_tokens));
}

// Outputs of a step whose lists pad theirs to buckets.
size_t WithPadding(size_t outputs) {
  constexpr size_t kGroups = GpuOutputs::kMostGroups;
  const size_t wide = std::min(kGroups, outputs / 65);  // in buckets of 64
  return Rounded(outputs + 63 * wide + 15 * (kGroups - wide));
}

size_t MostOutputs(const GpuLimits& limits) {
  return limits.outputs > 0 ? limits.outputs : std::max(limits.sequences, limits.step_tokens);
}

}  // namespace

GpuOutputs::GpuOutputs(const Gpu& gpu, const ModelWeights& weights, size_t wanted,
                       size_t rows_of_step, const GpuLimits& limits)
    : capacity(WithPadding(wanted)),
      stride(static_cast<size_t>(weights.projection().n)),
      parts((stride + kChunk - 1) / kChunk),
      rows(gpu, capacity),
      part_output(gpu, capacity * parts * kMostCandidates),
      logits(gpu, capacity * stride),
      part_value(gpu, capacity * parts * kMostCandidates),
      part_most(gpu, capacity * parts),
      part_total(gpu, capacity * parts),
      part_drawn(gpu, capacity * parts),
      source_weights(
          gpu, rows_of_step * static_cast<size_t>(weights.decoder().heads) * limits.source_tokens),
      chosen(gpu, capacity),
      candidates(gpu, capacity * kMostCandidates) {
  heads = {gpu, static_cast<size_t>(weights.decoder().heads)};
}

GpuDecoder::GpuDecoder(const GpuPlace& place, const ModelFile& file, const ComputeTypes& types,
                       std::optional<float> epsilon, const GpuLimits& limits)
    : gpu_(place),
      limits_(limits),
      weights_(&gpu_, file, types, {limits.source_tokens, limits.target_tokens}, epsilon),
      workspace_(&gpu_, weights_,
                 std::max(StepRows(limits), Rounded(limits.encoded_tokens)) + kPaddingRows),
      encoded_(&gpu_, Rounded(limits.encoded_tokens)),
      given_(&gpu_, Rounded(limits.step_tokens) + kPaddingRows),
      source_first_(gpu_, limits.encoded_tokens),
      source_tokens_(gpu_, limits.encoded_tokens),
      beside_(gpu_, 1),
      table_(gpu_, limits.sequences * limits.target_tokens),
      source_table_(gpu_, limits.sequences * Slots::PagesOf(limits.source_tokens)),
      count_(gpu_, limits.sequences),
      prompt_(gpu_, limits.sequences),
      history_(gpu_, limits.sequences * limits.target_tokens),
      rules_(gpu_, limits.sequences),
      next_(gpu_, limits.sequences),
      outputs_(std::make_unique<GpuOutputs>(gpu_, weights_, MostOutputs(limits),
                                            StepRows(limits) + kPaddingRows, limits)),
      slots_(&gpu_, SlotBytes(weights_), limits.cache_bytes),
      listed_(limits.sequences),
      sequences_(limits.sequences) {
  unsigned char* beside = workspace_.projected.get() +
                          static_cast<size_t>(weights_.heads_width()) * weights_.activation_bytes();
  beside_.Put(0, beside);
  AlignBy(weights_.alignment());
  idle_.reserve(kMostIdleSteps);
  RecordGraphs();
  gpu_.Wait();
}

GpuDecoder::~GpuDecoder() = default;

void GpuDecoder::AlignBy(const AlignmentHeads& heads) {
  if (heads == aligning_) return;
  aligning_ = heads;
  const std::vector<int> numbers(heads.heads.begin(), heads.heads.end());
  outputs_->heads.Put(0, numbers.data(), numbers.size());
}

const Graph& GpuDecoder::GraphOf(const Layers& layers) {
  const auto found = graphs_.find(layers);
  if (found != graphs_.end()) return *found->second;
  auto graph = gpu_.Record([&] {
    if (layers.encodes) {
      LaunchEncoder(layers.rows);
    } else {
      LaunchDecoder(layers.rows, layers.aligning_layer);
    }
  });
  return *graphs_.emplace(layers, std::move(graph)).first->second;
}

// Those of steps that align are recorded when they are needed.
void GpuDecoder::RecordGraphs() {
  const auto next = [](int rows) { return Bucket(static_cast<size_t>(rows) + 1); };
  const int most_encoded = Bucket(limits_.encoded_tokens);
  for (int rows = next(0); rows <= most_encoded; rows = next(rows)) GraphOf({true, rows});
  const int most_rows = Bucket(limits_.step_tokens);
  for (int rows = next(0); rows <= most_rows; rows = next(rows)) GraphOf({false, rows});
}

std::vector<int> GpuDecoder::Encode(const std::vector<std::vector<int>>& sources) {
  gpu_.MakeCurrent();
  const size_t most = std::min(limits_.source_tokens, limits_.encoded_tokens);
  for (const auto& source : sources) {
    if (source.empty() || source.size() > most) {
      ThrowInvalid("a source has " + std::to_string(source.size()) + " tokens; allowed are 1 to " +
                   std::to_string(most));
    }
    RequireTokens(source, weights_.encoder());
  }
  std::vector<int> names;
  for (size_t begin = 0, end = 0; begin < sources.size(); begin = end) {
    size_t tokens = 0;
    for (; end < sources.size(); ++end) {
      if (tokens + sources[end].size() > limits_.encoded_tokens) break;
      tokens += sources[end].size();
    }
    try {
      EncodePass(sources, begin, end, &names);
    } catch (...) {
      for (const int name : names) ForgetEncoding(name);
      throw;
    }
  }
  return names;
}

void GpuDecoder::RequireTokens(const std::vector<int>& tokens, const SideWeights& side) {
  for (const int token : tokens) {
    if (token >= 0 && token < side.embedding.n) continue;
    ThrowInvalid("token " + std::to_string(token) + " is not in the vocabulary");
  }
}

void GpuDecoder::EncodePass(const std::vector<std::vector<int>>& sources, size_t begin, size_t end,
                            std::vector<int>* names) {
  std::vector<int> token, position, sequence, slot, first, count;
  for (size_t i = begin; i < end; ++i) {
    const int name = next_encoding_++;
    names->push_back(name);
    const auto encoded = std::make_shared<GpuEncoded>(&slots_, sources[i].size());
    encodings_[name] = encoded;
    first.push_back(static_cast<int>(token.size()));
    count.push_back(static_cast<int>(encoded->tokens));
    for (size_t t = 0; t < encoded->tokens; ++t) {
      token.push_back(sources[i][t]);
      position.push_back(static_cast<int>(t));
      sequence.push_back(static_cast<int>(i - begin));
      slot.push_back(encoded->pages.SlotOf(t));
    }
  }
  const size_t rows = Rounded(token.size());
  for (auto* values : {&position, &slot}) values->resize(rows, -1);
  for (auto* values : {&token, &sequence}) values->resize(rows, 0);
  encoded_.token.Put(0, token.data(), rows);
  encoded_.position.Put(0, position.data(), rows);
  encoded_.sequence.Put(0, sequence.data(), rows);
  encoded_.slot.Put(0, slot.data(), rows);
  source_first_.Put(0, first.data(), first.size());
  source_tokens_.Put(0, count.data(), count.size());
  GraphOf({true, static_cast<int>(rows)}).Run();
}

void GpuDecoder::LaunchEncoder(int rows) {
  const SideWeights& side = weights_.encoder();
  Pass pass(&gpu_, weights_, side, &workspace_, encoded_, rows);
  pass.Embed(nullptr, 0, nullptr, nullptr);
  AttentionArgs attention = {};
  attention.cache = {beside_.get(), 0, kOnePage, pass.projected_stride()};
  attention.table = source_first_.get();
  attention.table_stride = 1;
  attention.shift = kOnePage;
  attention.count = source_tokens_.get();
  attention.most_tokens = static_cast<int>(limits_.source_tokens);
  for (const LayerWeights& layer : side.layers) {
    pass.Self(layer, attention, nullptr);
    pass.FeedForward(layer);
  }
  int index = 0;
  for (const LayerWeights& layer : weights_.decoder().layers) {
    pass.Keys(layer.source.keys, slots_.CacheOf(index++, 2 * weights_.heads_width()));
  }
}

void GpuDecoder::LaunchDecoder(int rows, int aligning_layer) {
  const SideWeights& side = weights_.decoder();
  Pass pass(&gpu_, weights_, side, &workspace_, given_, rows);
  const int stride = static_cast<int>(limits_.target_tokens);
  pass.Embed(table_.get(), stride, prompt_.get(), next_.get());
  AttentionArgs self = {}, source = {};
  self.table = table_.get();
  self.table_stride = self.most_tokens = stride;
  self.prompt = prompt_.get();
  source.table = source_table_.get();
  source.table_stride = static_cast<int>(Slots::PagesOf(limits_.source_tokens));
  source.shift = Slots::kPageShift;
  source.count = count_.get();
  source.most_tokens = static_cast<int>(limits_.source_tokens);
  for (int i = 0; i < static_cast<int>(side.layers.size()); ++i) {
    const LayerWeights& layer = side.layers[static_cast<size_t>(i)];
    self.cache = source.cache = slots_.CacheOf(i, 2 * weights_.heads_width());
    source.weights = i == aligning_layer ? outputs_->source_weights.get() : nullptr;
    pass.Self(layer, self, &self.cache);
    pass.Source(layer, source);
    pass.FeedForward(layer);
  }
  decoded_.emplace(pass);  // at the end: a recording that fails must not change later steps
}

void GpuDecoder::LaunchChoice(const Group& group, bool aligns) {
  const GpuOutputs& out = *outputs_;
  const auto list = static_cast<size_t>(group.list);
  const Matrix& matrix = group.list < 0 ? weights_.projection() : lists_[list];
  const auto first = static_cast<size_t>(group.first);
  ChoiceArgs args = {};
  args.rows = given_.rows();
  args.output_rows = out.rows.get() + first;
  args.rules = rules_.get();
  args.history = history_.get();
  args.next = next_.get();
  args.logits = out.logits.get() + first * out.stride;
  const size_t part = first * out.parts;
  args.part_value = out.part_value.get() + part * kMostCandidates;
  args.part_output = out.part_output.get() + part * kMostCandidates;
  args.part_most = out.part_most.get() + part;
  args.part_total = out.part_total.get() + part;
  args.part_drawn = out.part_drawn.get() + part;
  args.chosen = out.chosen.get() + first;
  args.candidate = out.candidates.get() + first * kMostCandidates;
  args.stride = matrix.n;
  args.n = group.list < 0 ? weights_.outputs() : static_cast<int>(list_tokens_[list].size());
  args.parts = (args.n + kChunk - 1) / kChunk;
  args.history_stride = static_cast<int>(limits_.target_tokens);
  const auto outputs = static_cast<unsigned>(group.bucket);
  decoded_->Logits(matrix, args.output_rows, group.bucket, args.logits);
  gpu_.Launch("scan", static_cast<unsigned>(args.parts), outputs, 128, kScanSharedBytes, args);
  if (aligns) {
    AlignArgs align = {args.rows,
                       args.output_rows,
                       args.rules,
                       out.source_weights.get(),
                       out.heads.get(),
                       args.chosen,
                       static_cast<int>(aligning_.heads.size()),
                       weights_.decoder().heads,
                       static_cast<int>(limits_.source_tokens)};
    gpu_.Launch("align", outputs, 1, 32, 0, align);
  }
  gpu_.Launch("choose", outputs, 1, 32, kChooseSharedBytes, args);
}

// Groups the outputs by list, and records their places.
GpuDecoder::Step GpuDecoder::MakeStep(int rows, const std::vector<Wanted>& wanted) {
  Step step = {rows, false, {}};
  const int padding = static_cast<int>(given_.token.count() - kPaddingRows);
  std::map<int, std::vector<size_t>> of_list;
  for (size_t i = 0; i < wanted.size(); ++i) of_list[wanted[i].list].push_back(i);
  if (of_list.size() > GpuOutputs::kMostGroups) {
    throw Error(ErrorCode::kUnsupported, "a step has rows of " + std::to_string(of_list.size()) +
                                             " lists; allowed are " +
                                             std::to_string(GpuOutputs::kMostGroups));
  }
  if (wanted.size() > MostOutputs(limits_)) {
    throw Error(ErrorCode::kUnsupported, "a step has " + std::to_string(wanted.size()) +
                                             " outputs; allowed are " +
                                             std::to_string(MostOutputs(limits_)));
  }
  std::vector<int> output_rows;
  last_.assign(wanted.size(), {});
  for (const auto& [list, members] : of_list) {
    const int first = static_cast<int>(output_rows.size());
    for (const size_t i : members) {
      const TokenRules& rules = Known(wanted[i].sequence).rules;
      last_[i] = {list, static_cast<int>(output_rows.size()), rules.candidates};
      output_rows.push_back(wanted[i].row);
      step.aligns = step.aligns || rules.sources > 0;
    }
    step.groups.push_back({list, first, Bucket(members.size())});
    output_rows.resize(static_cast<size_t>(first + step.groups.back().bucket), padding);
  }
  outputs_->rows.Put(0, output_rows.data(), output_rows.size());
  return step;
}

// Appends the tokens of a row.
void GpuDecoder::AddGiven(const GivenTokens& given, std::vector<int>* token,
                          std::vector<int>* position, std::vector<int>* sequence,
                          std::vector<Wanted>* wanted) {
  const GpuSequence& known = Known(given.sequence);
  const bool follows = given.tokens.empty();
  const std::vector<int> tokens = follows ? std::vector<int>{0} : given.tokens;
  const size_t end = given.position + tokens.size();
  const size_t most =
      follows ? std::min(known.rules.limit, limits_.target_tokens) : limits_.target_tokens;
  if (given.outputs > tokens.size() || end > most) {
    ThrowInvalid("a step cannot run tokens " + std::to_string(given.position) + " to " +
                 std::to_string(end) + " of a sequence");
  }
  RequireTokens(tokens, weights_.decoder());
  if (given.places.empty()) {
    Reserve(given.sequence, end);
  } else {
    PutPlaces(given.sequence, given.places);
  }
  const int list = known.rules.list.value_or(-1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i + given.outputs >= tokens.size()) {
      wanted->push_back({static_cast<int>(token->size()), given.sequence, list});
    }
    token->push_back(tokens[i]);
    position->push_back(follows ? kFollows : static_cast<int>(given.position + i));
    sequence->push_back(given.sequence);
  }
  if (given.before.empty()) return;
  history_.Put(static_cast<size_t>(given.sequence) * limits_.target_tokens + known.rules.unseen,
               given.before.data(), given.before.size());
}

GpuDecoder::Step GpuDecoder::Give(const std::vector<GivenTokens>& rows,
                                  const AlignmentHeads* heads) {
  gpu_.MakeCurrent();
  AlignBy(heads != nullptr ? *heads : weights_.alignment());
  std::vector<int> token, position, sequence;
  std::vector<Wanted> wanted;
  for (const GivenTokens& row : rows) AddGiven(row, &token, &position, &sequence, &wanted);
  if (token.size() > limits_.step_tokens) {
    ThrowInvalid("a step has " + std::to_string(token.size()) + " tokens; allowed are " +
                 std::to_string(limits_.step_tokens));
  }
  const int bucket = Bucket(token.size());
  token.resize(static_cast<size_t>(bucket));
  sequence.resize(token.size());
  position.resize(token.size(), -1);
  given_.token.Put(0, token.data(), token.size());
  given_.sequence.Put(0, sequence.data(), sequence.size());
  given_.position.Put(0, position.data(), position.size());
  return MakeStep(bucket, wanted);
}

std::unique_ptr<GpuStep> GpuDecoder::Launch(const std::vector<GivenTokens>& rows,
                                            const AlignmentHeads* heads) {
  const Step step = Give(rows, heads);
  const int aligning_layer = step.aligns ? static_cast<int>(aligning_.layer) : -1;
  const Graph& layers = GraphOf({false, step.rows, aligning_layer});
  const size_t before = gpu_.launched();
  layers.Run();
  for (const Group& group : step.groups) LaunchChoice(group, step.aligns);
  kernels_of_step_ = layers.kernels() + gpu_.launched() - before;
  return AskForChoices();
}

std::vector<KernelTime> GpuDecoder::TimeKernels(const std::vector<GivenTokens>& rows) {
  constexpr int kRepeated = 20;  // keep the device busy until its kernels are launched
  const Step step = Give(rows, nullptr);
  for (int i = 0; i < kRepeated; ++i) GraphOf({false, step.rows}).Run();
  return gpu_.Time([&] {
    LaunchDecoder(step.rows, -1);
    for (const Group& group : step.groups) LaunchChoice(group, /*aligns=*/false);
  });
}

// Requests the choices of the last graph. They are copied before the next graph can change them.
std::unique_ptr<GpuStep> GpuDecoder::AskForChoices() {
  std::unique_ptr<GpuStep> step;
  if (idle_.empty()) {
    step = std::make_unique<GpuStep>(gpu_, *outputs_);
  } else {
    step = std::move(idle_.back());
    idle_.pop_back();
  }
  step->places = last_;
  step->chosen.Ask(outputs_->chosen);
  const auto wants_more = [](const OutputPlace& place) { return place.candidates > 1; };
  if (std::any_of(last_.begin(), last_.end(), wants_more)) {
    step->candidates.Ask(outputs_->candidates);
  }
  step->done.Record();
  return step;
}

int GpuDecoder::TokenOf(int list, int output) const {
  return list < 0 || output < 0
             ? output
             : list_tokens_[static_cast<size_t>(list)][static_cast<size_t>(output)];
}

std::vector<ChosenToken> GpuDecoder::Read(std::unique_ptr<GpuStep> step) {
  gpu_.MakeCurrent();
  step->done.Wait();
  std::vector<ChosenToken> choices;
  for (const OutputPlace& place : step->places) {
    const auto output = static_cast<size_t>(place.output);
    const Chosen& chosen = step->chosen[output];
    ChosenToken choice;
    choice.chosen = {TokenOf(place.list, chosen.output), chosen.log_probability};
    if (place.candidates == 1) choice.candidates = {choice.chosen};
    for (size_t i = 0; place.candidates > 1 && i < place.candidates; ++i) {
      const Candidate& one = step->candidates[output * kMostCandidates + i];
      if (one.output < 0) break;
      choice.candidates.push_back({TokenOf(place.list, one.output), one.log_probability});
    }
    choice.aligned_source = chosen.aligned;
    choice.alignment_weight = chosen.alignment_weight;
    choices.push_back(std::move(choice));
  }
  Drop(std::move(step));
  return choices;
}

void GpuDecoder::Drop(std::unique_ptr<GpuStep> step) noexcept {
  if (step && idle_.size() < idle_.capacity()) idle_.push_back(std::move(step));
}

std::vector<float> GpuDecoder::Logits(size_t of_output) const {
  const OutputPlace& wanted = last_.at(of_output);
  int first = wanted.output;  // of its group
  for (const OutputPlace& place : last_) {
    if (place.list == wanted.list) first = std::min(first, place.output);
  }
  const auto list = static_cast<size_t>(wanted.list);
  const size_t stride = wanted.list < 0 ? outputs_->stride : static_cast<size_t>(lists_[list].n);
  const size_t count =
      wanted.list < 0 ? static_cast<size_t>(weights_.outputs()) : list_tokens_[list].size();
  const auto behind = static_cast<size_t>(wanted.output - first);
  return outputs_->logits.Get(static_cast<size_t>(first) * outputs_->stride + behind * stride,
                              count);
}

}  // namespace ct2triton::gpu
