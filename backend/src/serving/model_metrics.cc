// SPDX-License-Identifier: Apache-2.0
#include "serving/model_metrics.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "triton/guard.h"
#include "triton/log.h"

namespace ct2triton {
namespace {

using M = Metric;

// Index of a label value in the table.
size_t PlaceOf(Metric metric, std::string_view value) {
  const auto& values = SpecOf(metric).label_values;
  const auto found = std::find(values.begin(), values.end(), value);
  return static_cast<size_t>(found - values.begin());
}

const char* ResultOf(const Error& failure, bool superseded) {
  if (superseded) return "superseded";
  switch (failure.code()) {
    case ErrorCode::kInvalidArgument:
      return "invalid";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kInternal:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNoKernels:
      return "failed";
  }
  return "failed";
}

uint64_t Occurrences(const Ids& ids, int64_t id) {
  return static_cast<uint64_t>(std::count(ids.begin(), ids.end(), id));
}

}  // namespace

ModelMetrics::ModelMetrics(const TargetIds& languages, const std::string& model,
                           uint64_t version) noexcept
    : model_(model), version_(version) {
  try {
    Make(languages);
  } catch (...) {
    LogCurrentError();  // the model is served without the missing metrics
  }
}

void ModelMetrics::Make(const TargetIds& languages) {
  for (const MetricSpec& spec : MetricTable()) {
    if (spec.kind == MetricKind::kHistogram) {
      times_.emplace(spec.id, MetricSeries(spec.id, model_, version_));
    } else if (spec.id == M::kPublications) {
      publications_.emplace(spec.id, model_, version_);
    } else if (spec.id != M::kMapRows) {
      MakeSeries(spec);
    }
  }
  targets_.emplace(languages, model_, version_);
  clock_ = MetricsClock::OfProcess();
  clock_->Add(this);
}

void ModelMetrics::MakeSeries(const MetricSpec& spec) {
  for (size_t i = 0; i < spec.fixed_series(); ++i) {
    const std::string value = spec.label != nullptr ? spec.label_values[i] : "";
    shown_.push_back({spec.id, i, MetricSeries(spec.id, model_, version_, value)});
  }
}

ModelMetrics::~ModelMetrics() {
  if (!clock_) return;
  clock_->Remove(this);
  Publish();  // a reload continues from these counts
}

void ModelMetrics::Follow(const std::shared_ptr<const Translator>& translator) noexcept {
  const LoadedModel& model = translator->model();
  try {
    Followed followed{translator, translator->state()};
    unknown_source_id_ = model.unknown_source_id();
    unknown_id_ = model.unknown_id();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (model.has_vocabulary_map() && followed_.empty()) MakeSeries(SpecOf(M::kMapRows));
    followed_.push_back(std::move(followed));
  } catch (...) {
    LogCurrentError();
  }
}

void ModelMetrics::CountRequest(const Error* failure, bool superseded) noexcept {
  const char* result = failure == nullptr ? "ok" : ResultOf(*failure, superseded);
  cells_.Add(M::kRequests, 1, PlaceOf(M::kRequests, result));
}

void ModelMetrics::Count(const RunReport& report) noexcept {
  cells_.Add(M::kCalls, 1);
  cells_.Add(M::kCallSteps, static_cast<uint64_t>(report.steps));
  cells_.Add(M::kPaddingTokens, static_cast<uint64_t>(report.padding_tokens));
  cells_.Add(M::kMapRows, report.mapped_rows, 0);
  cells_.Add(M::kMapRows, report.rows - report.mapped_rows, 1);
}

void ModelMetrics::Count(const RowReport& report) noexcept {
  if (!report.row.empty) {
    cells_.Add(M::kRowsRun, 1, report.in_loop ? 0 : 1);
    cells_.Add(M::kEqualRows, report.equal ? 1 : 0);
    cells_.Add(M::kSourceTokens, report.row.source.size());
    cells_.Add(M::kUnknownSourceTokens, Occurrences(report.row.source, unknown_source_id_));
    Observe(M::kQueueSeconds, report.queued_ns, report.taken_ns);
  }
  if (report.result != nullptr && !report.result->hypotheses.empty()) {
    CountAnswer(report);
  } else {
    cells_.Add(M::kRows, 1, kFinishReasons);  // "failed" follows the reasons
  }
}

void ModelMetrics::Count(const Verdict& verdict) noexcept {
  cells_.Add(M::kJudged, 1);
  for (size_t i = 0; i < kFlags; ++i) cells_.Add(M::kFlagged, verdict.Raises(Flag{i}) ? 1 : 0, i);
}

void ModelMetrics::CountAnswer(const RowReport& report) noexcept {
  const Hypothesis& best = report.result->hypotheses.front();
  cells_.Add(M::kRows, 1, static_cast<size_t>(best.finish));
  if (report.row.empty) return;
  cells_.Add(M::kGeneratedTokens, best.ids.size());
  cells_.Add(M::kUnknownGeneratedTokens, Occurrences(best.ids, unknown_id_));
  CountTimes(report, best.ids.size() - std::min(best.ids.size(), report.row.forced_ids));
  if (targets_) targets_->Count(report);
}

// `tokens`: of the answer, without forced ones.
void ModelMetrics::CountTimes(const RowReport& report, size_t tokens) noexcept {
  if (report.first_token_ns == 0) return;
  Observe(M::kFirstTokenSeconds, report.queued_ns, report.first_token_ns);
  if (tokens <= 1) return;
  Observe(M::kTokenSeconds, report.first_token_ns, report.end_ns, tokens - 1);
  Observe(M::kTokenGapSeconds, 0, report.longest_gap_ns);
}

void ModelMetrics::Observe(Metric metric, uint64_t from_ns, uint64_t to_ns,
                           uint64_t parts) noexcept {
  const auto known = times_.find(metric);
  if (known == times_.end()) return;
  known->second.Observe_ns((std::max(from_ns, to_ns) - from_ns) / parts);
}

void ModelMetrics::Publish() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  ReadStates();
  for (Shown& each : shown_) each.series.MoveTo(cells_.Get(each.metric, each.value));
  if (targets_) targets_->Show();
  cells_.Add(M::kPublications, 1);
  if (publications_) publications_->MoveTo(cells_.Get(M::kPublications));  // after all others
}

// Whether loops stopped because several steps failed or the device is lost. Logs it once.
bool ModelMetrics::LoopsEnded(Followed* followed) const {
  if (followed->logged) return true;
  const auto loss = followed->translator->loss();
  const std::string failure = loss ? loss->what() : followed->translator->loop_failure();
  if (failure.empty()) return false;
  const std::string steps =
      "its decode loop failed at several steps, the last time with: " + failure + "; " +
      (followed->translator->model().calls()
           ? "until it is loaded again, its rows run as calls of CTranslate2"
           : "its rows stay in the loop, because its parameter calls is \"refuse\"");
  LogError(
      ("model " + model_ + " version " + std::to_string(version_) + ": " + (loss ? failure : steps))
          .c_str());
  followed->logged = true;
  return true;
}

void ModelMetrics::ReadStates() noexcept {
  TranslatorState sum;
  size_t weight_bytes = 0;
  bool in_loop = false;
  bool refused = false;
  bool lost = false;
  for (Followed& each : followed_) {
    TranslatorState now;
    bool ended = false;
    try {
      now = each.translator->state();
      ended = LoopsEnded(&each);
    } catch (...) {  // no memory: logged the next time
      return;
    }
    const LoadedModel& model = each.translator->model();
    weight_bytes += model.weight_bytes();
    const bool is_lost = each.translator->loss().has_value();
    lost = lost || is_lost;
    refused = refused || !model.loop_refusal().empty() || (ended && !is_lost);
    in_loop = in_loop || (model.loop() != nullptr && (!ended || (!is_lost && !model.calls())));
    sum += now.Since(each.before);
  }
  cells_.Set(M::kWaitingRows, sum.waiting_rows);
  cells_.Set(M::kMostWaitingRows, sum.most_waiting_rows);
  cells_.Set(M::kDecodingRows, sum.decoding_rows);
  cells_.Set(M::kDecodingThreads, sum.decoding_threads);
  cells_.Set(M::kCacheBytes, sum.cache_bytes);
  cells_.Set(M::kGpuCacheBytes, sum.gpu_cache_bytes);
  cells_.Set(M::kWeightBytes, weight_bytes);
  cells_.Set(M::kDecodesInLoop, in_loop ? 1 : 0);
  cells_.Set(M::kLoopRefused, refused ? 1 : 0);
  cells_.Set(M::kGpuLost, lost ? 1 : 0);
  cells_.Set(M::kBusySeconds, sum.busy_ns);
  cells_.Set(M::kCallLoads, sum.call_loads);
  const LoopCounters& loops = sum.loops;
  cells_.Set(M::kLoopSteps, loops.steps);
  cells_.Set(M::kLoopStepRows, loops.step_rows);
  cells_.Set(M::kLoopStepTokens, loops.step_tokens);
  cells_.Set(M::kLoopStepSeconds, loops.step_ns);
  cells_.Set(M::kLoopDraftTokens, loops.draft_tokens);
  cells_.Set(M::kLoopDraftTokensKept, loops.draft_tokens_kept);
  cells_.Set(M::kLoopJoinedRows, loops.joined_rows);
  cells_.Set(M::kLoopHelpedParts, loops.helped_parts);
  cells_.Set(M::kGpuPasses, loops.gpu_passes);
  cells_.Set(M::kGpuPassesAhead, loops.gpu_passes_ahead);
  cells_.Set(M::kGpuHostChoices, loops.gpu_host_choices);
  cells_.Set(M::kEncodes, loops.encodes);
  cells_.Set(M::kEncodedRows, loops.encoded_rows);
  cells_.Set(M::kEncodedTokens, loops.encoded_tokens);
  cells_.Set(M::kEncodeSeconds, loops.encode_ns);
  cells_.Set(M::kSharedEncodings, loops.shared_encodings);
}

}  // namespace ct2triton
