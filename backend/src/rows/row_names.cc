// SPDX-License-Identifier: Apache-2.0
#include "rows/row_names.h"

#include "config/tensor_table.h"

namespace ct2triton {

std::string RowNames::Row(size_t row) const { return "row " + std::to_string(row); }

std::string RowNames::Source(size_t row) const {
  return std::string(tensor::kInputIds) + ", " + Row(row);
}

std::string RowNames::Prefix(size_t row) const {
  return std::string(tensor::kTargetPrefix) + ", " + Row(row);
}

std::string RowNames::Draft(size_t row) const {
  return std::string(tensor::kDraftIds) + ", " + Row(row);
}

}  // namespace ct2triton
