// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton {

// Names of a request's rows in messages to its client; here for a token-ID model.
class RowNames {
 public:
  virtual ~RowNames() = default;
  // `row`: its index in the request. Names of the row, its source, its prefix and its draft.
  virtual std::string Row(size_t row) const;
  virtual std::string Source(size_t row) const;
  virtual std::string Prefix(size_t row) const;
  virtual std::string Draft(size_t row) const;
};

}  // namespace ct2triton
