// SPDX-License-Identifier: Apache-2.0
//
// Our own declarations of the part of CTranslate2's C++ interface that we call; the library ships
// no headers where we can reach them. Layouts and signatures were measured on the releases from
// CT2TRITON_CT2_MIN to CT2TRITON_CT2_MAX (see cmake/), x86-64, C++11 std::string.
//
// Nothing here may be guessed: engine/calls/library/library_check.cc holds the running library
// against this file when the first model is loaded, and tests/server proves every option by parity
// with the Python module. Classes carry only the members we use; never create, copy or derive from
// those marked "handle only", since their true size is unknown here.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ctranslate2 {

enum class Device : int { CPU = 0, CUDA = 1 };

enum class ComputeType : int {
  DEFAULT,
  AUTO,
  FLOAT32,
  INT8,
  INT8_FLOAT32,
  INT8_FLOAT16,
  INT8_BFLOAT16,
  INT16,
  FLOAT16,
  BFLOAT16
};

ComputeType str_to_compute_type(const std::string& compute_type);  // throws std::invalid_argument
void set_device_index(Device device, int index);
void set_num_threads(size_t num_threads);  // of the calling thread
void synchronize_stream(Device device);
// Frees what CUDA keeps for the calling thread. Absent before 4.7.2.
__attribute__((weak)) void destroy_context(Device device);

enum class DataType : int { FLOAT32 };  // and others

// A tensor. Only its size and its copying matter to the structs below; `dim` serves for weights.
class StorageView {
 public:
  StorageView(const StorageView& other, bool synchronous = false);
  StorageView(StorageView&& other) noexcept;
  StorageView& operator=(const StorageView& other);
  StorageView& operator=(StorageView&& other) noexcept;
  ~StorageView();

  long dim(long index) const;  // throws std::invalid_argument beyond the rank
  size_t item_size() const;    // bytes of one element
  StorageView to(Device device) const;
  StorageView to(DataType type) const;

  template <typename T>
  const T* data() const;  // throws std::invalid_argument where T is not the type of its elements

 private:
  alignas(8) unsigned char opaque_[72];
};
template <>
const float* StorageView::data<float>() const;

// Handle only.
class Vocabulary {
 public:
  bool contains(const std::string& token) const;
  const std::string& to_token(size_t id) const;  // throws std::invalid_argument beyond the size
  size_t to_id(const std::string& token, const bool allow_unk = true) const;
  size_t size() const;
};

// One step of a greedy search, as the callback of TranslationOptions sees it.
struct GenerationStepResult {
  size_t step;
  size_t batch_id;  // counts the rows that are really run
  size_t token_id;
  size_t hypothesis_id;
  std::string token;
  std::optional<float> score;
  std::optional<StorageView> logits;
  bool is_last;
};

struct TranslationOptions {
  size_t beam_size = 2;
  float patience = 1;
  float length_penalty = 1;
  float coverage_penalty = 0;
  float repetition_penalty = 1;
  size_t no_repeat_ngram_size = 0;
  bool disable_unk = false;
  std::vector<std::vector<std::string>> suppress_sequences;
  float prefix_bias_beta = 0;
  std::variant<std::string, std::vector<std::string>, std::vector<size_t>> end_token;
  bool return_end_token = false;
  size_t max_input_length = 1024;
  size_t max_decoding_length = 256;
  size_t min_decoding_length = 1;
  size_t sampling_topk = 1;
  float sampling_topp = 1;
  float sampling_temperature = 1;
  bool use_vmap = false;
  size_t num_hypotheses = 1;
  bool return_scores = false;
  bool return_attention = false;
  bool return_logits_vocab = false;
  bool return_alternatives = false;
  float min_alternative_expansion_prob = 0;
  bool replace_unknowns = false;
  std::function<bool(GenerationStepResult)> callback;
};

struct TranslationResult {
  std::vector<std::vector<std::string>> hypotheses;
  std::vector<float> scores;
  std::vector<std::vector<std::vector<float>>> attention;
  std::vector<std::vector<StorageView>> logits;
};

namespace models {

// Runs translations on one thread. Made by Model::as_sequence_to_sequence only.
class SequenceToSequenceReplica {
 public:
  virtual ~SequenceToSequenceReplica();

  std::vector<TranslationResult> translate(
      const std::vector<std::vector<std::string>>& source,
      const std::vector<std::vector<std::string>>& target_prefix,
      const TranslationOptions& options);
};

// Weights and vocabularies. Handle only; destroyed by the shared_ptr that `load` returns.
class Model : public std::enable_shared_from_this<Model> {
 public:
  Model() = delete;

  // Virtual slot 0. Throws for other kinds of model.
  virtual std::unique_ptr<SequenceToSequenceReplica> as_sequence_to_sequence() const;

  static std::shared_ptr<const Model> load(const std::string& path, Device device, int device_index,
                                           ComputeType compute_type, bool use_flash_attention,
                                           bool tensor_parallel);
  const StorageView* get_variable_if_exists(const std::string& name) const;
};

// What a Model is whose as_sequence_to_sequence() succeeds; Model is its first base, at offset 0.
class SequenceToSequenceModel : public Model {
 public:
  size_t num_source_vocabularies() const;
  const Vocabulary& get_source_vocabulary(size_t index = 0) const;
  const Vocabulary& get_target_vocabulary() const;
};

}  // namespace models
}  // namespace ctranslate2
