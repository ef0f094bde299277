// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/model_files.h"
#include "engine/loaded_model.h"
#include "quality/verdict.h"
#include "rows/checked_row.h"
#include "rows/row.h"
#include "serving/judging.h"

namespace ct2triton {

// Judges the rows of a request of IDs by the text of their tokens.
class IdsVerdicts {
 public:
  // The model and its languages outlive it.
  IdsVerdicts(const Judging& judging, const LoadedModel& model, const TargetIds& languages)
      : judging_(judging), model_(model), languages_(languages) {}

  // Remembers the next row of the request. Returns the bytes that it takes.
  size_t Add(const CheckedRow& row);
  // The verdict on the best hypothesis of a row.
  Verdict Of(size_t row, const RowResult& result) const;

 private:
  struct Source {
    Ids ids;
    std::string language;  // of the target
    std::string source_language;
  };

  const Judging judging_;
  const LoadedModel& model_;
  const TargetIds& languages_;
  std::vector<Source> sources_;
};

}  // namespace ct2triton
