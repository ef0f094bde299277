// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rows/row.h"

namespace ct2triton {

// Sources that loops have taken from the queue and not encoded yet. It needs no memory, so nothing
// fails; of sources that share a place, which few do, one waits for the other. Not thread-safe.
class SourcesInMaking {
 public:
  using Place = uint16_t;

  Place Add(const Ids& source) noexcept {
    const Place place = PlaceOf(source);
    ++counts_[place];
    return place;
  }
  void Remove(Place place) noexcept { --counts_[place]; }
  bool Has(const Ids& source) const noexcept { return counts_[PlaceOf(source)] > 0; }

 private:
  static constexpr size_t kPlaces = 4096;
  static Place PlaceOf(const Ids& source) noexcept {
    return static_cast<Place>(HashIds(source) % kPlaces);
  }

  std::array<uint32_t, kPlaces> counts_{};
};

}  // namespace ct2triton
