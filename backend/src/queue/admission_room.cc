// SPDX-License-Identifier: Apache-2.0
#include "queue/admission_room.h"

#include <algorithm>

namespace ct2triton {
namespace {

bool IsWide(const OfferedRow& row) { return row.sequences > 1; }

// Wide rows that run together leave a quarter of the memory; one by itself may need all of it.
size_t MostForWide(const CacheUse& cache) { return cache.most - cache.most / 4; }

}  // namespace

Offer AdmissionRoom::Take(const OfferedRow& row) {
  if (!passing_) {
    if (bounds_.sequences > 0 && (!HasRows(row) || !HasTokens(row))) return Offer::kEnded;
    if (bounds_.sequences > 0 && HasMemory(row)) {
      Add(row);
      return Offer::kTaken;
    }
    if (bounds_.sequences > 0 && !IsWide(row)) return Offer::kEnded;  // no memory is left
    passing_ = true;
  }
  if (IsWide(row)) return PassOver(row);
  if (!MayGoPast(row)) return Offer::kEnded;
  Add(row);
  --passes_left_;
  return Offer::kTaken;
}

bool AdmissionRoom::HasRows(const OfferedRow& row) const {
  return taken_ == 0 || sequences_ + row.sequences <= bounds_.sequences;
}

size_t AdmissionRoom::TokensOf(const OfferedRow& row) const {
  return IsLong(row.tokens) ? 0 : row.tokens;
}

bool AdmissionRoom::HasTokens(const OfferedRow& row) const {
  return taken_ == 0 || tokens_ + TokensOf(row) <= bounds_.tokens;
}

bool AdmissionRoom::HasMemory(const OfferedRow& row) const {
  if (taken_ < bounds_.anyway) return true;
  if (cache_.in_use + row.cache_bytes > cache_.most) return false;
  return !IsWide(row) || cache_.wide == 0 || cache_.wide + row.cache_bytes <= MostForWide(cache_);
}

// Narrow rows leave the memory that the first waiting row needs once the wide ones have ended. A
// row that needs more than all of it waits until nothing runs.
bool AdmissionRoom::MayGoPast(const OfferedRow& row) const {
  const size_t narrow = cache_.in_use - std::min(cache_.in_use, cache_.wide);
  return passes_left_ > 0 && HasTokens(row) && HasMemory(row) &&
         narrow + row.cache_bytes + passed_bytes_ <= cache_.most;
}

Offer AdmissionRoom::PassOver(const OfferedRow& row) {
  if (passed_bytes_ == 0) passed_bytes_ = row.cache_bytes;
  return passes_left_ > 0 ? Offer::kPassed : Offer::kEnded;
}

void AdmissionRoom::Add(const OfferedRow& row) {
  ++taken_;
  if (IsLong(row.tokens)) ++long_taken_;
  sequences_ += row.sequences;
  tokens_ += TokensOf(row);
  cache_.in_use += row.cache_bytes;
  if (IsWide(row)) cache_.wide += row.cache_bytes;
}

}  // namespace ct2triton
