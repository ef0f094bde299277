// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton {

// What a request's rows are called in messages to its client: here, of a model of ids.
class RowNames {
 public:
  virtual ~RowNames() = default;
  // `row`: its number within the request. The whole of it, what is translated, what is forced, what
  // is expected.
  virtual std::string Row(size_t row) const;
  virtual std::string Source(size_t row) const;
  virtual std::string Prefix(size_t row) const;
  virtual std::string Draft(size_t row) const;
};

}  // namespace ct2triton
