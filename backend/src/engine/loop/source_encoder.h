// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/device_model.h"
#include "engine/loop/shared_encodings.h"
#include "rows/checked_row.h"

namespace ct2triton {

struct LoopCounters;

// Finds or makes the encodings of sources, in the form that the device's attention reads. Not
// thread-safe.
class SourceEncoder {
 public:
  // The model must outlive it. `most_rows`: encoded together at most.
  SourceEncoder(const DeviceModel& model, size_t most_rows)
      : model_(model), most_rows_(most_rows) {}
  virtual ~SourceEncoder() = default;
  SourceEncoder(const SourceEncoder&) = delete;
  SourceEncoder& operator=(const SourceEncoder&) = delete;

  struct Counts {
    uint64_t calls = 0;
    uint64_t rows = 0;    // encoded rows
    uint64_t tokens = 0;  // of these
    uint64_t shared = 0;  // rows that used an existing encoding

    void AddTo(LoopCounters* counters) const;
  };
  using Encodings = std::vector<std::shared_ptr<const Encoding>>;
  // One encoding per row, in order; equal sources are encoded once, by the first thread that needs
  // them. Throws Error(kInternal) or std::bad_alloc.
  Encodings Encode(const std::vector<const CheckedRow*>& rows, LoopCaches* caches, Counts* counts);

 protected:
  using SourceIds = std::vector<std::vector<size_t>>;
  // A source's encoding while it is being made.
  struct Making {
    size_t tokens;
    SharedEncodings::Place place;
  };

  // Makes the encodings of these sources, in order.
  virtual std::vector<std::shared_ptr<Encoding>> Make(const SourceIds& ids,
                                                      std::vector<Making> makings,
                                                      CachePool* pool) = 0;

 private:
  // A source to encode, and its index among the encodings.
  struct Task {
    const CheckedRow* row;
    size_t position;  // of the row
    SharedEncodings::Place place;
  };
  using Batch = std::vector<Task>;

  std::vector<Batch> BatchesOf(std::vector<Task> tasks) const;
  void EncodeBatch(Batch batch, LoopCaches* caches, Encodings* encodings, Counts* counts);
  std::vector<size_t> IdsOf(const CheckedRow& row) const;

  const DeviceModel& model_;
  const size_t most_rows_;
};

}  // namespace ct2triton
