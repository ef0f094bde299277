// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "error.h"
#include "serving/fronts.h"
#include "serving/read_options.h"
#include "serving/row_maker.h"
#include "serving/text_answer.h"
#include "serving/text_plan.h"
#include "serving/text_stream.h"
#include "serving/text_tensors.h"
#include "triton/input.h"

namespace ct2triton {
namespace {

Split SplitOf(const std::string& name) {
  if (name == "lines") return Split::kLines;
  return name == "none" ? Split::kNone : Split::kSentences;
}

// Counted late, because `truncate_input` may cut rows after they are made.
void CountInputTokens(const std::vector<CheckedRow>& rows, std::vector<TextPlan>* plans) {
  for (TextPlan& plan : *plans) {
    for (PlannedSentence& sentence : plan.sentences) {
      for (size_t i = 0; i < sentence.input_tokens.size(); ++i) {
        sentence.input_tokens[i] = rows[sentence.first_row + i].source.size();
      }
    }
  }
}

// Text that is not translated is copied into every answer.
void CheckAnswerBytes(const TextTensors& tensors, size_t targets, int64_t hypotheses) {
  constexpr double kMost = 256.0 * 1024 * 1024;
  double bytes = 0;
  for (const std::string_view text : tensors.texts.values)
    bytes += static_cast<double>(text.size());
  const double copied = bytes * static_cast<double>(targets) * static_cast<double>(hypotheses);
  if (copied <= kMost) return;
  ThrowInvalid(std::string(tensor::kTextInput) + ": " +
               std::to_string(static_cast<int64_t>(bytes)) + " bytes of text into " +
               std::to_string(targets) + " languages with " + std::to_string(hypotheses) +
               " hypotheses may give more than 256 MiB; send fewer at once");
}

bool Has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Name that ct2-prepare gives the stream model.
std::string StreamModel(std::string name) {
  const std::string_view suffix = "-text";
  const bool is_text = name.size() > suffix.size() &&
                       name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  if (is_text) name.resize(name.size() - suffix.size());
  return name + "-stream";
}

class TextReader : public RequestReader {
 public:
  TextReader(const ModelConfig& config, const LoadedModel& model, const Tokenizer& tokenizer,
             const Judging& judging, const RequestHandle& request)
      : config_(config),
        model_(model),
        tokenizer_(tokenizer),
        judging_(judging),
        request_(request) {}

  bool Read() override;
  size_t bytes() const override { return decoded_.bytes; }
  DecodedRequest Take() override;

 private:
  void ReadHead();
  void ReadOutputs();
  bool IsNamed(const char* output) const;
  void CheckStream(const DecodingOptions& decoding) const;
  void CheckRows(bool last);

  const ModelConfig& config_;
  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
  const Judging judging_;
  const RequestHandle& request_;

  bool begun_ = false;
  AnswerContent content_;
  TextTensors tensors_;
  std::optional<DecodingOptions> options_;
  std::optional<RowMaker> maker_;
  size_t texts_begun_ = 0;
  DecodedRequest decoded_;
};

// For a request longer than a slice, the first call only makes this comparison.
bool TextReader::Read() {
  if (!maker_) {
    if (!std::exchange(begun_, true) && InputBytes(request_) > kSliceWork) return false;
    ReadHead();
  }
  size_t work = 0;
  while (work < kSliceWork) {
    if (!maker_->whole()) {
      work += maker_->AddSentence();
    } else if (texts_begun_ < tensors_.texts.values.size()) {
      const size_t i = texts_begun_++;
      work +=
          maker_->Begin(std::string(tensors_.texts.values[i]),
                        tensors_.Source(i, config_.engine.source_language), tensors_.Targets(i));
    } else {
      CheckRows(/*last=*/true);
      return true;
    }
  }
  CheckRows(/*last=*/false);
  return false;
}

// Options first, because over HTTP a misspelt input becomes an unknown option.
void TextReader::ReadHead() {
  ReadOutputs();
  const WantedOutputs wanted{IsNamed(tensor::kScore) || IsNamed(tensor::kHypothesisScores),
                             IsNamed(tensor::kTextAlignments)};
  options_ = ReadOptions(request_, wanted, config_, &decoded_.options);
  tensors_ = ReadTextTensors(request_, config_);
  if (tensors_.stream) decoded_.options.stream = *tensors_.stream;
  const DecodingOptions& in_force = options_ ? *options_ : config_.decoding;
  content_.scores = in_force.return_scores;
  content_.alignments = in_force.return_alignments;
  content_.judging = judging_.With(in_force);
  if (content_.judging.judge == nullptr && !content_.named) LeaveOutVerdicts(&content_.outputs);
  if (decoded_.options.stream) {
    CheckStream(in_force);
  } else if (content_.judging.judge != nullptr) {
    decoded_.retries = RowRetries::For(in_force, config_.engine, model_, content_.judging);
  }
  ValidateDraftBias(in_force, tensor::kDraft,
                    tensors_.has_draft() || tensors_.texts.values.empty());
  const bool all = Has(content_.outputs, tensor::kTextHypotheses);
  CheckAnswerBytes(tensors_, tensors_.targets_of_each(), all ? in_force.num_hypotheses : 1);
  const auto longest =
      in_force.truncate_input ? std::string::npos : static_cast<size_t>(model_.longest_source());
  maker_.emplace(tokenizer_, config_.engine, SplitOf(decoded_.options.split), longest);
}

// A request that names all outputs, with or without those of verdicts, counts as naming none.
void TextReader::ReadOutputs() {
  content_.outputs = request_.WantedOutputs();
  auto others = content_.outputs;
  LeaveOutVerdicts(&others);
  content_.named = others.size() + 2 < config_.output_rules().size();
}

bool TextReader::IsNamed(const char* output) const {
  return content_.named && Has(content_.outputs, output);
}

void TextReader::CheckStream(const DecodingOptions& decoding) const {
  if (!config_.streams) {
    ThrowInvalid("this model sends one response, so it cannot stream; send \"stream\": true to " +
                 Quote(StreamModel(config_.name)) + ", or leave it out");
  }
  if (tensors_.texts.values.size() != 1) {
    ThrowInvalid("a stream is of one text; " + std::string(tensor::kTextInput) + " has " +
                 std::to_string(tensors_.texts.values.size()));
  }
  ValidateStream(decoding);
}

// Checks the rows made since the last call. The options of a request are checked too, even without
// rows.
void TextReader::CheckRows(bool last) {
  const std::vector<RowInput> made = maker_->Rows();
  if (made.empty() && !(last && decoded_.rows.empty())) return;
  std::vector<CheckedRow> rows = model_.Check(made, options_ ? &*options_ : nullptr, *maker_);
  maker_->ForgetRows();
  for (CheckedRow& row : rows) decoded_.Add(std::move(row));
}

DecodedRequest TextReader::Take() {
  std::vector<TextPlan> plans = maker_->TakePlans();
  CountInputTokens(decoded_.rows, &plans);
  if (decoded_.options.stream) {
    auto stream = std::make_unique<TextStream>(config_, tokenizer_, request_, std::move(content_),
                                               std::move(plans.front()));
    decoded_.stream = stream.get();
    decoded_.encoder = std::move(stream);
  } else {
    decoded_.encoder = std::make_unique<TextAnswer>(config_, tokenizer_, std::move(content_),
                                                    std::move(plans), tensors_.targets_of_each());
  }
  return std::move(decoded_);
}

}  // namespace

Front TextFront(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
                const Tokenizer& tokenizer) {
  return [&config, &model, judging, &tokenizer](const RequestHandle& request) {
    return std::make_unique<TextReader>(config, model, tokenizer, judging, request);
  };
}

}  // namespace ct2triton
