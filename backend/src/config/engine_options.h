// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ct2triton {

// How one model is loaded and run; set in config.pbtxt only, fixed from load to unload. Ranges and
// documentation: the table in parameter_table.cc.
struct EngineOptions {
  std::string compute_type = "default";       // CTranslate2's name of the compute type
  std::string decoding = "auto";              // "loop", "calls" or "auto"
  std::string calls = "allow";                // CTranslate2 calls: allow or refuse
  std::string proof = "auto";                 // of the loop, by a trial at load: auto or off
  std::int64_t calls_idle_s = 60;             // seconds that CTranslate2's model stays loaded
  std::int64_t max_cache_bytes = 0;           // of keys and values in loops; 0 = automatic
  std::int64_t inter_threads = 0;             // workers; 0 = cores / intra_threads, 1 on a GPU
  std::int64_t intra_threads = 0;             // threads of a call or step; 0 = automatic
  std::int64_t max_batch_rows = 0;            // rows of one CTranslate2 call; 0 = automatic
  std::int64_t max_batch_tokens = 0;          // padded tokens of one call; 0 = automatic
  std::int64_t max_search_tokens = 0;         // rows x hypotheses searched x length limit of one
                                              // call; 0 = automatic
  std::int64_t max_queued_rows = 512;         // rows of a model that may wait
  std::string tenant_header;                  // names the tenant; empty = one tenant
  bool verify_files = false;                  // compare with the manifest at load
  std::string model_path;                     // relative to the model's folder; empty = found
                                              // in the version folder
  std::optional<std::int64_t> pad_id;         // pads output rows; stripped from input rows
  std::vector<std::int64_t> special_ids;      // a source row of only these is answered "empty"
  std::vector<std::int64_t> vmap_prefix_ids;  // a row needs one of these in its TARGET_PREFIX
  std::vector<std::int64_t> vmap_source_ids;  // and of these in its INPUT_IDS, to use the
                                              // vocabulary map; empty = any row may
  std::int64_t max_beam_size = 32;            // largest beam_size of config and requests
  std::int64_t max_num_hypotheses = 32;       // largest num_hypotheses of config and requests
  std::int64_t decoding_length_limit = 4096;  // tokens; largest length limit of any row
  // Attention heads for alignments; nullopt: those that the model names, or all heads of the layer.
  std::optional<std::int64_t> alignment_layer;
  std::vector<std::int64_t> alignment_heads;
  // Options of models that take text:
  std::string tokenizer_path = "tokenizer";     // relative to the model's folder
  std::string source_language;                  // of requests that name none
  std::int64_t max_text_bytes = 1048576;        // of one text
  std::int64_t max_text_sentences = 16384;      // of one text
  std::int64_t max_targets = 64;                // target languages of one text
  std::int64_t max_request_rows = 65536;        // of a request; of texts, sentences x targets
  std::int64_t max_stream_parts = 10000;        // after this many, each part is at least a sentence
  std::vector<std::string> allowed_parameters;  // unknown parameter names to ignore
};

}  // namespace ct2triton
