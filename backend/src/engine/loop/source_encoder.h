// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/device_model.h"
#include "engine/compute/loop_compute.h"
#include "engine/loop/shared_encodings.h"
#include "rows/checked_row.h"

namespace ct2triton {

struct LoopCounters;

// Finds or makes the encodings of sources. Not thread-safe.
class SourceEncoder {
 public:
  // All must outlive it.
  SourceEncoder(const DeviceModel& model, LoopCompute* compute, SharedEncodings* shared)
      : model_(model), compute_(compute), shared_(shared) {}

  struct Counts {
    uint64_t calls = 0;
    uint64_t rows = 0;    // encoded rows
    uint64_t tokens = 0;  // of these
    uint64_t shared = 0;  // rows that used an existing encoding

    void AddTo(LoopCounters* counters) const;
  };
  using Encodings = std::vector<std::shared_ptr<const Encoding>>;
  // One encoding per row, in order; equal sources have the same one. Does not wait for other
  // threads: a source that one of them is still encoding in the end is encoded here, unshared.
  // Throws Error(kInternal) or std::bad_alloc.
  Encodings Encode(const std::vector<const CheckedRow*>& rows, Counts* counts);

 private:
  // A source to encode, and where its encoding goes.
  struct Task {
    const Ids& source;
    std::shared_ptr<const Encoding>* encoding;
    SharedEncodings::Place place;
  };
  using Batch = std::vector<Task>;

  std::vector<Batch> BatchesOf(std::vector<Task> tasks) const;
  void EncodeBatch(Batch batch, Counts* counts);
  std::vector<size_t> IdsOf(const Ids& source) const;

  const DeviceModel& model_;
  LoopCompute* const compute_;
  SharedEncodings* const shared_;
};

}  // namespace ct2triton
