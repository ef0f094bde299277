// SPDX-License-Identifier: Apache-2.0
#include "queue/translator.h"

#include <algorithm>
#include <chrono>

#include "engine/search/finish.h"
#include "engine/usable_cores.h"
#include "queue/model_work.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// By calculation, the rows that run wait about as long as for some steps. Not measured.
constexpr size_t kGpuEncodeTokens = 512;

// How often a full queue is searched for cancelled rows: Triton does not report that a client left.
constexpr std::chrono::milliseconds kSweepPeriod(20);

size_t OrAutomatic(int64_t option, size_t automatic) {
  return option > 0 ? static_cast<size_t>(option) : automatic;
}

// Defaults for the size of a call and the number of concurrent calls. benchmarks/README.md has the
// measurements for the CPU's numbers; the GPU's are not measured.
WorkSettings Settings(const Device& device, const EngineOptions& engine) {
  const bool cpu = device.kind == Device::Kind::kCpu;
  const size_t cores = UsableCores();
  WorkSettings settings;
  settings.intra_threads = OrAutomatic(engine.intra_threads, 1);
  settings.inter_threads = OrAutomatic(
      engine.inter_threads, cpu ? std::max<size_t>(1, cores / settings.intra_threads) : 1);
  settings.calls_idle_ns = static_cast<uint64_t>(engine.calls_idle_s) * 1'000'000'000;
  settings.bounds.max_rows = OrAutomatic(engine.max_batch_rows, cpu ? 32 : 256);
  settings.bounds.max_tokens =
      static_cast<int64_t>(OrAutomatic(engine.max_batch_tokens, cpu ? 2048 : 32768));
  settings.bounds.max_search_tokens =
      static_cast<int64_t>(OrAutomatic(engine.max_search_tokens, cpu ? 32768 : 262144));
  return settings;
}

LoopSettings LoopsOf(const Device& device, const EngineOptions& engine, const LoopModel* loop) {
  const bool cpu = device.kind == Device::Kind::kCpu;
  LoopSettings settings;
  settings.max_sequences = OrAutomatic(engine.max_batch_rows, cpu ? settings.max_sequences : 256);
  settings.encode_tokens =
      OrAutomatic(engine.max_batch_tokens, cpu ? settings.encode_tokens : kGpuEncodeTokens);
  settings.max_cache_bytes = OrAutomatic(engine.max_cache_bytes, settings.max_cache_bytes);
  if (const auto most = loop == nullptr ? std::nullopt : loop->most_cache_bytes()) {
    settings.max_cache_bytes = std::min(settings.max_cache_bytes, *most);
  }
  settings.threads = cpu ? OrAutomatic(engine.intra_threads, UsableCores()) : 1;
  return settings;
}

EngineOptions Resolved(EngineOptions engine, const Device& device) {
  engine.max_search_tokens = Settings(device, engine).bounds.max_search_tokens;
  return engine;
}

}  // namespace

TranslatorState& TranslatorState::operator+=(const TranslatorState& other) {
  waiting_rows += other.waiting_rows;
  most_waiting_rows += other.most_waiting_rows;
  decoding_rows += other.decoding_rows;
  busy_ns += other.busy_ns;
  decoding_threads = std::max(decoding_threads, other.decoding_threads);
  cache_bytes += other.cache_bytes;
  gpu_cache_bytes += other.gpu_cache_bytes;
  loops += other.loops;
  call_loads += other.call_loads;
  return *this;
}

TranslatorState TranslatorState::Since(const TranslatorState& before) const {
  TranslatorState since = *this;
  since.busy_ns -= before.busy_ns;
  since.loops -= before.loops;
  since.call_loads -= before.call_loads;
  return since;
}

Translator::Translator(const std::string& directory, const Device& device,
                       const DecodingOptions& defaults, const EngineOptions& engine)
    : model_(directory, device, defaults, Resolved(engine, device),
             Settings(device, engine).intra_threads),
      work_(ModelWork::Get(model_, Settings(device, engine),
                           LoopsOf(device, engine, model_.loop().get()))),
      share_(std::make_unique<QueueShare>(static_cast<size_t>(engine.max_queued_rows))) {}

Translator::~Translator() = default;

void Translator::Submit(std::vector<CheckedRow> rows,
                        const std::shared_ptr<RowListener>& listener) {
  const uint64_t now_ns = SteadyNow_ns();
  const std::lock_guard<std::mutex> lock(submit_mutex_);
  while (waiting() >= most_waiting()) WaitForPlaces(most_waiting(), wakes());
  SubmitFrom(0, std::move(rows), listener, now_ns);
}

void Translator::SubmitFrom(size_t first_position, std::vector<CheckedRow> rows,
                            const std::shared_ptr<RowListener>& listener, uint64_t queued_ns) {
  std::vector<CheckedRow> to_run;
  std::vector<size_t> positions;
  std::vector<size_t> empty;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty) {
      empty.push_back(i);
    } else {
      to_run.push_back(std::move(rows[i]));
      positions.push_back(first_position + i);
    }
  }
  for (const size_t i : empty) {
    RowResult echo = EchoPrefix(rows[i]);
    if (auto* observer = listener->observer()) observer->RowLeft({rows[i], &echo});
    listener->RowDone(first_position + i, std::move(echo), NoTime());
  }
  if (to_run.empty()) return;
  work_->Add(std::move(to_run), positions, listener, *share_, queued_ns);
}

uint64_t Translator::BusyTime_ns() const { return work_->BusyTime_ns(); }

std::vector<LoopCounters> Translator::loop_counters() const { return work_->loop_counters(); }

std::string Translator::loop_failure() const { return work_->loop_failure(); }

std::optional<Error> Translator::loss() const { return work_->loss(); }

void Translator::Withdraw(const RowListener& listener, const Error& error) noexcept {
  work_->Withdraw(listener, error);
}

size_t Translator::waiting() const { return share_->rows->value(); }

size_t Translator::Ahead(std::string_view tenant, size_t rows, size_t most) const {
  return work_->Ahead(tenant, rows, std::min(most, waiting()));
}

size_t Translator::unanswered() const {
  const size_t rows = waiting();  // first, since they will be decoded
  return rows + share_->decoding->value();
}

size_t Translator::most_waiting() const { return share_->most_rows; }

void Translator::WaitForPlaces(size_t most, uint64_t seen) {
  if (!share_->rows->WaitBelow(most, seen, kSweepPeriod)) work_->DropCancelled();
}

uint64_t Translator::wakes() const { return share_->rows->wakes(); }

void Translator::WakeWaiting() noexcept { share_->rows->Wake(); }

TranslatorState Translator::state() const {
  TranslatorState state;
  state.waiting_rows = share_->rows->value();
  state.most_waiting_rows = share_->most_rows;
  state.decoding_rows = share_->decoding->value();
  state.busy_ns = work_->BusyTime_ns();
  state.decoding_threads = work_->decoding_threads();
  if (const auto& loop = model_.loop()) {
    state.cache_bytes = loop->cache_bytes_in_use() + loop->logits_bytes();
    state.gpu_cache_bytes = loop->gpu_cache_bytes();
  }
  for (const LoopCounters& loop : work_->loop_counters()) state.loops += loop;
  state.call_loads = model_.call_loads();
  return state;
}

std::string Translator::Description() const {
  const WorkSettings& settings = work_->settings();
  return model_.Description() + ", " +
         (model_.loop() ? "decode loops (" + model_.loop()->description() +
                              "), calls for what they do not run"
                        : "calls") +
         ", " + std::to_string(settings.inter_threads) + " of " +
         std::to_string(settings.intra_threads) + " thread(s) at a time, calls of up to " +
         std::to_string(settings.bounds.max_rows) + " rows and " +
         std::to_string(settings.bounds.max_tokens) + " tokens" + model_.MapDescription();
}

}  // namespace ct2triton
