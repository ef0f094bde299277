// SPDX-License-Identifier: Apache-2.0
#include "serving/text_answer.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "serving/output_tensor.h"
#include "serving/target_text.h"
#include "serving/translation_tensors.h"

namespace ct2triton {
namespace {

// Only the best hypotheses are judged.
Translation Translated(const TextPlan& plan, size_t target, size_t rank, const Tokenizer& tokenizer,
                       const Judging& judging, const std::vector<RowResult>& rows) {
  TargetText text(plan, target, tokenizer, rank == 0 ? judging : Judging(), rank);
  while (const auto row = text.next_row()) text.Add(rows[*row]);
  return text.so_far();
}

std::vector<int64_t> Behind(std::vector<int64_t> shape, std::initializer_list<size_t> more) {
  for (const size_t length : more) shape.push_back(static_cast<int64_t>(length));
  return shape;
}

// Lists of byte ranges as [..., longest, 2]; -1 fills the shorter ones.
Matrix<int64_t> RangeMatrix(const std::vector<int64_t>& shape,
                            const std::vector<std::vector<Span>>& lists) {
  size_t longest = 0;
  for (const auto& list : lists) longest = std::max(longest, list.size());
  Matrix<int64_t> matrix{Behind(shape, {longest, 2}), {}};
  for (const auto& list : lists) {
    for (const Span& span : list) {
      matrix.values.push_back(static_cast<int64_t>(span.begin));
      matrix.values.push_back(static_cast<int64_t>(span.end));
    }
    matrix.values.resize(matrix.values.size() + 2 * (longest - list.size()), -1);
  }
  return matrix;
}

std::vector<Span> SourceRanges(const TextPlan& plan) {
  std::vector<Span> ranges;
  for (const PlannedSentence& sentence : plan.sentences) ranges.push_back(sentence.span);
  return ranges;
}

// As [..., longest, 4]; -1 fills the shorter ones.
Matrix<int64_t> AlignmentMatrix(const std::vector<int64_t>& shape, const Translations& all) {
  size_t longest = 0;
  for (const Translation* one : all) longest = std::max(longest, one->alignments.size());
  Matrix<int64_t> matrix{Behind(shape, {longest, 4}), {}};
  for (const Translation* one : all) {
    for (const AlignedSpans& pair : one->alignments) {
      for (const size_t at :
           {pair.source.begin, pair.source.end, pair.target.begin, pair.target.end}) {
        matrix.values.push_back(static_cast<int64_t>(at));
      }
    }
    matrix.values.resize(matrix.values.size() + 4 * (longest - one->alignments.size()), -1);
  }
  return matrix;
}

size_t MostHypotheses(const std::vector<RowResult>& rows) {
  size_t most = 1;
  for (const RowResult& row : rows) most = std::max(most, row.hypotheses.size());
  return most;
}

// Writes the outputs of one answer.
class Writer {
 public:
  Writer(const std::vector<TextPlan>& plans, size_t targets, bool batched,
         const Tokenizer& tokenizer, const AnswerContent& content,
         const std::vector<RowResult>& rows, Response* response)
      : plans_(plans),
        targets_(targets),
        tokenizer_(tokenizer),
        content_(content),
        rows_(rows),
        response_(response) {
    if (batched) per_text_.push_back(static_cast<int64_t>(plans.size()));
    per_target_ = Behind(per_text_, {targets});
    const auto shows_ranks = [](const std::string& name) {
      return name == tensor::kTextHypotheses || name == tensor::kHypothesisScores;
    };
    const auto& outputs = content.outputs;
    const bool ranks = std::any_of(outputs.begin(), outputs.end(), shows_ranks);
    Join(ranks ? MostHypotheses(rows) : 1);
  }

  void Write(const TensorSpec& spec) {
    if (WriteOfEach(spec, per_target_, best_, response_)) return;
    if (spec.name == tensor::kScore) {
      WriteScores(spec, per_target_, best_);
    } else if (spec.name == tensor::kSourceRanges || spec.name == tensor::kTargetRanges) {
      WriteRanges(spec);
    } else if (spec.name == tensor::kTextAlignments) {
      WriteTensor(spec, AlignmentMatrix(per_target_, best_), response_);
    } else {
      WriteHypotheses(spec);
    }
  }

 private:
  // Puts `ranks` hypotheses of each text in each language together.
  void Join(size_t ranks) {
    joined_.reserve(plans_.size() * targets_ * ranks);
    for (const TextPlan& plan : plans_) {
      for (size_t target = 0; target < targets_; ++target) {
        best_.push_back(joined_.data() + joined_.size());
        for (size_t rank = 0; rank < ranks; ++rank) {
          joined_.push_back(Translated(plan, target, rank, tokenizer_, content_.judging, rows_));
          all_.push_back(&joined_.back());
        }
        if (best_.back()->verdict) content_.judging.metrics->Count(*best_.back()->verdict);
      }
    }
    ranks_ = ranks;
  }

  void WriteRanges(const TensorSpec& spec) {
    std::vector<std::vector<Span>> lists;
    if (spec.name == tensor::kSourceRanges) {
      for (const TextPlan& plan : plans_) lists.push_back(SourceRanges(plan));
      return WriteTensor(spec, RangeMatrix(per_text_, lists), response_);
    }
    for (const Translation* one : best_) lists.push_back(one->ranges);
    WriteTensor(spec, RangeMatrix(per_target_, lists), response_);
  }

  // None where they were not computed.
  void WriteScores(const TensorSpec& spec, std::vector<int64_t> shape, const Translations& all) {
    if (!content_.scores) shape.back() = 0;
    const auto score = [](const Translation& one) { return one.score; };
    const Translations& scored = content_.scores ? all : none_;
    WriteTensor(spec, Collect<float>(shape, scored, score), response_);
  }

  // None where they are not asked for and there is one of each: it is the answer already.
  void WriteHypotheses(const TensorSpec& spec) {
    const bool none = ranks_ == 1 && !content_.named;
    const auto shape = Behind(per_target_, {none ? 0 : ranks_});
    const Translations& all = none ? none_ : all_;
    if (spec.name == tensor::kHypothesisScores) return WriteScores(spec, shape, all);
    if (spec.name != tensor::kTextHypotheses) {
      throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
    }
    const auto text = [](const Translation& one) { return one.text; };
    WriteTensor(spec, Collect<std::string>(shape, all, text), response_);
  }

  const std::vector<TextPlan>& plans_;
  const size_t targets_;
  const Tokenizer& tokenizer_;
  const AnswerContent& content_;
  const std::vector<RowResult>& rows_;
  Response* response_;
  std::vector<int64_t> per_text_;    // the shape of what each text has
  std::vector<int64_t> per_target_;  // and each of its translations
  size_t ranks_ = 1;
  std::vector<Translation> joined_;
  Translations all_;   // of each text, language and rank
  Translations best_;  // those of the first rank
  const Translations none_;
};

}  // namespace

TextAnswer::TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer, AnswerContent content,
                       std::vector<TextPlan> plans, size_t targets)
    : config_(config),
      tokenizer_(tokenizer),
      content_(std::move(content)),
      plans_(std::move(plans)),
      targets_(targets) {}

void TextAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  Writer writer(plans_, targets_, config_.max_batch_size > 0, tokenizer_, content_, rows, response);
  for (const std::string& name : content_.outputs) writer.Write(config_.Output(name));
}

}  // namespace ct2triton
