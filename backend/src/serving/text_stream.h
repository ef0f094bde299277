// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "config/model_config.h"
#include "serving/front.h"
#include "serving/target_text.h"
#include "serving/text_answer.h"
#include "serving/text_plan.h"
#include "text/tokenizer.h"

namespace ct2triton {

// Sends the translations of one text while they grow. Each response has a part of one of them: what
// follows the part before. Sentences follow each other in each language; languages do not wait for
// each other. The last part of each has its finish reason, and that of the last language ends the
// stream. Triton keeps what a client does not read: after max_stream_parts parts, each further
// one has at least a sentence.
class TextStream : public AnswerStream {
 public:
  // All but the plan outlive it.
  TextStream(const ModelConfig& config, const Tokenizer& tokenizer, const RequestHandle& request,
             AnswerContent content, TextPlan plan);

  void Begin() override;
  void RowGrew(size_t row, int64_t id) override;
  void RowDone(size_t row, const RowResult& result) override;
  void Encode(const std::vector<RowResult>& rows, Response* response) const override;

 private:
  struct Target {
    TargetText text;
    size_t sent = 0;      // bytes of the text so far
    std::string settled;  // of the next row, sent too
  };
  struct GrowingRow {
    std::vector<int> ids;
    const RowResult* result = nullptr;  // once it is done
  };

  // Adds the results of the target's rows so far, and sends what is new.
  void Advance(size_t target);
  void AddResult(const RowResult& result, Target* target) const;
  void Send(size_t target, const std::string& part);
  void Write(size_t target, const std::string& part, bool last, Response* response) const;

  const ModelConfig& config_;
  const RequestHandle& request_;
  const AnswerContent content_;
  const TextPlan plan_;

  std::mutex mutex_;  // guards all members below, and sending
  std::deque<Target> targets_;
  std::vector<GrowingRow> rows_;
  int64_t parts_ = 0;       // sent so far
  size_t unfinished_;       // targets
  size_t last_target_ = 0;  // once all are finished: whose last part is not sent yet,
  std::string last_part_;   // and this part
};

}  // namespace ct2triton
