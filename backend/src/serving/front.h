// SPDX-License-Identifier: Apache-2.0
//
// A front converts a request's tensors to rows, and their answers to tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "config/request_options.h"
#include "quality/verdict.h"
#include "rows/checked_row.h"
#include "rows/row.h"
#include "serving/row_retries.h"
#include "triton/request.h"
#include "triton/response.h"

namespace ct2triton {

// Writes the answer to one request, in the requested tensors.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;
  // `rows`: the results of the request's rows, in their order. Does a slice of the work before
  // Encode; false while there is more. Throws Error.
  virtual bool Prepare(const std::vector<RowResult>& /*rows*/) { return true; }
  virtual void Encode(const std::vector<RowResult>& rows, Response* response) const = 0;

  // The verdict on the best hypothesis of a row; only for a request that is judged. Throws Error.
  virtual Verdict Judge(size_t row, const RowResult& result) const;
  // Sets the verdicts on all rows, so that they are not judged again. Before Prepare.
  virtual void Know(std::vector<Verdict> verdicts);
};

inline Verdict AnswerEncoder::Judge(size_t, const RowResult&) const { return Verdict::Clear(); }
inline void AnswerEncoder::Know(std::vector<Verdict>) {}

// Sends an answer in parts while its rows run; Encode writes the last one. Its request outlives it.
// Several threads report rows. An exception ends the request.
class AnswerStream : public AnswerEncoder {
 public:
  // Sends the parts that need no row. Called before the first row.
  virtual void Begin() = 0;
  // See RowListener.
  virtual void RowGrew(size_t row, int64_t id) = 0;
  // `result` keeps its address.
  virtual void RowDone(size_t row, const RowResult& result) = 0;
};

struct DecodedRequest {
  // Adds the next row.
  void Add(CheckedRow row) {
    bytes += sizeof(row) +
             sizeof(Ids::value_type) * (row.source.size() + row.prefix.size() + row.draft.size());
    if (retries) bytes += retries->Add(row);
    rows.push_back(std::move(row));
  }

  RequestOptions options;
  std::vector<CheckedRow> rows;
  std::unique_ptr<AnswerEncoder> encoder;
  AnswerStream* stream = nullptr;       // the encoder, if the answer is sent in parts
  std::unique_ptr<RowRetries> retries;  // null: no row is decoded again
  size_t bytes = 0;                     // approximate memory of its rows
};

// Work of a reader at a time, in bytes of tokenized text: some tenths of a millisecond.
constexpr size_t kSliceWork = 4096;

// Reads and checks one request, a slice of work at a time.
class RequestReader {
 public:
  virtual ~RequestReader() = default;
  // Reads a slice; false while there is more to read. Throws Error(kInvalidArgument) for mistakes
  // of the client.
  virtual bool Read() = 0;
  // Approximate memory of the rows read so far.
  virtual size_t bytes() const = 0;
  // The request, once all is read.
  virtual DecodedRequest Take() = 0;
};

// Starts to read a request, which outlives the reader.
using Front = std::function<std::unique_ptr<RequestReader>(const RequestHandle& request)>;

}  // namespace ct2triton
