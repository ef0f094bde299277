// SPDX-License-Identifier: Apache-2.0
#include "serving/text_front.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "error.h"
#include "serving/read_options.h"
#include "serving/text_answer.h"
#include "serving/text_plan.h"
#include "serving/text_stream.h"
#include "serving/text_tensors.h"
#include "text/segmenter.h"
#include "text/utf8.h"
#include "triton/input.h"

namespace ct2triton {
namespace {

[[noreturn]] void Refuse(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

Split SplitOf(const std::string& name) {
  if (name == "lines") return Split::kLines;
  return name == "none" ? Split::kNone : Split::kSentences;
}

std::string_view TextOf(const TextPlan& plan, const Span& span) {
  return std::string_view(plan.text).substr(span.begin, span.end - span.begin);
}

// Makes rows of texts, one after the other, and knows which is which.
class RowMaker : public RowNames {
 public:
  RowMaker(const Tokenizer& tokenizer, const EngineOptions& engine, Split split,
           size_t longest_source)
      : tokenizer_(tokenizer), engine_(engine), split_(split), longest_(longest_source) {}

  // `index`: the text's number, for messages. Empty languages are those that nobody named.
  TextPlan Plan(size_t index, std::string text, const std::string& source,
                const std::vector<std::string>& targets);

  std::vector<RowInput> Rows() const;  // of all texts; views of what this object holds

  std::string Row(size_t row) const override;
  std::string Source(size_t row) const override { return Row(row); }
  std::string Prefix(size_t row) const override { return Row(row); }

 private:
  struct MadeRow {
    std::vector<int> source;
    const std::vector<int>* prefix;
    size_t text;   // its number
    size_t begin;  // where the sentence begins in it, in bytes
    std::string target;
  };

  using Sources = std::vector<std::vector<int>>;  // of one piece, for each target

  [[noreturn]] void RefuseText(const std::string& what) const {
    Refuse(std::string(tensor::kTextInput) + ", row " + std::to_string(index_) + ": " + what);
  }
  void CheckText(const std::string& text) const;
  void AddPiece(const Span& span, TextPlan* plan);
  void AddRows(PlannedPiece piece, Sources sources, TextPlan* plan);
  Sources SourcesOf(std::string_view part, const TextPlan& plan) const;
  bool Fit(const Sources& sources) const;

  const Tokenizer& tokenizer_;
  const EngineOptions& engine_;
  const Split split_;
  const size_t longest_;  // source ids; a longer sentence is cut
  size_t index_ = 0;
  std::string source_;
  std::vector<const std::vector<int>*> prefixes_;  // of each target of the text
  std::deque<std::vector<int>> kept_prefixes_;
  std::deque<MadeRow> rows_;
  size_t planned_ = 0;  // rows, with those that have nothing to translate
};

TextPlan RowMaker::Plan(size_t index, std::string text, const std::string& source,
                        const std::vector<std::string>& targets) {
  index_ = index;
  CheckText(text);
  source_ = tokenizer_.Language(source, Side::kSource);
  TextPlan plan;
  plan.text = std::move(text);
  plan.source = source_;
  prefixes_.clear();
  for (const std::string& target : targets) {
    plan.targets.push_back(tokenizer_.Language(target, Side::kTarget));
    prefixes_.push_back(&kept_prefixes_.emplace_back(tokenizer_.Prefix(plan.targets.back())));
  }
  for (const Span& span : Segment(plan.text, source_.empty() ? source : source_, split_)) {
    AddPiece(span, &plan);
  }
  return plan;
}

void RowMaker::CheckText(const std::string& text) const {
  if (text.size() > static_cast<size_t>(engine_.max_text_bytes)) {
    RefuseText("its " + std::to_string(text.size()) + " bytes are more than the model's " +
               "max_text_bytes " + std::to_string(engine_.max_text_bytes));
  }
  if (const auto offset = InvalidUtf8(text)) {
    RefuseText("it is no UTF-8 text: the byte at offset " + std::to_string(*offset) +
               " belongs to no character");
  }
}

RowMaker::Sources RowMaker::SourcesOf(std::string_view part, const TextPlan& plan) const {
  Sources sources;
  for (const std::string& target : plan.targets) {
    sources.push_back(tokenizer_.Source(part, source_, target));
  }
  return sources;
}

bool RowMaker::Fit(const Sources& sources) const {
  return std::all_of(sources.begin(), sources.end(),
                     [this](const std::vector<int>& ids) { return ids.size() <= longest_; });
}

void RowMaker::AddPiece(const Span& span, TextPlan* plan) {
  Sources sources = SourcesOf(TextOf(*plan, span), *plan);
  if (Fit(sources)) return AddRows({span}, std::move(sources), plan);
  const auto fits = [&](std::string_view part) { return Fit(SourcesOf(part, *plan)); };
  for (const Span& part : CutToFit(plan->text, span, fits)) {
    AddRows({part, true}, SourcesOf(TextOf(*plan, part), *plan), plan);
  }
}

void RowMaker::AddRows(PlannedPiece piece, Sources sources, TextPlan* plan) {
  if (plan->pieces.size() == static_cast<size_t>(engine_.max_text_sentences)) {
    RefuseText("it has more sentences than the model's max_text_sentences " +
               std::to_string(engine_.max_text_sentences));
  }
  planned_ += sources.size();
  if (planned_ > static_cast<size_t>(engine_.max_request_rows)) {
    RefuseText(
        "up to here the request has more sentences times target languages than the model's "
        "max_request_rows " +
        std::to_string(engine_.max_request_rows));
  }
  // Where there is nothing to translate, there is none in any language.
  piece.sent = !sources.empty() && !sources.front().empty();
  piece.first_row = rows_.size();
  for (size_t i = 0; piece.sent && i < sources.size(); ++i) {
    piece.input_tokens.push_back(sources[i].size());
    rows_.push_back(
        {std::move(sources[i]), prefixes_[i], index_, piece.span.begin, plan->targets[i]});
  }
  plan->pieces.push_back(std::move(piece));
}

std::string RowMaker::Row(size_t row) const {
  const MadeRow& made = rows_[row];
  return std::string(tensor::kTextInput) + ", row " + std::to_string(made.text) +
         ", the sentence at byte " + std::to_string(made.begin) +
         (made.target.empty() ? "" : " into " + made.target);
}

std::vector<RowInput> RowMaker::Rows() const {
  std::vector<RowInput> rows;
  rows.reserve(rows_.size());
  for (const MadeRow& row : rows_) {
    rows.push_back({IdView(row.source.data(), row.source.size(), IntegerType::kInt32),
                    IdView(row.prefix->data(), row.prefix->size(), IntegerType::kInt32)});
  }
  return rows;
}

// What is not translated is copied into every answer.
void CheckAnswerBytes(const TextTensors& tensors, size_t targets, int64_t hypotheses) {
  constexpr double kMost = 256.0 * 1024 * 1024;
  double bytes = 0;
  for (const std::string& text : tensors.texts.values) bytes += static_cast<double>(text.size());
  const double copied = bytes * static_cast<double>(targets) * static_cast<double>(hypotheses);
  if (copied <= kMost) return;
  Refuse(std::string(tensor::kTextInput) + ": " + std::to_string(static_cast<int64_t>(bytes)) +
         " bytes of text into " + std::to_string(targets) + " languages with " +
         std::to_string(hypotheses) + " hypotheses may give more than 256 MiB; send fewer at once");
}

}  // namespace

DecodedRequest TextFront::Decode(const RequestHandle& request) const {
  auto wanted = request.WantedOutputs();
  const bool scores = std::any_of(wanted.begin(), wanted.end(), [](const std::string& name) {
    return name == tensor::kScore || name == tensor::kHypothesisScores;
  });
  TextTensors tensors = ReadTextTensors(request, config_);
  const size_t targets = tensors.targets_of_each();
  DecodedRequest decoded;
  const auto options = ReadOptions(request, {scores}, config_, &decoded.options);
  const DecodingOptions& in_force = options ? *options : config_.decoding;
  if (config_.streams) ValidateStream(in_force);
  const bool all = std::find(wanted.begin(), wanted.end(), tensor::kTextHypotheses) != wanted.end();
  CheckAnswerBytes(tensors, targets, all ? in_force.num_hypotheses : 1);
  const auto longest =
      in_force.truncate_input ? std::string::npos : static_cast<size_t>(model_.longest_source());
  RowMaker maker(tokenizer_, config_.engine, SplitOf(decoded.options.split), longest);
  std::vector<TextPlan> plans;
  for (size_t i = 0; i < tensors.texts.values.size(); ++i) {
    plans.push_back(maker.Plan(i, std::move(tensors.texts.values[i]),
                               tensors.Source(i, config_.engine.source_language),
                               tensors.Targets(i)));
  }
  decoded.rows = model_.Check(maker.Rows(), options ? &*options : nullptr, maker);
  if (config_.streams) {
    AddStream(request, std::move(plans), &decoded);
    return decoded;
  }
  decoded.encoder = std::make_unique<TextAnswer>(config_, tokenizer_, std::move(wanted),
                                                 std::move(plans), targets);
  return decoded;
}

void TextFront::AddStream(const RequestHandle& request, std::vector<TextPlan> plans,
                          DecodedRequest* decoded) const {
  if (plans.size() != 1) {
    Refuse("a stream is of one text; " + std::string(tensor::kTextInput) + " has " +
           std::to_string(plans.size()));
  }
  auto stream =
      std::make_unique<TextStream>(config_, tokenizer_, request, std::move(plans.front()));
  decoded->stream = stream.get();
  decoded->encoder = std::move(stream);
}

}  // namespace ct2triton
