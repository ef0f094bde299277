// SPDX-License-Identifier: Apache-2.0
#include "serving/text_answer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "serving/output_tensor.h"
#include "text/segmenter.h"

namespace ct2triton {
namespace {

// The answer to one text in one language.
struct Translation {
  std::string text;
  std::string finish = "empty";
  double score = 0;  // the mean of the sentences' scores, each counted by its tokens
  size_t input_tokens = 0;
  size_t output_tokens = 0;
};

// How a sentence that was too long for the model ended well; the engine does not know it.
constexpr char kSplit[] = "split";

size_t BadnessOf(const std::string& finish) {
  static const char* const kWorstLast[] = {"empty", "stop", kSplit, "length", "cut"};
  return static_cast<size_t>(std::find(std::begin(kWorstLast), std::end(kWorstLast), finish) -
                             std::begin(kWorstLast));
}

void AddFinish(const std::string& finish, Translation* translation) {
  if (BadnessOf(finish) > BadnessOf(translation->finish)) translation->finish = finish;
}

class Joiner {
 public:
  Joiner(const TextPlan& plan, size_t target, const Tokenizer& tokenizer)
      : plan_(plan),
        target_(target),
        tokenizer_(tokenizer),
        prefix_length_(tokenizer.PrefixLength(plan.targets[target])) {}

  Translation Join(const std::vector<RowResult>& rows) {
    size_t end = 0;  // of the piece before
    for (const PlannedPiece& piece : plan_.pieces) {
      const std::string gap = plan_.text.substr(end, piece.span.begin - end);
      const bool first = &piece == &plan_.pieces.front();
      done_.text += first ? gap : GapInTarget(gap, plan_.targets[target_]);
      AddPiece(piece, rows);
      end = piece.span.end;
    }
    done_.text += plan_.text.substr(end);
    if (done_.output_tokens > 0) done_.score /= static_cast<double>(done_.output_tokens);
    return std::move(done_);
  }

 private:
  void AddPiece(const PlannedPiece& piece, const std::vector<RowResult>& rows) {
    if (!piece.sent) {
      done_.text += plan_.text.substr(piece.span.begin, piece.span.end - piece.span.begin);
      return;
    }
    const Hypothesis& best = rows[piece.first_row + target_].hypotheses.front();
    const std::vector<int> ids(best.ids.begin(), best.ids.end());
    const size_t tokens = ids.size() - std::min(ids.size(), prefix_length_);
    done_.text += tokenizer_.Text(ids.data(), ids.size());
    done_.score += static_cast<double>(best.score) * static_cast<double>(tokens);
    done_.input_tokens += piece.input_tokens[target_];
    done_.output_tokens += tokens;
    AddFinish(FinishReasonName(best.finish), &done_);
    if (piece.split) AddFinish(kSplit, &done_);
  }

  const TextPlan& plan_;
  const size_t target_;
  const Tokenizer& tokenizer_;
  const size_t prefix_length_;
  Translation done_;
};

template <class Value, class Get>
Matrix<Value> Collect(const std::vector<int64_t>& shape, const std::vector<Translation>& all,
                      const Get& get) {
  Matrix<Value> matrix;
  matrix.shape = shape;
  for (const Translation& one : all) matrix.values.push_back(static_cast<Value>(get(one)));
  return matrix;
}

void WriteOutput(const TensorSpec& spec, const std::vector<int64_t>& shape,
                 const std::vector<Translation>& all, Response* response) {
  using T = Translation;
  const auto write = [&](const auto& matrix) { WriteTensor(spec, matrix, response); };
  if (spec.name == tensor::kTextOutput) {
    write(Collect<std::string>(shape, all, [](const T& one) { return one.text; }));
  } else if (spec.name == tensor::kScore) {
    write(Collect<float>(shape, all, [](const T& one) { return one.score; }));
  } else if (spec.name == tensor::kTextFinishReason) {
    write(Collect<std::string>(shape, all, [](const T& one) { return one.finish; }));
  } else if (spec.name == tensor::kNumInputTokens) {
    write(Collect<int64_t>(shape, all, [](const T& one) { return one.input_tokens; }));
  } else if (spec.name == tensor::kNumOutputTokens) {
    write(Collect<int64_t>(shape, all, [](const T& one) { return one.output_tokens; }));
  } else {
    throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
  }
}

}  // namespace

TextAnswer::TextAnswer(const ModelConfig& config, const Tokenizer& tokenizer,
                       std::vector<std::string> wanted, std::vector<TextPlan> plans, size_t targets)
    : config_(config),
      tokenizer_(tokenizer),
      wanted_(std::move(wanted)),
      plans_(std::move(plans)),
      targets_(targets) {}

void TextAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  std::vector<Translation> all;
  for (const TextPlan& plan : plans_) {
    for (size_t i = 0; i < targets_; ++i) all.push_back(Joiner(plan, i, tokenizer_).Join(rows));
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(targets_)};
  if (config_.max_batch_size > 0) {
    shape.insert(shape.begin(), static_cast<int64_t>(plans_.size()));
  }
  for (const std::string& name : wanted_) {
    const TensorSpec* spec = config_.Output(name);
    if (spec == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "output " + name + " is not declared by the model");
    }
    WriteOutput(*spec, shape, all, response);
  }
}

}  // namespace ct2triton
