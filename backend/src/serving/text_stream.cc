// SPDX-License-Identifier: Apache-2.0
#include "serving/text_stream.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "serving/translation_tensors.h"

namespace ct2triton {
namespace {

size_t RowsOf(const TextPlan& plan) {
  size_t rows = 0;
  for (const PlannedSentence& sentence : plan.sentences) rows += sentence.input_tokens.size();
  return rows;
}

bool StartsWith(const std::string& text, size_t at, const std::string& start) {
  return text.compare(at, start.size(), start) == 0;
}

}  // namespace

TextStream::TextStream(const ModelConfig& config, const Tokenizer& tokenizer,
                       const RequestHandle& request, AnswerContent content, TextPlan plan)
    : config_(config),
      request_(request),
      content_(std::move(content)),
      plan_(std::move(plan)),
      rows_(RowsOf(plan_)),
      unfinished_(plan_.targets.size()) {
  for (size_t i = 0; i < plan_.targets.size(); ++i) {
    targets_.push_back({TargetText(plan_, i, tokenizer, content_.judging), 0, ""});
  }
}

void TextStream::Begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < targets_.size(); ++i) Advance(i);
}

void TextStream::RowGrew(size_t row, int64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Each part tokenizes the whole row, so a long row sends fewer parts.
  constexpr size_t kIdsOfLongRow = 256;
  std::vector<int>& ids = rows_[row].ids;
  ids.push_back(static_cast<int>(id));
  const size_t target = row % targets_.size();
  const bool due = parts_ < config_.engine.max_stream_parts &&
                   ids.size() % (1 + ids.size() / kIdsOfLongRow) == 0;
  if (due && targets_[target].text.next_row() == row) Advance(target);
}

void TextStream::RowDone(size_t row, const RowResult& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  rows_[row].result = &result;
  const size_t target = row % targets_.size();
  if (targets_[target].text.next_row() == row) Advance(target);
}

void TextStream::Advance(size_t target) {
  Target& at = targets_[target];
  auto row = at.text.next_row();
  for (; row && rows_[*row].result != nullptr; row = at.text.next_row()) {
    AddResult(*rows_[*row].result, &at);
    std::vector<int>().swap(rows_[*row].ids);
  }
  std::string settled = row ? at.text.Settled(rows_[*row].ids) : "";
  std::string part = at.text.so_far().text.substr(at.sent);
  at.sent += part.size();
  part += settled.substr(std::min(settled.size(), at.settled.size()));
  at.settled = std::move(settled);
  Send(target, part);
}

// Throws if the row's text does not begin with the part that was already sent.
void TextStream::AddResult(const RowResult& result, Target* target) const {
  const size_t begin = target->text.so_far().text.size();
  target->text.Add(result);
  if (!StartsWith(target->text.so_far().text, begin, target->settled)) {
    throw Error(ErrorCode::kInternal,
                "a part of a stream was sent that its translation does not have");
  }
  target->sent += target->settled.size();
  target->settled.clear();
}

void TextStream::Send(size_t target, const std::string& part) {
  const bool whole = !targets_[target].text.next_row();
  const auto& verdict = targets_[target].text.so_far().verdict;
  if (whole && verdict) content_.judging.metrics->Count(*verdict);
  if (whole && --unfinished_ == 0) {
    last_target_ = target;
    last_part_ = part;
    return;
  }
  if (part.empty() && !whole) return;
  Response response(request_);
  Write(target, part, whole, &response);
  response.SendPart();
  ++parts_;
}

void TextStream::Encode(const std::vector<RowResult>&, Response* response) const {
  Write(last_target_, last_part_, /*last=*/true, response);
}

void TextStream::Write(size_t target, const std::string& part, bool last,
                       Response* response) const {
  const Translation& done = targets_[target].text.so_far();
  Translation sent;
  sent.target_index = target;
  sent.target = done.target;
  sent.text = part;
  if (last) {
    sent.finish = done.finish;
    sent.input_tokens = done.input_tokens;
    sent.output_tokens = done.output_tokens;
    sent.verdict = done.verdict;
  }
  const std::vector<int64_t> shape(config_.max_batch_size > 0 ? 2 : 1, 1);
  for (const std::string& name : content_.outputs)
    WriteOfEach(config_.Output(name), shape, {&sent}, response);
}

}  // namespace ct2triton
