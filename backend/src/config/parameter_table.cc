// SPDX-License-Identifier: Apache-2.0
#include "config/parameters.h"

namespace ct2triton {
namespace {

using D = DecodingOptions;
using E = EngineOptions;
using R = RequestOptions;

constexpr Scope kModel = Scope::kModel;
constexpr Scope kRequest = Scope::kRequest;
constexpr Scope kRequestOnly = Scope::kRequestOnly;

// Upper bounds exist where CTranslate2 has none and a larger value could overflow, exhaust the
// memory or never end. They are far above any use; an operator sets lower ones (max_beam_size,
// max_num_hypotheses, decoding_length_limit).
constexpr double kMaxHypotheses = 1024;
constexpr double kMaxTokens = 65536;  // of one row
constexpr double kMaxThreads = 1024;
constexpr double kMaxId = 2147483647;  // CTranslate2 computes with 32-bit ids
constexpr double kMaxSeed = 4294967295;
constexpr double kMaxMicroseconds = 1e15;

constexpr Range FromTo(double min, double max) { return {min, max, false, false}; }
constexpr Range AboveTo(double min, double max) { return {min, max, true, false}; }
constexpr Range FromToBelow(double min, double max) { return {min, max, false, true}; }

constexpr Range kNone{};
constexpr Range kTokens = FromTo(0, kMaxTokens);
constexpr Range kIds = FromTo(0, kMaxId);
constexpr Range kThreads = FromTo(0, kMaxThreads);

std::vector<Parameter> SearchParameters() {
  return {
      {"beam_size",
       &D::beam_size,
       kRequest,
       FromTo(1, kMaxHypotheses),
       "Hypotheses kept per row at each step; 1 is greedy search.",
       "4",
       {},
       &E::max_beam_size},
      {"patience", &D::patience, kRequest, AboveTo(0, 100),
       "Beam search ends when beam_size times this many hypotheses are finished.", "2"},
      {"length_penalty", &D::length_penalty, kRequest, FromTo(-5, 5),
       "Scores are divided by the length of the hypothesis to the power of this.", "0.6"},
      {"coverage_penalty", &D::coverage_penalty, kRequest, FromTo(-100, 100),
       "Weight of the penalty on source tokens left out; with beam search only.", "0.2"},
      {"repetition_penalty", &D::repetition_penalty, kRequest, FromTo(0.01, 100),
       "Factor on the scores of tokens already generated; above 1 it penalises them.", "1.2"},
      {"no_repeat_ngram_size", &D::no_repeat_ngram_size, kRequest, kTokens,
       "No sequence of this many tokens occurs twice in the output; 0 switches it off.", "3"},
      {"prefix_bias_beta", &D::prefix_bias_beta, kRequest, FromToBelow(0, 1),
       "0 forces the target prefix; above 0 the search is biased towards it, the more the nearer "
       "to 1; the language token is not forced then, and below 0.05 rows may change their "
       "language.",
       "0.5"},
      {"draft_bias", &D::draft_bias, kRequestOnly, FromToBelow(0, 1),
       "Bias of the search towards the draft, from the start to the first token that differs; 0 "
       "lets the draft change no answer; needs DRAFT_IDS or draft, and a decode loop.",
       "0.3"},
      {"num_hypotheses",
       &D::num_hypotheses,
       kRequest,
       FromTo(1, kMaxHypotheses),
       "Hypotheses returned per row.",
       "2",
       {},
       &E::max_num_hypotheses},
      {"return_alternatives", &D::return_alternatives, kRequest, kNone,
       "Return num_hypotheses hypotheses that differ in the first token after the prefix; in "
       "Marian "
       "and T5 models CTranslate2 misreads prefixes of several tokens here, and so do decode "
       "loops.",
       "true"},
      {"min_alternative_expansion_prob", &D::min_alternative_expansion_prob, kRequest, FromTo(0, 1),
       "Least probability of an alternative; must stay 0 with return_alternatives, because "
       "CTranslate2 ends the process when no alternative reaches it.",
       "0"},
  };
}

// Parameters for what a response contains besides tokens.
std::vector<Parameter> AnswerParameters() {
  return {
      {"return_alignments", &D::return_alignments, kRequest, kNone,
       "Find the source position of each output token, also when ALIGNMENTS is not asked for.",
       "true"},
      {"return_scores", &D::return_scores, kRequest, kNone,
       "Compute the score of each hypothesis, also when SCORES is not asked for.", "true"},
      {"quality", &D::quality, kRequest, kNone,
       "Judge each translation, for the outputs of verdicts and the metrics; implies "
       "return_scores.",
       "true"},
      {"on_doubt",
       &D::on_doubt,
       kRequest,
       kNone,
       "What to do about flagged translations: none (verdicts only with quality), flag (the same "
       "as quality) or retry, which also decodes flagged greedy rows once more by beam search and "
       "gives the better answer; streams are only flagged.",
       "retry",
       {"none", "flag", "retry"}},
  };
}

std::vector<Parameter> SamplingParameters() {
  return {
      {"sampling_topk", &D::sampling_topk, kRequest, FromTo(0, 1048576),
       "Sample from this many best candidates, at most 4096 on a GPU; 1 does not sample, 0 takes "
       "the whole vocabulary.",
       "10"},
      {"sampling_topp", &D::sampling_topp, kRequest, AboveTo(0, 1),
       "Sample from the most probable tokens whose probabilities add up to this.", "0.9"},
      {"sampling_temperature", &D::sampling_temperature, kRequest, FromTo(0, 100),
       "Higher values make sampling more random; 0 does not sample.", "0.7"},
      {"sampling_seed", &D::sampling_seed, kRequest, FromTo(-1, kMaxSeed),
       "With the same seed, a row gets the same samples, regardless of other rows; -1 draws anew "
       "each time; needs a decode loop.",
       "7"},
  };
}

std::vector<Parameter> LengthParameters() {
  return {
      {"max_input_length", &D::max_input_length, kModel, kTokens,
       "Longest source row in tokens; a longer one is refused, or cut with truncate_input; 0 "
       "leaves only the model's own limit.",
       "512"},
      {"truncate_input", &D::truncate_input, kRequest, kNone,
       "Cut a source row that is too long instead of refusing it.", "true"},
      {"max_decoding_length",
       &D::max_decoding_length,
       kRequest,
       FromTo(1, kMaxTokens),
       "Longest output row in tokens, the target prefix counted.",
       "512",
       {},
       &E::decoding_length_limit},
      {"max_decoding_length_multiple", &D::max_decoding_length_multiple, kRequest, FromTo(0, 1000),
       "Longest output row as a multiple of the row's own source length, in place of "
       "max_decoding_length; 0 switches it off.",
       "2"},
      {"min_decoding_length", &D::min_decoding_length, kRequest, kTokens,
       "Shortest output row in tokens.", "0"},
  };
}

std::vector<Parameter> TokenParameters() {
  return {
      {"disable_unk", &D::disable_unk, kRequest, kNone, "Never generate the unknown token.",
       "true"},
      {"suppress_sequences", &D::suppress_sequences, kRequest, kIds,
       "Sequences of tokens that are never generated.", R"([["<unk>"], [7, 8]])"},
      {"end_token", &D::end_token, kRequest, kIds,
       "Tokens that end a row; an empty list means the model's own end token.", R"(["</s>", "."])"},
      {"return_end_token", &D::return_end_token, kRequest, kNone,
       "Keep the end token in the output.", "true"},
      {"replace_unknowns", &D::replace_unknowns, kRequest, kNone,
       "Replace each unknown token of the output by the source token it attends to most; of use "
       "where source and target share a vocabulary.",
       "true"},
      {"use_vmap", &D::use_vmap, kRequest, kNone,
       "Restrict the output to the candidates of the model's vocabulary map (vmap.txt), if it is "
       "made for the row, or to the list of the row's target language (shortlists.json).",
       "true"},
  };
}

std::vector<Parameter> RequestParameters() {
  return {
      {"supersede_key", &R::supersede_key, kRequestOnly, FromTo(1, 256),
       "Name of what is translated, such as one speaker's live caption: a newer request of the "
       "same model and version with the same key ends this one.",
       "captions-7/speaker-1"},
      {"split",
       &R::split,
       kRequestOnly,
       kNone,
       "Where a text is cut for translation: at the ends of sentences and lines, of "
       "lines alone, or nowhere.",
       "lines",
       {"sentences", "lines", "none"}},
      {"timeout", &R::timeout, kRequestOnly, FromTo(0, kMaxMicroseconds),
       "Microseconds in which the request must be answered, from when the backend has it: then it "
       "is "
       "ended, and answered CANCELLED with \"deadline exceeded\"; 0 is no limit.",
       "2000000"},
      {"stream", &R::stream, kRequestOnly, kNone,
       "Send the translations of a text in parts while they are generated, which needs a model "
       "with "
       "decoupled: true, such as NAME-stream; false sends one response; also an input tensor of "
       "type BOOL.",
       "true"},
  };
}

std::vector<Parameter> DecodingParameters() {
  return {
      {"compute_type",
       &E::compute_type,
       kModel,
       kNone,
       "Type that CTranslate2 computes in; default keeps the type the model was saved in.",
       "int8",
       {"default", "auto", "float32", "float", "float16", "bfloat16", "int8", "int8_float32",
        "int8_float16", "int8_bfloat16", "int16"}},
      {"decoding",
       &E::decoding,
       kModel,
       kNone,
       "What decodes: the backend's decode loop (loop), which leaves options that it lacks to "
       "CTranslate2, and the whole model on a GPU without fitting kernels, and fails the load of a "
       "model that it cannot run; CTranslate2 alone (calls); or the loop on a CPU if it can run "
       "the model, else CTranslate2 (auto).",
       "loop",
       {"auto", "loop", "calls"}},
      {"calls",
       &E::calls,
       kModel,
       kNone,
       "Whether rows that decode loops cannot run may run as calls of CTranslate2; with refuse, "
       "such a row is refused with the option that needs one, and such a model fails its load.",
       "refuse",
       {"allow", "refuse"}},
      {"proof",
       &E::proof,
       kModel,
       kNone,
       "Whether a decode loop is compared with CTranslate2 at load, in a trial of some tokens, "
       "unless ct2-prepare or an earlier load has proved the same files; off never tries it.",
       "off",
       {"auto", "off"}},
      {"calls_idle_s", &E::calls_idle_s, kModel, FromTo(0, 31536000),
       "Seconds for which the weights that CTranslate2 loads for the first call stay in memory "
       "after the last one; a model whose rows all run as calls keeps them.",
       "600"},
  };
}

std::vector<Parameter> EngineParameters() {
  return {
      {"max_cache_bytes", &E::max_cache_bytes, kModel, FromTo(0, 1e15),
       "Most bytes of keys and values that the running rows of decode loops may hold, each counted "
       "up to its length limit, each beam by itself and equal sources once; at least one row runs, "
       "and searches of several sequences together get three quarters; 0 is 4 "
       "GiB; on a GPU at most nine tenths of what is free.",
       "8589934592"},
      {"inter_threads", &E::inter_threads, kModel, kThreads,
       "Calls and steps of this model at the same time, at most; on a CPU all models share as many "
       "threads as it has cores; 0 is cores / intra_threads on the CPU and 1 on a GPU.",
       "2"},
      {"intra_threads", &E::intra_threads, kModel, kThreads,
       "CPU threads that compute one step of a decode loop or one CTranslate2 call, at most; a "
       "call always takes as many, a step has one of its own and others while they are idle, which "
       "also encode waiting sources; 0 is 1 for calls and all cores for steps.",
       "4"},
      {"max_batch_rows", &E::max_batch_rows, kModel, FromTo(0, 65536),
       "Most rows of one CTranslate2 call, or of one step of a decode loop, where each beam "
       "counts; a loop that is full of beam searches takes some other rows besides; "
       "0 is automatic.",
       "32"},
      {"max_batch_tokens", &E::max_batch_tokens, kModel, FromTo(0, 16777216),
       "Most source tokens of one CTranslate2 call, padding counted, or tokens that a decode loop "
       "encodes between two steps; 0 is automatic.",
       "4096"},
      {"max_search_tokens", &E::max_search_tokens, kModel, FromTo(0, 16777216),
       "Most tokens that the search of one CTranslate2 call may come to keep, as rows x hypotheses "
       "x length limit; a row that alone needs more is refused; 0 is 32768 on the CPU and 262144 "
       "on a GPU.",
       "65536"},
      {"max_queued_rows", &E::max_queued_rows, kModel, FromTo(1, 1048576),
       "Most rows of this model that may wait to be decoded; while as many requests wait to enter, "
       "no further batch is taken from Triton's queue.",
       "1024"},
      {"tenant_header", &E::tenant_header, kModel, FromTo(1, 256),
       "Header or request parameter, without regard to case, that names the tenant: tenants have "
       "equal shares of the queue, and while it is full, the newest requests of the one that has "
       "the most are refused.",
       "x-tenant"},
  };
}

std::vector<Parameter> ModelParameters() {
  return {
      {"model_path", &E::model_path, kModel, kNone,
       "Folder of the CTranslate2 files, relative to the model's folder and inside the "
       "repository, where {version} stands for the version's number; empty finds it in the version "
       "folder.",
       "../other_model/{version}/model"},
      {"verify_files", &E::verify_files, kModel, kNone,
       "At load, compare the files of a prepared model with the SHA-256 in its ct2_model.json; one "
       "that is missing or has changed fails the load.",
       "true"},
      {"pad_id", &E::pad_id, kModel, kIds,
       "Id that pads output rows and is stripped from the end of input rows.", "1"},
      {"special_ids", &E::special_ids, kModel, kIds,
       "Ids of special tokens; a source row of only these is answered as empty text.",
       "[0, 1, 2, 3]"},
      {"alignment_layer", &E::alignment_layer, kModel, kTokens,
       "Layer of the decoder, from 0, by whose attention decode loops, and no calls, say where a "
       "token comes from; without it, the layer that the model names, or the last.",
       "4"},
      {"alignment_heads", &E::alignment_heads, kModel, kTokens,
       "Heads of that layer, from 0, whose mean counts; an empty list means those that the model "
       "names, or else the first, and all heads of an alignment_layer.",
       "[0, 1, 2, 3]"},
      {"vmap_prefix_ids", &E::vmap_prefix_ids, kModel, kIds,
       "Ids of the target languages that the vocabulary map is made for: only rows with one of "
       "them in TARGET_PREFIX use it; an empty list means all rows.",
       "[256042]"},
      {"vmap_source_ids", &E::vmap_source_ids, kModel, kIds,
       "The same for models whose INPUT_IDS name the target language.", "[60]"},
      {"max_beam_size", &E::max_beam_size, kModel, FromTo(1, kMaxHypotheses),
       "Largest beam_size that the config and requests may set.", "5"},
      {"max_num_hypotheses", &E::max_num_hypotheses, kModel, FromTo(1, kMaxHypotheses),
       "Largest num_hypotheses that the config and requests may set.", "5"},
      {"decoding_length_limit", &E::decoding_length_limit, kModel, FromTo(1, kMaxTokens),
       "Largest output length in tokens that the config and requests may set.", "1024"},
      {"tokenizer_path", &E::tokenizer_path, kModel, kNone,
       "Folder of the tokenizer of a model that takes text, relative to the model's folder and "
       "inside the repository.",
       "../other_model/tokenizer"},
      {"source_language", &E::source_language, kModel, kNone,
       "Language of texts whose request names none.", "en"},
      {"max_text_bytes", &E::max_text_bytes, kModel, FromTo(1, 1073741824),
       "Most bytes of one text.", "65536"},
      {"max_text_sentences", &E::max_text_sentences, kModel, FromTo(1, 1048576),
       "Most sentences of one text.", "256"},
      {"max_targets", &E::max_targets, kModel, FromTo(1, 4096),
       "Most target languages of one text.", "8"},
      {"max_request_rows", &E::max_request_rows, kModel, FromTo(1, 16777216),
       "Most rows of one request: of texts, sentences x target languages.", "1024"},
      {"max_stream_parts", &E::max_stream_parts, kModel, FromTo(0, 16777216),
       "Most parts of a stream that may be less than a sentence; after these, a translation is "
       "sent sentence by sentence.",
       "1000"},
      {"allowed_parameters", &E::allowed_parameters, kModel, kNone,
       "Names of unknown parameters to ignore instead of refusing them, without regard to case; "
       "a trailing * stands for any ending.",
       R"(["x-request-id", "x-b3-*"])"},
  };
}

}  // namespace

const std::vector<Alias>& Aliases() {
  static const std::vector<Alias> table = {
      {"beam_width", "beam_size"},
      {"max_tokens", "max_decoding_length"},
      {"n", "num_hypotheses"},
      {"seed", "sampling_seed"},
      {"temperature", "sampling_temperature"},
      {"top_k", "sampling_topk"},
      {"top_p", "sampling_topp"},
  };
  return table;
}

const std::vector<Parameter>& Parameters() {
  static const std::vector<Parameter> table = [] {
    std::vector<Parameter> all;
    for (auto* part :
         {SearchParameters, AnswerParameters, SamplingParameters, LengthParameters, TokenParameters,
          RequestParameters, DecodingParameters, EngineParameters, ModelParameters}) {
      for (auto& parameter : part()) all.push_back(std::move(parameter));
    }
    return all;
  }();
  return table;
}

}  // namespace ct2triton
