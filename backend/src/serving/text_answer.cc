// SPDX-License-Identifier: Apache-2.0
#include "serving/text_answer.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "serving/output_tensor.h"
#include "serving/translation_tensors.h"

namespace ct2triton {
namespace {

constexpr size_t kRowWork = 32;  // least work of a row, see kSliceWork

std::vector<int64_t> Behind(std::vector<int64_t> shape, std::initializer_list<size_t> more) {
  for (const size_t length : more) shape.push_back(static_cast<int64_t>(length));
  return shape;
}

// Lists of byte ranges as [..., longest, 2]; shorter ones are padded with -1.
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

// As [..., longest, 4]; shorter lists are padded with -1. Not `wanted`: the lists are empty.
Matrix<int64_t> AlignmentMatrix(const std::vector<int64_t>& shape, const Translations& all,
                                bool wanted) {
  size_t longest = 0;
  if (!wanted) return {Behind(shape, {0, 4}), {}};
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
  // `joined`: of each text, language and rank.
  Writer(const std::vector<TextPlan>& plans, size_t targets, size_t ranks, bool batched,
         const AnswerContent& content, const std::vector<Translation>& joined, Response* response)
      : plans_(plans), content_(content), response_(response), ranks_(ranks) {
    if (batched) per_text_.push_back(static_cast<int64_t>(plans.size()));
    per_target_ = Behind(per_text_, {targets});
    for (const Translation& one : joined) {
      if (all_.size() % ranks == 0) best_.push_back(&one);
      all_.push_back(&one);
    }
  }

  void Write(const TensorSpec& spec) {
    if (WriteOfEach(spec, per_target_, best_, response_)) return;
    if (spec.name == tensor::kScore) {
      WriteScores(spec, per_target_, best_);
    } else if (spec.name == tensor::kSourceRanges || spec.name == tensor::kTargetRanges) {
      WriteRanges(spec);
    } else if (spec.name == tensor::kTextAlignments) {
      WriteTensor(spec, AlignmentMatrix(per_target_, best_, content_.alignments), response_);
    } else {
      WriteHypotheses(spec);
    }
  }

 private:
  void WriteRanges(const TensorSpec& spec) {
    std::vector<std::vector<Span>> lists;
    if (spec.name == tensor::kSourceRanges) {
      for (const TextPlan& plan : plans_) lists.push_back(SourceRanges(plan));
      return WriteTensor(spec, RangeMatrix(per_text_, lists), response_);
    }
    for (const Translation* one : best_) lists.push_back(one->ranges);
    WriteTensor(spec, RangeMatrix(per_target_, lists), response_);
  }

  // Empty if they were not computed.
  void WriteScores(const TensorSpec& spec, std::vector<int64_t> shape, const Translations& all) {
    if (!content_.scores) shape.back() = 0;
    const auto score = [](const Translation& one) { return one.score; };
    const Translations& scored = content_.scores ? all : none_;
    WriteTensor(spec, Collect<float>(shape, scored, score), response_);
  }

  // Empty if they are not requested and there is one each, because that is the answer itself.
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
  const AnswerContent& content_;
  Response* response_;
  const size_t ranks_;
  std::vector<int64_t> per_text_;    // shape of values per text
  std::vector<int64_t> per_target_;  // shape of values per translation
  Translations all_;                 // of each text, language and rank
  Translations best_;                // those of the first rank
  const Translations none_;
};

}  // namespace

TextAnswer::TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer, AnswerContent content,
                       std::vector<TextPlan> plans, size_t targets)
    : config_(config),
      tokenizer_(tokenizer),
      content_(std::move(content)),
      plans_(std::move(plans)),
      targets_(targets) {
  if (content_.judging.judge == nullptr) return;
  for (const TextPlan& plan : plans_) {
    for (const PlannedSentence& sentence : plan.sentences) {
      if (!sentence.sent) continue;
      places_.resize(std::max(places_.size(), sentence.first_row + targets_), {&plan, &sentence});
    }
  }
}

Verdict TextAnswer::Judge(size_t row, const RowResult& result) const {
  const auto [plan, sentence] = places_[row];
  const Hypothesis& one = result.hypotheses.front();
  const size_t target = row - sentence->first_row;
  const SentenceText text(*plan, *sentence, target, tokenizer_, one);
  return JudgeSentence(*plan, *sentence, target, text, one, content_.judging);
}

bool TextAnswer::ShowsRanks() const {
  const auto& outputs = content_.outputs;
  return std::any_of(outputs.begin(), outputs.end(), [](const std::string& name) {
    return name == tensor::kTextHypotheses || name == tensor::kHypothesisScores;
  });
}

// Only the best hypotheses are judged.
bool TextAnswer::Prepare(const std::vector<RowResult>& rows) {
  if (ranks_ == 0) ranks_ = ShowsRanks() ? MostHypotheses(rows) : 1;
  const size_t all = plans_.size() * targets_ * ranks_;
  joined_.reserve(all);
  for (size_t work = 0; joined_.size() < all;) {
    const size_t rank = joined_.size() % ranks_;
    const size_t translation = joined_.size() / ranks_;
    if (!joining_) {
      joining_.emplace(plans_[translation / targets_], translation % targets_, tokenizer_,
                       rank == 0 ? content_.judging : Judging(), rank);
    }
    while (const auto row = joining_->next_row()) {
      if (work >= kSliceWork) return false;
      const size_t before = joining_->so_far().text.size();
      joining_->Add(rows[*row], rank == 0 && !known_.empty() ? &known_[*row] : nullptr);
      work += kRowWork + joining_->so_far().text.size() - before;
    }
    Keep(joining_->Take(), rank);
    joining_.reset();
  }
  return true;
}

void TextAnswer::Keep(Translation translation, size_t rank) {
  joined_.push_back(std::move(translation));
  const auto& verdict = joined_.back().verdict;
  if (rank == 0 && verdict) content_.judging.metrics->Count(*verdict);
}

void TextAnswer::Encode(const std::vector<RowResult>& /*rows*/, Response* response) const {
  Writer writer(plans_, targets_, ranks_, config_.max_batch_size > 0, content_, joined_, response);
  for (const std::string& name : content_.outputs) writer.Write(config_.Output(name));
}

}  // namespace ct2triton
