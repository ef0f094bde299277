// SPDX-License-Identifier: Apache-2.0
//
// A front is a way into a model: it makes rows of a request's tensors, and tensors of their
// answers.
#pragma once

#include <memory>
#include <vector>

#include "config/request_options.h"
#include "rows/checked_row.h"
#include "rows/row.h"
#include "triton/request.h"
#include "triton/response.h"

namespace ct2triton {

// Writes the answer to one request, in the tensors that it asked for.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;
  // `rows`: the results of the request's rows, in their order. Throws Error.
  virtual void Encode(const std::vector<RowResult>& rows, Response* response) const = 0;
};

struct DecodedRequest {
  RequestOptions options;
  std::vector<CheckedRow> rows;
  std::unique_ptr<const AnswerEncoder> encoder;
};

class Front {
 public:
  virtual ~Front() = default;
  // Reads and checks a request. Throws Error(kInvalidArgument) for what its client can mend.
  virtual DecodedRequest Decode(const RequestHandle& request) const = 0;
};

}  // namespace ct2triton
