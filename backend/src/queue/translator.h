// SPDX-License-Identifier: Apache-2.0
//
// The front of the translation core: one loaded model on one device that takes rows of ids and
// answers them as they get done. This is all that the Triton side needs to know.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "engine/device.h"
#include "error.h"
#include "rows/checked_row.h"
#include "rows/row_listener.h"

namespace ct2triton {

class Translator {
 public:
  // Loads the model in `model_directory` (or shares weights and workers already there).
  // Throws Error: kNotFound (files), kInvalidArgument (options this model cannot serve),
  // kUnsupported (library or device).
  Translator(const std::string& model_directory, const Device& device,
             const DecodingOptions& defaults, const EngineOptions& engine);
  ~Translator();

  // Checks the rows of one request against the model and the options it asked for.
  // `options` null: the model's defaults. Throws Error(kInvalidArgument), with the row's index.
  std::vector<CheckedRow> Check(std::vector<RowInput> rows, const DecodingOptions* options) const;

  // Hands checked rows of one or more requests to the workers. Blocks while more than
  // `max_queued_rows` wait. Each row comes back through its request's listener, perhaps before
  // Submit returns. Rows with nothing to translate are answered at once, on this thread.
  struct Request {
    std::vector<CheckedRow> rows;
    std::shared_ptr<RowListener> listener;
  };
  void Submit(std::vector<Request> requests);

  const DecodingOptions& defaults() const;
  int64_t pad_id()
      const;  // the option, else <pad> or <blank> of the vocabulary, else the end token
  std::optional<int64_t> padding_to_strip()
      const;  // the same, but nothing where it is the end token
  bool has_vocabulary_map() const;
  int64_t vocabulary_size() const;  // the larger of source and target
  std::string Description() const;  // one line for the log: device, effective compute type, workers

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ct2triton
