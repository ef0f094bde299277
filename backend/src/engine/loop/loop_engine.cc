// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/loop_engine.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "engine/calls/thread_scope.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/cpu/layer_packer.h"
#include "engine/compute/gpu/gpu_model.h"
#include "engine/compute/gpu/gpu_place.h"
#include "engine/compute/loop_compute.h"
#include "engine/loop/decode_loop.h"
#include "engine/loop/loop_support.h"
#include "engine/loop/proof.h"
#include "engine/loop/source_encoder.h"
#include "engine/loop/step_times.h"
#include "engine/loop/trial.h"
#include "engine/shared_by_key.h"
#include "engine/team.h"
#include "engine/usable_cores.h"
#include "error.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// Size of unused caches that are always kept for the next rows.
constexpr size_t kKeptCacheBytes = size_t{64} << 20;

// Packing reads and writes memory: this many threads use about all of its bandwidth.
constexpr size_t kMostPackingThreads = 8;

size_t PackingThreads() { return std::min(CoresOfProcess().physical, kMostPackingThreads); }

std::string Describe(const TrialReport& trial) {
  std::ostringstream text;
  text << "trial of " << trial.tokens << " tokens: logits within " << std::setprecision(2)
       << trial.largest_error;
  if (trial.library_error > 0) {
    text << " of CTranslate2's with float32 weights (its own with int8: within "
         << trial.library_error << "), ";
  } else {
    text << " (allowed " << trial.tolerance << "), ";
  }
  if (trial.beams.hypotheses > 0) {
    text << "scores of beams within " << trial.beams.largest_error << ", ";
  }
  text << trial.ns / 1'000'000 << " ms";
  return text.str();
}

}  // namespace

// A proof, or CTranslate2's results for a trial. Made before the weights are packed, so that
// CTranslate2's model and the packed weights are not in memory together.
struct LoopModel::Evidence {
  std::string id{};  // of the proof; empty: proofs exist only for our CPU code
  ProofSearch known{};
  std::optional<TrialTruth> truth{};  // if there is no proof
};

std::shared_ptr<LoopModel> LoopModel::Get(const std::shared_ptr<const Weights>& weights,
                                          Proving proving) {
  static SharedByKey<std::pair<const Weights*, bool>, LoopModel> known;
  const auto model = known.Get({weights.get(), gpu::PlaceOf(weights->device()).has_value()},
                               [&] { return std::make_shared<LoopModel>(weights, proving); });
  if (proving != Proving::kNever) model->ProveIfNot(*weights);
  return model;
}

LoopModel::LoopModel(const std::shared_ptr<const Weights>& weights, Proving proving)
    : caches_(std::make_shared<LoopCaches>(kKeptCacheBytes)) {
  RunInThreadScope(weights->device(), /*threads=*/1, [&] { Make(weights, proving); });
  if (!on_host_) return;
  const auto caches = std::make_shared<LoopCaches>(/*keep_bytes=*/0);
  step_times_ = MeasureSteps(*weights, CoresOfProcess(), [this, &caches] {
    return std::make_unique<DecodeLoop>(model_, caches);
  });
}

void LoopModel::Make(const std::shared_ptr<const Weights>& weights, Proving proving) {
  ReadDecoder(weights->file());  // refuses unsupported models before anything is loaded
  const auto place = gpu::PlaceOf(weights->device());
  on_host_ = !place;
  std::optional<Evidence> evidence;
  if (proving != Proving::kNever) evidence = Ask(*weights, proving);
  if (place) {
    const auto model = std::make_shared<const gpu::GpuModel>(weights, *place);
    model_ = model;
    making_ = model->Description();
  } else {
    LayerPacker packer(weights->file(), weights->loop_type(), PackingThreads());
    model_ = std::make_shared<const HostModel>(weights, &packer);
    making_ = packer.Description();
    weights->file().RequireUnchanged();  // its weights were read in pieces
  }
  if (evidence) proof_ = Settle(*evidence);
}

LoopModel::Evidence LoopModel::Ask(const Weights& weights, Proving proving) const {
  Evidence evidence;
  if (on_host_) evidence.id = ProofId(weights);
  if (on_host_ && proving == Proving::kOnce) evidence.known = FindProof(weights, evidence.id);
  if (!evidence.known.found) evidence.truth = AskCTranslate2(weights);
  return evidence;
}

std::string LoopModel::Settle(const Evidence& evidence) const {
  const std::string& remark = evidence.known.remark;
  if (!evidence.truth) return remark;
  const std::string report = Describe(TryDecoder(*model_, *evidence.truth));
  if (!evidence.id.empty()) KeepProof(evidence.id, report);
  return remark.empty() ? report : remark + ", so " + report;
}

// It was made without a proof, which a later user wants.
void LoopModel::ProveIfNot(const Weights& weights) {
  const std::lock_guard<std::mutex> lock(proof_mutex_);
  if (proof_) return;
  RunInThreadScope(weights.device(), /*threads=*/1,
                   [&] { proof_ = Settle(Ask(weights, Proving::kOnce)); });
}

std::string LoopModel::description() const {
  const std::lock_guard<std::mutex> lock(proof_mutex_);
  return making_ + ", " + proof_.value_or("not proved");
}

std::unique_ptr<LoopEngine> LoopModel::NewLoop() const {
  return std::make_unique<DecodeLoop>(model_, caches_);
}

std::shared_ptr<const void> LoopModel::Encode(const CheckedRow& row, LoopCounters* counters) const {
  const uint64_t start_ns = SteadyNow_ns();
  const size_t parts = Team::PartsByHelpers();
  SourceEncoder::Counts counts;
  const auto compute = model_->NewCompute(&caches_->memory);
  SourceEncoder encoder(*model_, compute.get(), &caches_->encodings);
  auto encoding = encoder.Encode({&row}, &counts).front();
  // Made here, or found before a row was admitted with it.
  if (counts.rows > 0 || counts.shared == 0) encoding->MadeForRow();
  counts.shared = 0;  // counted when a loop admits the row
  counts.AddTo(counters);
  counters->encode_ns += SteadyNow_ns() - start_ns;
  counters->helped_parts += Team::PartsByHelpers() - parts;
  return encoding;
}

std::shared_ptr<const AlignmentHeads> LoopModel::ChosenAlignment(
    const EngineOptions& engine) const {
  return ChooseAlignment(engine, model_->shape());
}

void LoopModel::RequireAlignment(const EngineOptions& engine, const Weights& weights) {
  try {
    ChooseAlignment(engine, ReadDecoder(weights.file()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
  }
}

std::optional<std::string> LoopModel::WhyNot(const SearchOptions& search) const {
  return WhyNotLoop(search);
}

std::optional<std::string> LoopModel::WhyNot(const CheckedRow& row) const {
  if (auto reason = WhyNotLoop(row, model_->weights())) return reason;
  const auto limit = static_cast<size_t>(row.limit_tokens);
  if (auto reason = model_->WhyNot(EncodedTokens(row, model_->weights()), limit)) return reason;
  const size_t wanted = CacheBytes(row) + SourceCacheBytes(row);
  const size_t most = model_->most_cache_bytes().value_or(wanted);
  if (wanted <= most) return std::nullopt;
  return "its keys and values may take " + std::to_string(wanted) + " bytes, and the GPU has " +
         std::to_string(most);
}

size_t LoopModel::CacheBytes(const CheckedRow& row) const {
  return model_->CacheBytes(CacheTokens(row, model_->weights()));
}

size_t LoopModel::SourceCacheBytes(const CheckedRow& row) const {
  return model_->CacheBytes(EncodedTokens(row, model_->weights()));
}

ElementType LoopModel::weight_type() const { return model_->weight_type(); }

size_t LoopModel::packed_bytes() const { return model_->packed_bytes(); }

size_t LoopModel::MapBytes(const VocabularyMap& map) const { return model_->MapBytes(map); }

bool LoopModel::HasEncoding(const CheckedRow& row) const {
  return caches_->encodings.Has(row.source);
}

size_t LoopModel::cache_bytes_in_use() const { return caches_->memory.pool.bytes_in_use(); }

std::optional<Error> LoopModel::loss() const { return model_->loss(); }

std::optional<size_t> LoopModel::most_cache_bytes() const { return model_->most_cache_bytes(); }

std::optional<size_t> LoopModel::most_cache_bytes_now() const {
  return model_->most_cache_bytes_now();
}

void LoopModel::MeasureCache() const noexcept {
  try {
    model_->MeasureCache();
  } catch (...) {  // the next step fails with the reason
  }
}

size_t LoopModel::gpu_cache_bytes() const { return model_->gpu_cache_bytes(); }

size_t LoopModel::logits_bytes() const { return caches_->memory.logits_bytes; }

}  // namespace ct2triton
