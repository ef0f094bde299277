// SPDX-License-Identifier: Apache-2.0
#include "queue/translator.h"

#include <algorithm>

#include "config/validate.h"
#include "engine/library_check.h"
#include "engine/row_check.h"
#include "queue/worker_pool.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

size_t OrAutomatic(int64_t option, size_t automatic) {
  return option > 0 ? static_cast<size_t>(option) : automatic;
}

// What a call may hold and how many run at once, where the config leaves it to us.
// docs/benchmarks.md has the measurements behind the CPU's numbers; the GPU's are not measured.
PoolSettings Settings(const Device& device, const EngineOptions& engine) {
  const bool cpu = device.kind == Device::Kind::kCpu;
  const size_t cores = UsableCores();
  PoolSettings settings;
  settings.threads_per_worker = OrAutomatic(engine.intra_threads, 1);
  settings.workers = OrAutomatic(
      engine.inter_threads, cpu ? std::max<size_t>(1, cores / settings.threads_per_worker) : 1);
  settings.bounds.max_rows = OrAutomatic(engine.max_batch_rows, cpu ? 32 : 256);
  settings.bounds.max_tokens =
      static_cast<int64_t>(OrAutomatic(engine.max_batch_tokens, cpu ? 2048 : 32768));
  settings.bounds.max_search_tokens =
      static_cast<int64_t>(OrAutomatic(engine.max_search_tokens, cpu ? 32768 : 262144));
  return settings;
}

// The defaults of a model must not be refused at its first request.
void RequireFittingSearch(const Search& search, const Weights& weights,
                          const EngineOptions& engine) {
  if (search.options().max_decoding_length_multiple > 0) return;  // depends on the row
  int64_t limit = search.options().max_decoding_length;
  if (weights.target_positions()) limit = std::min(limit, *weights.target_positions());
  if (const auto complaint = SearchComplaint(search, limit, engine)) {
    throw Error(ErrorCode::kInvalidArgument, "a row with the model's defaults: " + *complaint);
  }
}

}  // namespace

struct Translator::Impl {
  EngineOptions engine;
  std::shared_ptr<const Weights> weights;
  std::shared_ptr<WorkerPool> pool;
  DecodingOptions defaults;
  std::shared_ptr<const Search> default_search;
  std::shared_ptr<const Search> unmapped_default_search;  // null where the other uses no map

  std::shared_ptr<const Search> Unmapped(const Search& search) const {
    if (&search == default_search.get()) return unmapped_default_search;
    DecodingOptions options = search.options();
    options.use_vmap = false;
    return std::make_shared<const Search>(options, *weights);
  }
};

Translator::Translator(const std::string& model_directory, const Device& device,
                       const DecodingOptions& defaults, const EngineOptions& engine)
    : impl_(std::make_unique<Impl>()) {
  ValidateCombination(defaults, engine);
  const PoolSettings settings = Settings(device, engine);
  impl_->engine = engine;
  impl_->engine.max_search_tokens = settings.bounds.max_search_tokens;
  impl_->weights =
      Weights::Get(model_directory, device, engine.compute_type, settings.threads_per_worker);
  impl_->defaults = defaults;
  impl_->default_search = std::make_shared<const Search>(defaults, *impl_->weights);
  if (impl_->default_search->UsesMap()) {
    DecodingOptions unmapped = defaults;
    unmapped.use_vmap = false;
    impl_->unmapped_default_search = std::make_shared<const Search>(unmapped, *impl_->weights);
  }
  RequireFittingSearch(*impl_->default_search, *impl_->weights, impl_->engine);
  impl_->pool = WorkerPool::Get(impl_->weights, settings);
}

Translator::~Translator() = default;

std::vector<CheckedRow> Translator::Check(std::vector<RowInput> rows,
                                          const DecodingOptions* options) const {
  auto search = impl_->default_search;
  if (options != nullptr && *options != defaults()) {
    ValidateCombination(*options, impl_->engine);
    search = std::make_shared<const Search>(*options, *impl_->weights);
  }
  std::shared_ptr<const Search> unmapped;  // for the rows that the vocabulary map is not made for
  std::vector<CheckedRow> checked;
  checked.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool covered = !search->UsesMap() || MapCovers(rows[i], *impl_->weights, impl_->engine);
    if (!covered && !unmapped) unmapped = impl_->Unmapped(*search);
    checked.push_back(CheckRow(std::move(rows[i]), i, covered ? search : unmapped, *impl_->weights,
                               impl_->engine));
  }
  return checked;
}

void Translator::Submit(std::vector<Request> requests) {
  for (auto& request : requests) {
    std::vector<CheckedRow> to_run;
    std::vector<size_t> positions;
    std::vector<size_t> empty;
    for (size_t i = 0; i < request.rows.size(); ++i) {
      if (request.rows[i].empty) {
        empty.push_back(i);
      } else {
        to_run.push_back(std::move(request.rows[i]));
        positions.push_back(i);
      }
    }
    CallTimes times;
    times.start_ns = times.compute_start_ns = times.compute_end_ns = times.end_ns = SteadyNow_ns();
    for (const size_t i : empty) {
      request.listener->RowDone(i, EchoPrefix(request.rows[i], *impl_->weights), times);
    }
    if (!to_run.empty()) {
      impl_->pool->Submit(std::move(to_run), positions, request.listener,
                          static_cast<size_t>(impl_->engine.max_queued_rows));
    }
  }
}

const DecodingOptions& Translator::defaults() const { return impl_->defaults; }

bool Translator::has_vocabulary_map() const { return impl_->weights->vocabulary_map().has_value(); }

int64_t Translator::pad_id() const {
  if (impl_->engine.pad_id) return *impl_->engine.pad_id;
  return impl_->weights->padding_id().value_or(impl_->weights->end_id());
}

std::optional<int64_t> Translator::padding_to_strip() const {
  const int64_t id = pad_id();
  return id == impl_->weights->end_id() ? std::nullopt : std::optional(id);
}

int64_t Translator::vocabulary_size() const {
  return static_cast<int64_t>(
      std::max(impl_->weights->source().size(), impl_->weights->target().size()));
}

std::string Translator::Description() const {
  const PoolSettings& settings = impl_->pool->settings();
  const auto& map = impl_->weights->vocabulary_map();
  return "CTranslate2 " + LibraryVersion() + " on " + impl_->weights->device().Name() +
         ", compute_type \"" + impl_->engine.compute_type + "\" (" + impl_->weights->WeightWidth() +
         " weights), " + std::to_string(settings.workers) + " worker(s) of " +
         std::to_string(settings.threads_per_worker) + " thread(s), calls of up to " +
         std::to_string(settings.bounds.max_rows) + " rows and " +
         std::to_string(settings.bounds.max_tokens) + " tokens" +
         (map ? ", vocabulary map of " + std::to_string(map->size()) + " of " +
                    std::to_string(impl_->weights->target().size()) + " tokens" +
                    (map->fixed() ? "" : " and more by source") +
                    (impl_->default_search->UsesMap() ? "" : ", used on request (use_vmap)")
              : "");
}

}  // namespace ct2triton
