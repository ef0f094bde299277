// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a request cut into rows, and answers built from rows. Every row is a piece of its
// own row of the tensor and of the right length; an answer read back by its lengths is the answer.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "fuzz.h"
#include "rows/id_view.h"
#include "rows/row_tensors.h"
#include "triton/data_type.h"

namespace {

using namespace ct2triton;
using fuzz::Require;

constexpr TRITONSERVER_DataType kIntegers[] = {TRITONSERVER_TYPE_UINT8,  TRITONSERVER_TYPE_UINT16,
                                               TRITONSERVER_TYPE_UINT32, TRITONSERVER_TYPE_UINT64,
                                               TRITONSERVER_TYPE_INT8,   TRITONSERVER_TYPE_INT16,
                                               TRITONSERVER_TYPE_INT32,  TRITONSERVER_TYPE_INT64};

// Values as they come from the wire, the type of the tensor included.
Ids SomeValues(FuzzedDataProvider* data, size_t count) {
  const auto type = data->PickValueInArray(kIntegers);
  std::string bytes = data->ConsumeBytesAsString(count * IntegerByteSize(type));
  bytes.resize(count * IntegerByteSize(type));
  if (data->ConsumeBool()) {  // small values, among which paddings are
    for (char& byte : bytes) byte = static_cast<char>(byte & 3);
  }
  const Ids values = IdView(bytes.data(), count, *IntegerTypeOf(type)).Copy();
  std::string again(bytes.size(), '\0');
  NarrowIntegers(values, type, again.data());
  const bool clipped = type == TRITONSERVER_TYPE_UINT64;
  Require(clipped || again == bytes, "widened and narrowed, values are others");
  Require(!clipped || std::all_of(values.begin(), values.end(), [](int64_t v) { return v >= 0; }),
          "a large unsigned id became negative");
  return values;
}

// A tensor with the memory that its values lie in.
struct OwnedTensor {
  std::vector<int64_t> shape;
  Ids values;
  IdTensor View() const { return {shape, values, nullptr}; }
};

OwnedTensor SomeTensor(FuzzedDataProvider* data) {
  OwnedTensor tensor;
  size_t count = 1;
  for (int rank = data->ConsumeIntegralInRange(0, 3); rank > 0; --rank) {
    tensor.shape.push_back(data->ConsumeIntegralInRange<int64_t>(0, 6));
    count *= static_cast<size_t>(tensor.shape.back());
  }
  tensor.values = SomeValues(data, count);
  return tensor;
}

std::optional<OwnedTensor> MaybeTensor(FuzzedDataProvider* data) {
  if (data->ConsumeIntegralInRange(0, 2) == 0) return std::nullopt;
  return SomeTensor(data);
}

std::optional<IdTensor> View(const std::optional<OwnedTensor>& tensor) {
  return tensor ? std::optional(tensor->View()) : std::nullopt;
}

// Holds `rows` against the tensor they were cut from.
void CheckRows(const std::vector<Ids>& rows, const OwnedTensor& tensor,
               const std::optional<OwnedTensor>& lengths, std::optional<int64_t> pad_id) {
  const bool many = tensor.shape.size() == 2;
  Require(many || tensor.shape.size() == 1, "a rank that is no row");
  const auto count = static_cast<size_t>(many ? tensor.shape[0] : 1);
  const auto width = static_cast<size_t>(tensor.shape.back());
  Require(rows.size() == count, "not as many rows as there are");
  for (size_t i = 0; i < count; ++i) {
    const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    const Ids& row = rows[i];
    Require(row.size() <= width, "a row longer than its tensor");
    Require(std::equal(row.begin(), row.end(), begin), "a row of other ids");
    if (lengths) {
      Require(static_cast<int64_t>(row.size()) == lengths->values[i], "a length that is not kept");
    } else if (count > 1 && pad_id) {
      Require(row.empty() || row.back() != *pad_id, "padding left");
      Require(std::all_of(begin + static_cast<std::ptrdiff_t>(row.size()),
                          begin + static_cast<std::ptrdiff_t>(width),
                          [&](int64_t id) { return id == *pad_id; }),
              "more than padding cut");
    } else {
      Require(row.size() == width, "a row cut for no reason");
    }
  }
}

void CheckSplit(FuzzedDataProvider* data) {
  const OwnedTensor input_ids = SomeTensor(data);
  const auto target_prefix = MaybeTensor(data);
  const auto input_lengths = MaybeTensor(data);
  const auto prefix_lengths = MaybeTensor(data);
  const auto draft_ids = MaybeTensor(data);
  const RequestTensors tensors{input_ids.View(), View(target_prefix), View(input_lengths),
                               View(prefix_lengths), View(draft_ids)};
  std::optional<int64_t> pad_id;
  if (data->ConsumeBool()) pad_id = data->ConsumeIntegralInRange<int64_t>(0, 3);
  std::vector<RowInput> rows;
  if (!fuzz::Accepted([&] { rows = SplitRows(tensors, pad_id); })) return;
  std::vector<Ids> sources;
  std::vector<Ids> prefixes;
  std::vector<Ids> drafts;
  for (const RowInput& row : rows) {
    sources.push_back(row.source.Copy());
    prefixes.push_back(row.prefix.Copy());
    drafts.push_back(row.draft.Copy());
  }
  if (draft_ids) CheckRows(drafts, *draft_ids, std::nullopt, pad_id);
  CheckRows(sources, input_ids, input_lengths, pad_id);
  if (target_prefix) {
    CheckRows(prefixes, *target_prefix, prefix_lengths, pad_id);
  } else {
    Require(std::all_of(prefixes.begin(), prefixes.end(), [](const Ids& p) { return p.empty(); }),
            "a prefix from nowhere");
  }
}

template <typename T>
void CheckShape(const Matrix<T>& matrix, const std::vector<int64_t>& per_row, size_t rows,
                bool batched) {
  std::vector<int64_t> expected = per_row;
  if (batched) expected.insert(expected.begin(), static_cast<int64_t>(rows));
  Require(matrix.shape == expected, "a shape other than promised");
  size_t count = rows;
  for (const int64_t dim : per_row) count *= static_cast<size_t>(dim);
  Require(matrix.values.size() == count, "values do not fill the shape");
}

std::vector<RowResult> SomeResults(FuzzedDataProvider* data, size_t rows) {
  std::vector<RowResult> results(rows);
  for (RowResult& row : results) {
    row.hypotheses.resize(data->ConsumeIntegralInRange<size_t>(1, 3));
    for (Hypothesis& hypothesis : row.hypotheses) {
      hypothesis.ids.resize(data->ConsumeIntegralInRange<size_t>(0, 5));
      for (int64_t& id : hypothesis.ids) id = data->ConsumeIntegralInRange<int64_t>(0, 9);
      hypothesis.finish = static_cast<FinishReason>(data->ConsumeIntegralInRange(0, 3));
      hypothesis.score = static_cast<float>(data->ConsumeIntegral<int8_t>());
    }
  }
  return results;
}

void CheckAnswer(FuzzedDataProvider* data) {
  const bool batched = data->ConsumeBool();
  const auto results = SomeResults(data, batched ? data->ConsumeIntegralInRange<size_t>(0, 4) : 1);
  const int64_t pad_id = data->ConsumeIntegralInRange<int64_t>(0, 9);
  const AnswerTensors answer(results, batched, pad_id);
  size_t n = 0;
  size_t longest = 0;
  size_t longest_best = 0;
  for (const RowResult& row : results) {
    n = std::max(n, row.hypotheses.size());
    longest_best = std::max(longest_best, row.hypotheses[0].ids.size());
    for (const auto& hypothesis : row.hypotheses) {
      longest = std::max(longest, hypothesis.ids.size());
    }
  }
  const auto wide = [](size_t size) { return static_cast<int64_t>(size); };
  const auto best = answer.OutputIds();
  const auto ids = answer.Hypotheses();
  const auto lengths = answer.HypothesisLengths();
  CheckShape(best, {wide(longest_best)}, results.size(), batched);
  CheckShape(answer.OutputLengths(), {1}, results.size(), batched);
  CheckShape(ids, {wide(n), wide(longest)}, results.size(), batched);
  CheckShape(lengths, {wide(n)}, results.size(), batched);
  CheckShape(answer.Scores(), {wide(n)}, results.size(), batched);
  CheckShape(answer.DraftTokensKept(), {1}, results.size(), batched);
  CheckShape(answer.Alignments(), {wide(longest_best)}, results.size(), batched);
  CheckShape(answer.FinishReasons(), {wide(n)}, results.size(), batched);
  for (size_t row = 0; row < results.size(); ++row) {
    const Ids& first = results[row].hypotheses[0].ids;
    Require(answer.OutputLengths().values[row] == wide(first.size()), "a length of another row");
    Require(std::equal(first.begin(), first.end(), best.values.begin() + wide(row * longest_best)),
            "the best hypothesis of another row");
    for (size_t h = 0; h < n; ++h) {
      const bool there = h < results[row].hypotheses.size();
      const Ids expected = there ? results[row].hypotheses[h].ids : Ids();
      const auto begin = ids.values.begin() + wide((row * n + h) * longest);
      Require(lengths.values[row * n + h] == wide(expected.size()), "a length of another");
      Require(std::equal(expected.begin(), expected.end(), begin), "ids of another hypothesis");
      Require(std::all_of(begin + wide(expected.size()), begin + wide(longest),
                          [&](int64_t id) { return id == pad_id; }),
              "no padding behind a hypothesis");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  if (data.ConsumeBool()) {
    CheckSplit(&data);
  } else {
    CheckAnswer(&data);
  }
  return 0;
}
