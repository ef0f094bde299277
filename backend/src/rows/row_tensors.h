// SPDX-License-Identifier: Apache-2.0
//
// The mapping between a request's tensors and its rows, in both directions. Independent of Triton.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rows/id_view.h"
#include "rows/row.h"

namespace ct2triton {

// A view of an integer tensor of a request, in row-major order.
struct IdTensor {
  std::vector<int64_t> shape;
  IdView values;
  std::shared_ptr<const std::string> joined;  // holds the values that came in several buffers
};

std::string ShapeText(const std::vector<int64_t>& shape);  // "[2,3]"

// The tensors of one request, by their role. Shapes: [n] is one row of n ids; [b, n] is b rows.
struct RequestTensors {
  IdTensor input_ids;
  std::optional<IdTensor> target_prefix;   // [k] or [b, k]; k = 0: no prefix
  std::optional<IdTensor> input_lengths;   // [b] or [b, 1]: true lengths of the rows
  std::optional<IdTensor> prefix_lengths;  // [b] or [b, 1]
  std::optional<IdTensor> draft_ids = {};  // [d] or [b, d]; d = 0: no draft
};

// Cuts a request's tensors into its rows, which are views: `tensors` must outlive them.
//
// Lengths take precedence over padding. Without lengths, trailing `pad_id`s are stripped if a
// request has several rows, because only then can they be padding. Throws Error(kInvalidArgument)
// for a wrong rank, different row counts and lengths that do not fit.
std::vector<RowInput> SplitRows(const RequestTensors& tensors, std::optional<int64_t> pad_id);

// One output tensor, ready to be written in the type that the model's config declares.
template <typename T>
struct Matrix {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

// The answer to one request of b rows with up to n hypotheses each, as tensors.
// `batched` false (max_batch_size 0 and a rank-1 input): the leading b is left out of all shapes.
class AnswerTensors {
 public:
  AnswerTensors(const std::vector<RowResult>& rows, bool batched, int64_t pad_id);

  Matrix<int64_t> OutputIds() const;          // [b, longest]: best hypotheses, padded
  Matrix<int64_t> OutputLengths() const;      // [b, 1]
  Matrix<int64_t> Hypotheses() const;         // [b, n, longest], padded
  Matrix<int64_t> HypothesisLengths() const;  // [b, n]; 0 where a row has fewer hypotheses
  Matrix<float> Scores() const;               // [b, n]; -inf where a row has fewer hypotheses
  Matrix<std::string> FinishReasons() const;  // [b, n]; "" where a row has fewer hypotheses
  Matrix<int64_t> DraftTokensKept() const;    // [b, 1]
  Matrix<int64_t> Alignments() const;         // [b, longest]: of OutputIds; -1 where not known

 private:
  std::vector<int64_t> Shape(std::vector<int64_t> per_row) const;
  template <typename T, typename Value>
  Matrix<T> PerHypothesis(T missing, const Value& value) const;

  const std::vector<RowResult>& rows_;
  const bool batched_;
  const int64_t pad_id_;
  int64_t hypotheses_ = 0;  // n
};

}  // namespace ct2triton
