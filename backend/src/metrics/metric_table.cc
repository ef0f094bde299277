// SPDX-License-Identifier: Apache-2.0
#include "metrics/metric_table.h"

#include <algorithm>
#include <string_view>

namespace ct2triton {
namespace {

using M = Metric;
constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;
constexpr MetricKind kHistogram = MetricKind::kHistogram;

// Results of requests and rows.
std::vector<MetricSpec> Outcomes() {
  return {
      {M::kRequests,
       "ct2_requests_total",
       kCounter,
       "requests",
       "Requests by how they ended: ok, refused for what the client can mend (invalid), cancelled "
       "by the client or at its time limit, superseded by a newer request, refused for now "
       "(unavailable), or failed.",
       "result",
       {"ok", "invalid", "cancelled", "superseded", "unavailable", "failed"}},
      {M::kRows,
       "ct2_rows_total",
       kCounter,
       "rows",
       "Rows by their finish reason. Failed: rows that ran and have no answer, such as those of "
       "clients that had gone.",
       "finish",
       {"stop", "length", "empty", "cut", "failed"}},
      {M::kRowsRun,
       "ct2_run_rows_total",
       kCounter,
       "rows",
       "Rows that ran in a decode loop, and in calls of CTranslate2.",
       "decoding",
       {"loop", "call"}},
      {M::kEqualRows, "ct2_equal_rows_total", kCounter, "rows",
       "Rows that took the answer of an equal row that ran for both."},
      {M::kMapRows,
       "ct2_vmap_rows_total",
       kCounter,
       "rows",
       "Rows that ran with a vocabulary map or list, and without.",
       "vmap",
       {"used", "unused"}},
      {M::kSourceTokens, "ct2_source_tokens_total", kCounter, "tokens",
       "Source tokens of the rows that ran."},
      {M::kGeneratedTokens, "ct2_generated_tokens_total", kCounter, "tokens",
       "Tokens of the answers, forced tokens included."},
      {M::kUnknownSourceTokens, "ct2_unknown_source_tokens_total", kCounter, "tokens",
       "Source tokens that are the unknown token: text that the model does not know."},
      {M::kUnknownGeneratedTokens, "ct2_unknown_generated_tokens_total", kCounter, "tokens",
       "Tokens of the answers that are the unknown token."},
      {M::kTargetRows, "ct2_target_rows_total", kCounter, "rows",
       "Answered rows by target language, of a prepared model that names its languages.", "target"},
      {M::kTargetTokens, "ct2_target_tokens_total", kCounter, "tokens",
       "Tokens of these answers by target language.", "target"},
  };
}

std::vector<MetricSpec> Verdicts() {
  return {
      {M::kJudged, "ct2_quality_rows_total", kCounter, "rows",
       "Translations that were judged (quality): rows, and of texts each text in each language."},
      {M::kFlagged,
       "ct2_quality_flags_total",
       kCounter,
       "rows",
       "Of these, translations with this flag; one may have several.",
       "flag",
       {"repeats", "uncovered", "invented", "values", "copied", "language", "length", "unsure"}},
      {M::kRetried, "ct2_retried_rows_total", kCounter, "rows",
       "Flagged rows that were decoded once more (on_doubt retry). They count as rows again."},
      {M::kRetriedBetter, "ct2_retried_rows_better_total", kCounter, "rows",
       "Of these, rows whose second answer was given, because its verdict was better."},
  };
}

std::vector<MetricSpec> Times() {
  return {
      {M::kQueueSeconds, "ct2_queue_seconds", kHistogram, "seconds",
       "Time of a row from its arrival in the queue until a thread took it."},
      {M::kFirstTokenSeconds, "ct2_first_token_seconds", kHistogram, "seconds",
       "Time of a row from its arrival in the queue to its first token that was not forced. Greedy "
       "rows only: others have all their tokens at the end."},
      {M::kTokenSeconds, "ct2_token_seconds", kHistogram, "seconds",
       "Time between two tokens of a row: the mean over the tokens after its first. Greedy rows "
       "only."},
      {M::kTokenGapSeconds, "ct2_longest_token_gap_seconds", kHistogram, "seconds",
       "Longest time between two tokens of a row: how long a reader of a stream waits at most. "
       "Greedy rows only."},
  };
}

// Work of calls and loops.
std::vector<MetricSpec> Work() {
  return {
      {M::kCalls, "ct2_calls_total", kCounter, "calls",
       "Calls of CTranslate2, and groups of rows that joined a decode loop together."},
      {M::kCallSteps, "ct2_call_steps_total", kCounter, "steps",
       "Decoder steps of these calls and groups: those of the longest row of each."},
      {M::kPaddingTokens, "ct2_padding_tokens_total", kCounter, "tokens",
       "Padding of sources that are shorter than the longest of their call. A decode loop has "
       "none."},
      {M::kCallLoads, "ct2_call_loads_total", kCounter, "loads",
       "How often CTranslate2 loaded the weights of this model for calls, because a row needed "
       "one."},
      {M::kLoopSteps, "ct2_loop_steps_total", kCounter, "steps", "Steps of the decode loops."},
      {M::kLoopStepRows, "ct2_loop_step_rows_total", kCounter, "rows",
       "Rows that took part, summed over the steps: divided by the steps, the rows of a step."},
      {M::kLoopStepTokens, "ct2_loop_step_tokens_total", kCounter, "tokens",
       "Tokens that the steps fed to the decoder, forced ones included."},
      {M::kLoopStepSeconds, "ct2_loop_step_seconds_total", kCounter, "seconds",
       "Time of the steps."},
      {M::kLoopDraftTokens, "ct2_loop_draft_tokens_total", kCounter, "tokens",
       "Tokens of drafts that were tried: a token that is tried again counts again."},
      {M::kLoopDraftTokensKept, "ct2_loop_draft_tokens_kept_total", kCounter, "tokens",
       "Tokens of drafts in the answers, which took no steps of their own."},
      {M::kLoopJoinedRows, "ct2_loop_joined_rows_total", kCounter, "rows",
       "Rows that joined a decode loop in which others were running."},
      {M::kLoopHelpedParts, "ct2_loop_helped_parts_total", kCounter, "parts",
       "Parts of steps and encodings that threads without work of their own computed for a loop."},
      {M::kGpuPasses, "ct2_gpu_passes_total", kCounter, "passes",
       "Passes of a GPU's decoder for decode loops; a step of many tokens takes several."},
      {M::kGpuPassesAhead, "ct2_gpu_passes_ahead_total", kCounter, "passes",
       "Of these, passes that were launched before the tokens of the pass before were read: the "
       "GPU does not wait for the host between them."},
      {M::kGpuHostChoices, "ct2_gpu_host_choices_total", kCounter, "tokens",
       "Choices made on the host, of logits copied from the GPU, because its kernels do not have "
       "their rules: the device waits for each."},
      {M::kEncodes, "ct2_encodes_total", kCounter, "calls",
       "Runs of the encoder for decode loops."},
      {M::kEncodedRows, "ct2_encoded_rows_total", kCounter, "rows",
       "Sources that they encoded: divided by the runs, the sources of a run."},
      {M::kEncodedTokens, "ct2_encoded_tokens_total", kCounter, "tokens",
       "Tokens of these sources."},
      {M::kEncodeSeconds, "ct2_encode_seconds_total", kCounter, "seconds",
       "Time of encoding, with keys and values of the sources."},
      {M::kSharedEncodings, "ct2_shared_encodings_total", kCounter, "rows",
       "Rows that took the encoding of another row of the same source."},
      {M::kBusySeconds, "ct2_busy_seconds_total", kCounter, "seconds",
       "Time that decoding threads of the machine worked for this model's weights. Not counted on "
       "a "
       "GPU."},
  };
}

// Current state.
std::vector<MetricSpec> States() {
  return {
      {M::kDecodingThreads, "ct2_decoding_threads", kGauge, "threads",
       "Decoding threads of the machine, which all CPU models share."},
      {M::kWaitingRows, "ct2_waiting_rows", kGauge, "rows", "Rows that wait in the queue."},
      {M::kMostWaitingRows, "ct2_most_waiting_rows", kGauge, "rows",
       "Rows at which the queue is full (max_queued_rows): requests then wait outside."},
      {M::kDecodingRows, "ct2_decoding_rows", kGauge, "rows", "Rows that are being decoded."},
      {M::kDecodesInLoop, "ct2_decodes_in_loop", kGauge, "yes or no",
       "1 where greedy rows run in decode loops, 0 where all rows run in calls."},
      {M::kLoopRefused, "ct2_loop_refused", kGauge, "yes or no",
       "1 where decode loops were wanted and cannot run the model, or failed at three steps in a "
       "row; its rows run in calls until it is loaded again, unless calls is refuse, and the log "
       "says why."},
      {M::kGpuLost, "ct2_gpu_lost", kGauge, "yes or no",
       "1 where the model's GPU has failed and its requests fail until the server is restarted; "
       "the log says how. Known of models that run in decode loops."},
      {M::kWeightBytes, "ct2_weight_bytes", kGauge, "bytes",
       "Memory of the weights: packed for decode loops, and of CTranslate2 while calls have its "
       "model. Models on the same files share it, and each shows all of it."},
      {M::kCacheBytes, "ct2_cache_bytes", kGauge, "bytes",
       "Memory of keys, values and logits of the rows in decode loops. Models on the same files "
       "share it."},
      {M::kGpuCacheBytes, "ct2_gpu_cache_bytes", kGauge, "bytes",
       "Memory of the pages on a GPU that running rows and their sources hold in decode loops."},
      {M::kPublications, "ct2_publications_total", kCounter, "publications",
       "Updates of the other lines, except histograms. Once it has grown by two, a page shows all "
       "that was counted before."},
  };
}

}  // namespace

const char* MetricKindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

size_t MetricSpec::fixed_series() const {
  if (kind == MetricKind::kHistogram || open_label()) return 0;
  return std::max<size_t>(1, label_values.size());
}

double MetricSpec::scale() const { return std::string_view(unit) == "seconds" ? 1e-9 : 1; }

const std::vector<MetricSpec>& MetricTable() {
  static const std::vector<MetricSpec> table = [] {
    std::vector<MetricSpec> all;
    for (auto&& part : {Outcomes(), Verdicts(), Times(), Work(), States()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

const MetricSpec& SpecOf(Metric metric) { return MetricTable()[static_cast<size_t>(metric)]; }

const std::vector<double>& HistogramBounds_s() {
  static const std::vector<double> bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                             0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                             1,      2.5,     5,      10,    30};
  return bounds;
}

}  // namespace ct2triton
