// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "config/tensor_table.h"

namespace ct2triton {

// One tensor as config.pbtxt declares it.
struct TensorSpec {
  std::string name;
  std::string data_type;            // "TYPE_INT32"
  std::vector<std::int64_t> dims;   // without the batch dimension; -1 = any
  bool optional = false;            // inputs only
  bool allow_ragged_batch = false;  // inputs only
};

// A request that Triton makes itself before the model is ready.
struct WarmUp {
  std::string name;
  std::vector<std::string> inputs;  // inputs with a value; zero_data is an empty text
};

// What the backend reads from a model's configuration.
struct ModelConfig {
  std::string name;
  std::int64_t max_batch_size = 0;  // 0 = tensors carry no batch dimension
  bool takes_text = false;          // its inputs and outputs are text, not ids
  bool streams = false;             // of text: may send many responses to a request (decoupled)
  std::vector<TensorSpec> inputs;   // INPUT_IDS or text_input always; names are checked
  std::vector<TensorSpec> outputs;  // OUTPUT_IDS or text_output always; names are checked
  DecodingOptions decoding;         // the defaults of requests, combination checked
  EngineOptions engine;
  std::vector<WarmUp> warm_ups;
  std::string default_model_filename;  // model folder inside the version folder; empty = not set
  std::vector<std::string> warnings;   // one WARN line each at load

  // The outputs that the model may declare.
  const std::vector<TensorRule>& output_rules() const;
  // The declared tensor. Throws Error(kInvalidArgument).
  const TensorSpec& Output(std::string_view name) const;
};

// Reads a model's configuration from Triton's JSON text (64-bit integers may be
// numbers or strings), and checks it without files or a device. Throws Error: kInvalidArgument for
// mistakes of the operator, kUnsupported for features of Triton that this backend does not have.
// The text starts with the model's name.
ModelConfig ParseModelConfig(std::string_view json);

}  // namespace ct2triton
