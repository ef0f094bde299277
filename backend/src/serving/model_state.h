// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "config/model_config.h"
#include "config/model_files.h"
#include "engine/device.h"
#include "quality/judge.h"
#include "queue/supersede_keys.h"
#include "queue/translator.h"
#include "serving/instances.h"
#include "serving/judging.h"
#include "serving/model_metrics.h"
#include "serving/retry_budget.h"
#include "serving/wait_estimate.h"
#include "text/tokenizer.h"
#include "triton/process_exit.h"
#include "triton_c_api.h"

namespace ct2triton {

// One loaded version of a model: its configuration, and a translator on each device that its
// instances use.
class ModelState {
 public:
  // Loads the model, and gives its state to Triton. Throws Error.
  static void Attach(TRITONBACKEND_Model* model);
  // Frees the state, if Attach set it, and returns the memory to the system.
  static void Detach(TRITONBACKEND_Model* model);
  static ModelState& Of(TRITONBACKEND_Model* model);

  explicit ModelState(TRITONBACKEND_Model* model);
  ~ModelState();
  ModelState(const ModelState&) = delete;
  ModelState& operator=(const ModelState&) = delete;

  const ModelConfig& config() const { return config_; }

  // The translator on `device`, loaded at the first call. Thread-safe.
  std::shared_ptr<Translator> TranslatorOn(const Device& device);

  // Null for a token-ID model.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }

  // The IDs that name languages; empty if the model lists none.
  const TargetIds& languages() const { return languages_; }

  Instances* instances() { return &instances_; }

  // Of all instances.
  SupersedeKeys* supersede_keys() { return &supersede_keys_; }

  ModelMetrics* metrics() { return &metrics_; }
  Judging judging() { return {&judge_, &metrics_, &retries_}; }
  WaitEstimate* waits() { return &waits_; }

 private:
  const ExitsAtOnce exits_at_once_;  // destroyed last: threads run until the other members are gone
  const std::string name_;
  const uint64_t version_;
  const std::string label_;  // "model 'name' version 1"
  const ModelConfig config_;
  const std::string directory_;  // the files of CTranslate2
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const TargetIds languages_;
  Instances instances_;
  SupersedeKeys supersede_keys_;
  ModelMetrics metrics_;
  const Judge judge_;
  RetryBudget retries_;
  WaitEstimate waits_;

  std::mutex mutex_;
  std::vector<std::pair<Device, std::shared_ptr<Translator>>> translators_;
};

}  // namespace ct2triton
