// SPDX-License-Identifier: Apache-2.0
//
// Python bindings that turn request tensors into rows, plan calls, and write output tensors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <optional>

#include "bindings.h"
#include "queue/call_plan.h"
#include "rows/row_tensors.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

using PyTensor = std::pair<std::vector<int64_t>, std::vector<int64_t>>;  // shape, values

IdTensor ToTensor(const PyTensor& tensor) { return {tensor.first, tensor.second, nullptr}; }

std::optional<IdTensor> ToTensor(const std::optional<PyTensor>& tensor) {
  return tensor ? std::optional(ToTensor(*tensor)) : std::nullopt;
}

py::list PySplitRows(const PyTensor& input, const std::optional<PyTensor>& prefix,
                     const std::optional<PyTensor>& input_lengths,
                     const std::optional<PyTensor>& prefix_lengths, std::optional<int64_t> pad_id,
                     const std::optional<PyTensor>& draft) {
  const RequestTensors tensors{ToTensor(input), ToTensor(prefix), ToTensor(input_lengths),
                               ToTensor(prefix_lengths), ToTensor(draft)};
  py::list rows;
  for (const auto& row : SplitRows(tensors, pad_id)) {
    if (draft) {
      rows.append(py::make_tuple(row.source.Copy(), row.prefix.Copy(), row.draft.Copy()));
    } else {
      rows.append(py::make_tuple(row.source.Copy(), row.prefix.Copy()));
    }
  }
  return rows;
}

template <typename T>
py::tuple ToPython(const Matrix<T>& matrix) {
  return py::make_tuple(matrix.shape, matrix.values);
}

// `rows`: the IDs of each hypothesis of each row.
py::dict PyAnswerTensors(const std::vector<std::vector<Ids>>& rows, bool batched, int64_t pad_id) {
  std::vector<RowResult> results;
  for (const auto& row : rows) {
    auto& result = results.emplace_back();
    for (const auto& ids : row) result.hypotheses.push_back({ids, 0, FinishReason::kStop});
  }
  const AnswerTensors answer(results, batched, pad_id);
  py::dict tensors;
  tensors["OUTPUT_IDS"] = ToPython(answer.OutputIds());
  tensors["OUTPUT_LENGTHS"] = ToPython(answer.OutputLengths());
  tensors["HYPOTHESES"] = ToPython(answer.Hypotheses());
  tensors["HYPOTHESIS_LENGTHS"] = ToPython(answer.HypothesisLengths());
  tensors["SCORES"] = ToPython(answer.Scores());
  tensors["FINISH_REASON"] = ToPython(answer.FinishReasons());
  tensors["DRAFT_TOKENS_KEPT"] = ToPython(answer.DraftTokensKept());
  tensors["ALIGNMENTS"] = ToPython(answer.Alignments());
  return tensors;
}

std::vector<size_t> PyPickRows(const std::vector<int64_t>& source_tokens,
                               const std::vector<bool>& may_join, size_t max_rows,
                               int64_t max_tokens, int64_t beams,
                               const std::vector<int64_t>& search_tokens,
                               int64_t max_search_tokens) {
  std::vector<WaitingRow> waiting;
  for (size_t i = 0; i < source_tokens.size(); ++i) {
    waiting.push_back(
        {source_tokens[i], beams, may_join.at(i), search_tokens.empty() ? 0 : search_tokens.at(i)});
  }
  return PickRows(waiting, {max_rows, max_tokens, max_search_tokens});
}

}  // namespace

py::dict Describe(const Hypothesis& hypothesis) {
  py::dict row;
  row["ids"] = hypothesis.ids;
  row["score"] = hypothesis.score;
  row["finish_reason"] = FinishReasonName(hypothesis.finish);
  row["alignments"] = hypothesis.alignments;
  return row;
}

void BindRows(py::module_& module) {
  module.def("split_rows", &PySplitRows, py::arg("input_ids"),
             py::arg("target_prefix") = py::none(), py::arg("input_lengths") = py::none(),
             py::arg("prefix_lengths") = py::none(), py::arg("pad_id") = py::none(),
             py::arg("draft_ids") = py::none(),
             "Cut a request's tensors, (shape, values) each, into rows: [(source, prefix)], or "
             "[(source, prefix, draft)] with `draft_ids`.");
  module.def("answer_tensors", &PyAnswerTensors, py::arg("rows"), py::arg("batched"),
             py::arg("pad_id"), "The output tensors, (shape, values) each, of rows of hypotheses.");
  module.def("pick_rows", &PyPickRows, py::arg("source_tokens"), py::arg("may_join"),
             py::arg("max_rows"), py::arg("max_tokens"), py::arg("beams") = 1,
             py::arg("search_tokens") = std::vector<int64_t>(),
             py::arg("max_search_tokens") = std::numeric_limits<int64_t>::max(),
             "Positions of the waiting rows that go into the next call.");
  module.def("fair_share", &FairShare, py::arg("waiting"), py::arg("running"), py::arg("workers"),
             "Rows that one worker should take at most.");
}

}  // namespace ct2triton
