// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "config/parse_value.h"
#include "error.h"

namespace ct2triton {
namespace {

std::string With(std::string_view name, std::int64_t value) {
  return std::string(name) + " " + std::to_string(value);
}

void CheckLimit(std::string_view name, std::int64_t value, std::string_view limit_name,
                std::int64_t limit) {
  if (value <= limit) return;
  ThrowInvalid(With(name, value) + " is above the model's " + With(limit_name, limit) +
               "; ask for less, or let the operator raise " + std::string(limit_name));
}

// Whether CTranslate2 uses greedy search: beam_size is 1 and there is no prefix bias, for which it
// runs a beam search with one beam.
bool IsGreedy(const DecodingOptions& o) { return o.beam_size == 1 && o.prefix_bias_beta == 0; }

bool Samples(const DecodingOptions& o) {
  return o.sampling_topk != 1 && o.sampling_temperature != 0;
}

void CheckHypotheses(const DecodingOptions& o) {
  // Greedy search samples or expands as many hypotheses as requested; beam search keeps beam_size *
  // patience.
  if (IsGreedy(o) && (o.return_alternatives || o.sampling_topk != 1)) return;
  const auto kept =
      static_cast<std::int64_t>(std::round(static_cast<float>(o.beam_size) * o.patience));
  // Each alternative is continued by a beam search of its own. If that keeps no hypothesis,
  // CTranslate2 4.8.5 reads the first element of an empty list (SIGSEGV).
  if ((o.return_alternatives ? 1 : o.num_hypotheses) <= kept) return;
  ThrowInvalid(With("num_hypotheses", o.num_hypotheses) +
               " is more than beam_size x patience gives (" + std::to_string(o.beam_size) + " x " +
               Show(o.patience) + " = " + std::to_string(kept) +
               "); raise beam_size, or sample: beam_size 1 and a sampling_topk other than 1");
}

void CheckLengths(const DecodingOptions& o) {
  // With a multiple, each row has its own limit, so the engine checks it for the row.
  if (o.max_decoding_length_multiple > 0) return;
  if (o.min_decoding_length <= o.max_decoding_length) return;
  ThrowInvalid(With("min_decoding_length", o.min_decoding_length) + " is above " +
               With("max_decoding_length", o.max_decoding_length));
}

void CheckSearch(const DecodingOptions& o) {
  // Greedy search reads attention weights that it did not keep (SIGSEGV in CTranslate2 4.8.5).
  if (IsGreedy(o) && o.coverage_penalty != 0) {
    ThrowInvalid("coverage_penalty " + Show(o.coverage_penalty) +
                 " needs beam search; set beam_size above 1 or coverage_penalty to 0");
  }
  // Beam search samples 2 * beam_size candidates; with fewer, CTranslate2 4.8.5 crashes (SIGSEGV).
  if (!IsGreedy(o) && Samples(o) && o.sampling_topk > 0 && o.sampling_topk < 2 * o.beam_size) {
    ThrowInvalid(With("sampling_topk", o.sampling_topk) + " is less than twice " +
                 With("beam_size", o.beam_size) + "; raise it to " +
                 std::to_string(2 * o.beam_size) + ", or set beam_size to 1");
  }
  // 1 / temperature overflows the 16-bit types, so the sampler would draw from NaN values.
  constexpr float kLeastTemperature = 0.01F;
  if (o.sampling_temperature > 0 && o.sampling_temperature < kLeastTemperature) {
    ThrowInvalid("sampling_temperature " + Show(o.sampling_temperature) +
                 " is too small; give 0 (no sampling) or at least 0.01");
  }
}

void CheckAlternatives(const DecodingOptions& o) {
  if (!o.return_alternatives) return;
  if (o.prefix_bias_beta > 0) {
    ThrowInvalid("return_alternatives cannot be combined with prefix_bias_beta " +
                 Show(o.prefix_bias_beta) + "; set one of them to its default");
  }
  // If no alternative reaches the probability, CTranslate2 4.8.5 crashes (SIGFPE).
  if (o.min_alternative_expansion_prob > 0) {
    ThrowInvalid(
        "min_alternative_expansion_prob " + Show(o.min_alternative_expansion_prob) +
        " cannot be used with return_alternatives, because CTranslate2 ends the process when "
        "no alternative reaches it; set it to 0");
  }
}

// A draft is one sequence, and needs a search whose choices can be repeated.
void CheckDraftBias(const DecodingOptions& o) {
  if (o.draft_bias == 0) return;
  std::string other;
  if (o.prefix_bias_beta > 0) {
    other = "prefix_bias_beta " + Show(o.prefix_bias_beta);
  } else if (o.return_alternatives) {
    other = "return_alternatives";
  } else if (Samples(o)) {
    other = With("sampling_topk", o.sampling_topk);
  } else if (o.beam_size == 1 && o.num_hypotheses > 1) {
    other = With("num_hypotheses", o.num_hypotheses) + " at beam_size 1";
  }
  if (other.empty()) return;
  ThrowInvalid("draft_bias " + Show(o.draft_bias) + " cannot be combined with " + other +
               "; it is for greedy and beam searches without sampling");
}

// Whether a relative path, read from <repository>/<model>, leaves the repository.
bool LeavesRepository(const std::string& path) {
  int depth = 1;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part(path.data() + begin, end - begin);
    if (part == "..") --depth;
    if (part != ".." && part != "." && !part.empty()) ++depth;
    if (depth < 0) return true;
    begin = end + 1;
  }
  return false;
}

void CheckPath(const std::string& parameter, const std::string& path, const std::string& example) {
  const bool absolute = !path.empty() && path.front() == '/';
  if (absolute || path.find('\0') != std::string::npos || LeavesRepository(path)) {
    ThrowInvalid(
        "parameter " + Quote(parameter) + ": " + Quote(path) +
        " leaves the model repository; give a path relative to the model's folder that stays "
        "inside the repository, like " +
        Quote(example));
  }
}

}  // namespace

void ValidateCombination(const DecodingOptions& decoding, const EngineOptions& engine) {
  CheckLimit("beam_size", decoding.beam_size, "max_beam_size", engine.max_beam_size);
  CheckLimit("num_hypotheses", decoding.num_hypotheses, "max_num_hypotheses",
             engine.max_num_hypotheses);
  CheckLimit("max_decoding_length", decoding.max_decoding_length, "decoding_length_limit",
             engine.decoding_length_limit);
  CheckHypotheses(decoding);
  CheckLengths(decoding);
  CheckSearch(decoding);
  CheckAlternatives(decoding);
  CheckDraftBias(decoding);
}

bool SearchesGreedily(const DecodingOptions& decoding) {
  return IsGreedy(decoding) && !Samples(decoding) && decoding.num_hypotheses == 1 &&
         !decoding.return_alternatives;
}

void ValidateStream(const DecodingOptions& decoding) {
  const auto require = [](bool holds, const char* setting) {
    if (holds) return;
    ThrowInvalid(
        std::string("a stream needs ") + setting +
        ", because each token is sent as soon as it is chosen; for another search, ask a model "
        "that does not stream");
  };
  require(decoding.beam_size == 1, "beam_size 1");
  require(decoding.prefix_bias_beta == 0, "prefix_bias_beta 0");
  require(!Samples(decoding), "sampling_topk 1");
  require(!decoding.return_alternatives, "return_alternatives false");
  require(decoding.num_hypotheses == 1, "num_hypotheses 1");
}

void ValidateDraftBias(const DecodingOptions& decoding, const char* drafts, bool has_draft) {
  if (decoding.draft_bias == 0 || has_draft) return;
  ThrowInvalid("draft_bias " + Show(decoding.draft_bias) + " needs a draft: " + drafts +
               " is missing or empty in every row; send one, or leave draft_bias out");
}

void ValidateEngine(const EngineOptions& engine) {
  CheckPath("model_path", engine.model_path, "../other_model/1/model");
  CheckPath("tokenizer_path", engine.tokenizer_path, "../other_model/tokenizer");
}

}  // namespace ct2triton
