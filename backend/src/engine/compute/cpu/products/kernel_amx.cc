// SPDX-License-Identifier: Apache-2.0
//
// AMX: TDPBUSD on tiles of up to 16 rows and 16 outputs. Few rows, and inputs that do not fill
// whole tiles, are left to AVX-512 VNNI, whose panels these are.
//
// Tiles 0 and 1 hold sums of a panel's low and high outputs, 2 codes of the rows, 3 and 4 weights
// of the low and high outputs. Twice as many rows, in four tiles of sums and two of codes, read a
// panel half as often, but were 1.3 to 1.6 times slower where another thread used the core.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct AmxTile : ByteTile {
  static constexpr int kOutputs = 32;
  static constexpr int kGroup = 4;
  static constexpr int64_t kLeastRows = 3;  // below, broadcasting codes is faster
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kLineBytes = 64;  // of a row of a tile
  static constexpr int64_t kLineOutputs = kLineBytes / kGroup;
  static constexpr int64_t kGroups = 16;  // of inputs in a tile of weights
  static constexpr int64_t kGroupBytes = int64_t{kOutputs} * kGroup;
  static constexpr bool kFetches = false;  // NextPanel does
  using Code = uint8_t;
};

// The shapes of this thread's tiles. Afterwards they hold nothing that the system has to save.
class TileShapes {
 public:
  explicit TileShapes(int64_t rows) {
    constexpr int kTiles = 5;
    for (int tile = 0; tile < kTiles; ++tile) {
      shapes_.row_bytes[tile] = AmxTile::kLineBytes;
      shapes_.rows[tile] = static_cast<uint8_t>(tile < 3 ? rows : AmxTile::kGroups);
    }
    // GCC's intrinsic does not say that it reads more than the first bytes.
    asm volatile("" : : "m"(shapes_));
    _tile_loadconfig(&shapes_);
  }
  ~TileShapes() { _tile_release(); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;

 private:
  // As LDTILECFG reads it.
  struct alignas(64) Shapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } shapes_;
};

// Brings the next panel's weights into the second cache while a panel is multiplied, some lines
// with each step of a tile's sums and with each row that is finished, so that memory is never idle.
class NextPanel {
 public:
  NextPanel(const PanelView& panels, int64_t rows, int64_t tiles)
      : end_(panels.weights + panels.end * panels.groups * AmxTile::kGroup) {
    const int64_t lines = panels.groups * AmxTile::kGroupBytes / kCacheLine;
    const int64_t shares = kStepShares * tiles * panels.groups / AmxTile::kGroups + rows;
    share_ = (lines + shares - 1) / shares;
  }

  void Begin(const std::byte* panel) { next_ = panel; }
  void FetchInStep() { Fetch(kStepShares * share_); }
  void FetchAtRow() { Fetch(share_); }

 private:
  static constexpr int64_t kStepShares = 2;  // a step takes about as long as two rows

  void Fetch(int64_t lines) {
    for (; lines > 0 && next_ < end_; --lines, next_ += kCacheLine) {
      _mm_prefetch(next_, _MM_HINT_T1);
    }
  }

  const std::byte* end_;  // of what is to be multiplied
  const std::byte* next_ = nullptr;
  int64_t share_;  // lines
};

// Writes [rows of the tile][kOutputs] sums.
inline void TileSums(const uint8_t* codes, int64_t stride, const TileWeights<int8_t>& from,
                     NextPanel* next, int32_t* sums) {
  // All rows of these tiles are the same memory.
  _tile_loadd(0, from.start, 0);
  _tile_loadd(1, from.start + AmxTile::kLineOutputs, 0);
  for (int64_t group = 0; group < from.groups; group += AmxTile::kGroups) {
    next->FetchInStep();
    const int8_t* weights = from.panel + group * AmxTile::kGroupBytes;
    _tile_loadd(2, codes + group * AmxTile::kGroup, stride);
    _tile_loadd(3, weights, AmxTile::kGroupBytes);
    _tile_dpbusd(0, 2, 3);
    _tile_loadd(4, weights + AmxTile::kLineBytes, AmxTile::kGroupBytes);
    _tile_dpbusd(1, 2, 4);
  }
  constexpr int64_t kSumBytes = AmxTile::kOutputs * int64_t{sizeof(int32_t)};
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + AmxTile::kLineOutputs, kSumBytes);
}

// As for other tiles. All have the same number of rows, so that one shape does: the last ones may
// begin with rows of the one before, which are computed again.
template <typename Finish>
void EachTile(AmxTile /*tile*/, const PanelView& panels, const RowView& rows,
              const Finish& finish) {
  alignas(64) int32_t sums[AmxTile::kRows][AmxTile::kOutputs];
  const int64_t tiles = (rows.count + AmxTile::kRows - 1) / AmxTile::kRows;
  const int64_t count = (rows.count + tiles - 1) / tiles;
  const TileShapes shapes(count);
  NextPanel next(panels, rows.count, tiles);
  for (int64_t column = panels.begin; column < panels.end; column += AmxTile::kOutputs) {
    const int64_t left = panels.outputs - column;
    const int64_t columns = left < AmxTile::kOutputs ? left : AmxTile::kOutputs;
    const auto weights = WeightsOf<AmxTile>(panels, column, 0, 1);
    next.Begin(panels.weights + (column + AmxTile::kOutputs) * panels.groups * AmxTile::kGroup);
    for (int64_t done = 0; done < rows.count;) {
      const int64_t first = done + count > rows.count ? rows.count - count : done;
      const auto* codes = reinterpret_cast<const uint8_t*>(rows.codes + first * rows.stride);
      TileSums(codes, rows.stride, weights, &next, sums[0]);
      for (; done < first + count; ++done) {
        next.FetchAtRow();
        finish(Place{done, column, columns}, sums[done - first]);
      }
    }
  }
}

bool UsesTiles(const PanelView& panels, const RowView& rows) {
  return rows.count >= AmxTile::kLeastRows && panels.groups % AmxTile::kGroups == 0;
}

void Write(const PanelView& panels, const RowView& rows, const WriteTail& tail) {
  const bool tiles = UsesTiles(panels, rows);
  (tiles ? &KernelOf<AmxTile>::Write : kAvx512VnniKernel.write)(panels, rows, tail);
}

void Choose(const PanelView& panels, const RowView& rows, ChoiceState* states) {
  const bool tiles = UsesTiles(panels, rows);
  (tiles ? &KernelOf<AmxTile>::Choose : kAvx512VnniKernel.choose)(panels, rows, states);
}

constexpr Kernel Amx() {
  Kernel kernel = MakeKernel<AmxTile>("amx");
  kernel.write = &Write;
  kernel.choose = &Choose;
  return kernel;
}

}  // namespace

constexpr Kernel kAmxKernel = Amx();

}  // namespace ct2triton::products
