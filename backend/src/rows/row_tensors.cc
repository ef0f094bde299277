// SPDX-License-Identifier: Apache-2.0
#include "rows/row_tensors.h"

#include <algorithm>
#include <limits>

#include "config/tensor_table.h"
#include "error.h"

namespace ct2triton {
namespace {

// A tensor seen as rows: [n] is one row.
struct RowView {
  int64_t rows;
  int64_t width;
};

RowView ViewRows(const IdTensor& tensor, const char* name) {
  if (tensor.shape.size() == 1) return {1, tensor.shape[0]};
  if (tensor.shape.size() == 2) return {tensor.shape[0], tensor.shape[1]};
  ThrowInvalid(std::string(name) + " has shape " + ShapeText(tensor.shape) +
               "; allowed are [n] and [rows, n]");
}

void RequireRows(int64_t rows, int64_t expected, const char* name,
                 const std::vector<int64_t>& shape) {
  if (rows == expected) return;
  ThrowInvalid(std::string(name) + " has shape " + ShapeText(shape) + ", which is " +
               std::to_string(rows) + " row(s), but INPUT_IDS has " + std::to_string(expected));
}

std::vector<int64_t> ReadLengths(const IdTensor& tensor, const char* name, const RowView& view,
                                 const char* of) {
  RequireRows(static_cast<int64_t>(tensor.values.size()), view.rows, name, tensor.shape);
  for (size_t row = 0; row < tensor.values.size(); ++row) {
    const int64_t length = tensor.values[row];
    if (length >= 0 && length <= view.width) continue;
    ThrowInvalid(std::string(name) + ", row " + std::to_string(row) + ": length " +
                 std::to_string(length) + " does not fit the rows of " + of +
                 "; allowed are 0 to " + std::to_string(view.width));
  }
  return tensor.values.Copy();
}

// Rows of one tensor, cut to their true lengths.
std::vector<IdView> CutRows(const IdTensor& tensor, const RowView& view,
                            const std::optional<std::vector<int64_t>>& lengths,
                            std::optional<int64_t> pad_id) {
  const auto width = static_cast<size_t>(view.width);
  std::vector<IdView> rows(static_cast<size_t>(view.rows));
  for (size_t row = 0; row < rows.size(); ++row) {
    const IdView padded = tensor.values.Slice(row * width, width);
    size_t length = width;
    if (lengths) {
      length = static_cast<size_t>((*lengths)[row]);
    } else if (rows.size() > 1 && pad_id) {
      while (length > 0 && padded[length - 1] == *pad_id) --length;
    }
    rows[row] = padded.Slice(0, length);
  }
  return rows;
}

int64_t LongestOf(const std::vector<RowResult>& rows, bool best_only) {
  size_t longest = 0;
  for (const auto& row : rows) {
    for (const auto& hypothesis : row.hypotheses) {
      longest = std::max(longest, hypothesis.ids.size());
      if (best_only) break;
    }
  }
  return static_cast<int64_t>(longest);
}

void AppendPadded(const Ids& ids, int64_t width, int64_t pad_id, std::vector<int64_t>* to) {
  to->insert(to->end(), ids.begin(), ids.end());
  to->insert(to->end(), static_cast<size_t>(width) - ids.size(), pad_id);
}

// The rows of a tensor that accompanies the source, such as [b, n] with [b, m].
std::vector<IdView> RowsBeside(const IdTensor& tensor, const char* name, int64_t rows,
                               const std::optional<IdTensor>& row_lengths, const char* lengths_name,
                               std::optional<int64_t> pad_id) {
  const RowView view = ViewRows(tensor, name);
  RequireRows(view.rows, rows, name, tensor.shape);
  std::optional<std::vector<int64_t>> lengths;
  if (row_lengths) lengths = ReadLengths(*row_lengths, lengths_name, view, name);
  return CutRows(tensor, view, lengths, pad_id);
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<RowInput> SplitRows(const RequestTensors& tensors, std::optional<int64_t> pad_id) {
  const RowView input = ViewRows(tensors.input_ids, tensor::kInputIds);
  std::optional<std::vector<int64_t>> lengths;
  if (tensors.input_lengths) {
    lengths = ReadLengths(*tensors.input_lengths, tensor::kInputLengths, input, tensor::kInputIds);
  }
  const auto sources = CutRows(tensors.input_ids, input, lengths, pad_id);
  std::vector<RowInput> rows(sources.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].source = sources[i];
  if (tensors.draft_ids) {
    const auto drafts = RowsBeside(*tensors.draft_ids, tensor::kDraftIds, input.rows, std::nullopt,
                                   nullptr, pad_id);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].draft = drafts[i];
  }
  if (tensors.target_prefix) {
    const auto prefixes = RowsBeside(*tensors.target_prefix, tensor::kTargetPrefix, input.rows,
                                     tensors.prefix_lengths, tensor::kPrefixLengths, pad_id);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].prefix = prefixes[i];
  } else if (tensors.prefix_lengths) {
    ThrowInvalid("PREFIX_LENGTHS is given without TARGET_PREFIX");
  }
  return rows;
}

AnswerTensors::AnswerTensors(const std::vector<RowResult>& rows, bool batched, int64_t pad_id)
    : rows_(rows), batched_(batched), pad_id_(pad_id) {
  for (const auto& row : rows_) {
    hypotheses_ = std::max(hypotheses_, static_cast<int64_t>(row.hypotheses.size()));
  }
}

std::vector<int64_t> AnswerTensors::Shape(std::vector<int64_t> per_row) const {
  if (batched_) per_row.insert(per_row.begin(), static_cast<int64_t>(rows_.size()));
  return per_row;
}

Matrix<int64_t> AnswerTensors::OutputIds() const {
  const int64_t longest = LongestOf(rows_, /*best_only=*/true);
  Matrix<int64_t> matrix{Shape({longest}), {}};
  for (const auto& row : rows_) {
    AppendPadded(row.hypotheses.front().ids, longest, pad_id_, &matrix.values);
  }
  return matrix;
}

Matrix<int64_t> AnswerTensors::OutputLengths() const {
  Matrix<int64_t> matrix{Shape({1}), {}};
  for (const auto& row : rows_) {
    matrix.values.push_back(static_cast<int64_t>(row.hypotheses.front().ids.size()));
  }
  return matrix;
}

Matrix<int64_t> AnswerTensors::DraftTokensKept() const {
  Matrix<int64_t> matrix{Shape({1}), {}};
  for (const auto& row : rows_) matrix.values.push_back(row.draft_tokens_kept);
  return matrix;
}

Matrix<int64_t> AnswerTensors::Alignments() const {
  const int64_t longest = LongestOf(rows_, /*best_only=*/true);
  Matrix<int64_t> matrix{Shape({longest}), {}};
  for (const auto& row : rows_) {
    AppendPadded(row.hypotheses.front().alignments, longest, -1, &matrix.values);
  }
  return matrix;
}

Matrix<int64_t> AnswerTensors::Hypotheses() const {
  const int64_t longest = LongestOf(rows_, /*best_only=*/false);
  Matrix<int64_t> matrix{Shape({hypotheses_, longest}), {}};
  for (const auto& row : rows_) {
    for (int64_t h = 0; h < hypotheses_; ++h) {
      const bool there = h < static_cast<int64_t>(row.hypotheses.size());
      AppendPadded(there ? row.hypotheses[static_cast<size_t>(h)].ids : Ids(), longest, pad_id_,
                   &matrix.values);
    }
  }
  return matrix;
}

template <typename T, typename Value>
Matrix<T> AnswerTensors::PerHypothesis(T missing, const Value& value) const {
  Matrix<T> matrix{Shape({hypotheses_}), {}};
  for (const auto& row : rows_) {
    for (size_t h = 0; h < static_cast<size_t>(hypotheses_); ++h) {
      matrix.values.push_back(h < row.hypotheses.size() ? value(row.hypotheses[h]) : missing);
    }
  }
  return matrix;
}

Matrix<int64_t> AnswerTensors::HypothesisLengths() const {
  return PerHypothesis<int64_t>(
      0, [](const Hypothesis& h) { return static_cast<int64_t>(h.ids.size()); });
}

Matrix<float> AnswerTensors::Scores() const {
  return PerHypothesis<float>(-std::numeric_limits<float>::infinity(),
                              [](const Hypothesis& h) { return h.score; });
}

Matrix<std::string> AnswerTensors::FinishReasons() const {
  return PerHypothesis<std::string>(
      "", [](const Hypothesis& h) { return std::string(FinishReasonName(h.finish)); });
}

}  // namespace ct2triton
