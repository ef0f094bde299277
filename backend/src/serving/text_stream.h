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

// Sends the translations of one text while they grow. Each response has the next part of one
// translation. Sentences are in order in each language; languages do not wait for each other. The
// last part of a translation has its finish reason, and the last language's ends the stream.
// Because Triton buffers unread parts, each part after max_stream_parts has at least a sentence.
class TextStream : public AnswerStream {
 public:
  // All except the plan must outlive it.
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
    std::string settled;  // part of the next row that was sent too
  };
  struct GrowingRow {
    std::vector<int> ids;
    const RowResult* result = nullptr;  // null until it is done
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
  size_t last_target_ = 0;  // once all are finished: target whose last part is not sent yet,
  std::string last_part_;   // and that part
};

}  // namespace ct2triton
