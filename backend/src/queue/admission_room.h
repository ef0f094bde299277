// SPDX-License-Identifier: Apache-2.0
//
// Chooses the waiting rows that fit into a loop. They are offered one by one, in order. Pure.
//
// A row is wide if its search has several sequences, else narrow. Wide rows may fill the steps of
// all loops and their memory for as long as they run, so some of both is kept for narrow rows.
#pragma once

#include <cstddef>
#include <optional>

namespace ct2triton {

// Bytes of keys and values of the running rows of a model.
struct CacheUse {
  size_t most = 0;
  size_t in_use = 0;
  size_t wide = 0;  // of these, those of wide rows
};

struct AdmissionBounds {
  size_t sequences = 1;  // of a step; at least one row is taken, even if it has more
  size_t tokens = 1;     // of sources to encode and prefixes; at least one row is taken
  CacheUse cache;
  size_t anyway = 0;       // rows that are taken even without memory
  size_t narrow_rows = 0;  // that may overtake wide rows that do not fit
  // Rows of more tokens that are taken, because they are encoded beside the loops; none: a loop
  // encodes all.
  std::optional<size_t> long_rows{};
};

// What a row would add.
struct OfferedRow {
  size_t sequences = 1;
  size_t tokens = 0;
  size_t cache_bytes = 0;
};

enum class Offer {
  kTaken,
  kPassed,  // it waits, and narrow rows may overtake it
  kEnded,   // it and all after it wait
};

class AdmissionRoom {
 public:
  explicit AdmissionRoom(const AdmissionBounds& bounds)
      : bounds_(bounds), cache_(bounds.cache), passes_left_(bounds.narrow_rows) {}

  // It is long, and no more of these are taken. All other rows may overtake it.
  bool Skips(size_t tokens) const { return IsLong(tokens) && long_taken_ >= *bounds_.long_rows; }
  Offer Take(const OfferedRow& row);

 private:
  bool IsLong(size_t tokens) const { return bounds_.long_rows && tokens > bounds_.tokens; }
  bool HasRows(const OfferedRow& row) const;
  size_t TokensOf(const OfferedRow& row) const;
  bool HasTokens(const OfferedRow& row) const;
  bool HasMemory(const OfferedRow& row) const;
  bool MayGoPast(const OfferedRow& row) const;
  Offer PassOver(const OfferedRow& row);
  void Add(const OfferedRow& row);

  const AdmissionBounds bounds_;
  CacheUse cache_;
  size_t passes_left_;
  size_t taken_ = 0;
  size_t long_taken_ = 0;
  size_t sequences_ = 0;
  size_t tokens_ = 0;
  bool passing_ = false;
  size_t passed_bytes_ = 0;  // bytes of the first row that was passed over
};

}  // namespace ct2triton
