// SPDX-License-Identifier: Apache-2.0
//
// AMX: TDPBUSD on tiles of up to 16 rows and 16 outputs, for blocks of up to 32 rows and a panel.
// Few rows, and inputs that do not fill whole tiles, are left to AVX-512 VNNI, whose panels these
// are.
//
// Tiles 0 to 3 hold the sums of the first rows' low and high outputs, then of the second rows'.
// Tiles 4 and 5 hold codes of the first and the second rows, 6 and 7 weights of the low and the
// high outputs.
#include <immintrin.h>

#include "engine/compute/cpu/products/kernel_body.h"

namespace ct2triton::products {
namespace {

struct AmxTile : ByteTile {
  static constexpr int kOutputs = 32;
  static constexpr int kGroup = 4;
  static constexpr int64_t kLeastRows = 3;  // below, broadcasting codes is faster
  static constexpr int64_t kTileRows = 16;
  static constexpr int64_t kTileBytes = 64;  // of a row of a tile
  static constexpr int64_t kTileGroups = kTileBytes / kGroup;
  static constexpr int64_t kGroupBytes = int64_t{kOutputs} * kGroup;
  static constexpr int64_t kRows = 2 * kTileRows;
  static constexpr bool kFetches = false;  // NextPanel does
  using Code = uint8_t;
};

// The rows of a block in its first tile and in its second one, 0 if it has none.
struct BlockRows {
  explicit BlockRows(int64_t rows)
      : first(rows > AmxTile::kTileRows ? (rows + 1) / 2 : rows), second(rows - first) {}
  int64_t first;
  int64_t second;
};

// The shapes of this thread's tiles. Afterwards they hold nothing that the system has to save.
class TileShapes {
 public:
  explicit TileShapes(const BlockRows& rows) {
    const int64_t by_tile[kTiles] = {rows.first,           rows.first,          rows.second,
                                     rows.second,          rows.first,          rows.second,
                                     AmxTile::kTileGroups, AmxTile::kTileGroups};
    for (int tile = 0; tile < kTiles; ++tile) {
      shapes_.rows[tile] = static_cast<uint8_t>(by_tile[tile]);
      shapes_.row_bytes[tile] = by_tile[tile] == 0 ? 0 : AmxTile::kTileBytes;
    }
    _tile_loadconfig(&shapes_);
  }
  ~TileShapes() { _tile_release(); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;

 private:
  static constexpr int kTiles = 8;

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
// with each step of a block's sums and with each row that is finished, so that memory is never
// idle.
class NextPanel {
 public:
  NextPanel(const PanelView& panels, int64_t rows, int64_t blocks)
      : end_(panels.weights + panels.end * panels.groups * AmxTile::kGroup) {
    const int64_t lines = panels.groups * AmxTile::kGroupBytes / kCacheLine;
    const int64_t shares = kStepShares * blocks * panels.groups / AmxTile::kTileGroups + rows;
    share_ = (lines + shares - 1) / shares;
  }

  void Begin(const std::byte* panel) { next_ = panel; }
  void FetchInStep() { Fetch(kStepShares * share_); }
  void FetchAtRow() { Fetch(share_); }

 private:
  static constexpr int64_t kStepShares = 2;  // a step takes about as long as two rows

  void Fetch(int64_t lines) {
    for (; lines > 0 && next_ < end_; --lines, next_ += kCacheLine)
      _mm_prefetch(next_, _MM_HINT_T1);
  }

  const std::byte* end_;  // of what is to be multiplied
  const std::byte* next_ = nullptr;
  int64_t share_;  // lines
};

// Writes [rows of the block][kOutputs] sums.
template <bool kTwo>
void BlockSums(const uint8_t* codes, int64_t stride, const BlockRows& rows,
               const TileWeights<int8_t>& from, NextPanel* next, int32_t* sums) {
  const uint8_t* second = codes + rows.first * stride;
  // All rows of these tiles are the same memory.
  _tile_loadd(0, from.start, 0);
  _tile_loadd(1, from.start + AmxTile::kTileRows, 0);
  if (kTwo) _tile_loadd(2, from.start, 0);
  if (kTwo) _tile_loadd(3, from.start + AmxTile::kTileRows, 0);
  for (int64_t group = 0; group < from.groups; group += AmxTile::kTileGroups) {
    next->FetchInStep();
    const int8_t* weights = from.panel + group * AmxTile::kGroupBytes;
    _tile_loadd(4, codes + group * AmxTile::kGroup, stride);
    _tile_loadd(6, weights, AmxTile::kGroupBytes);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, weights + AmxTile::kTileBytes, AmxTile::kGroupBytes);
    _tile_dpbusd(1, 4, 7);
    if (!kTwo) continue;
    _tile_loadd(5, second + group * AmxTile::kGroup, stride);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  constexpr int64_t kSumBytes = AmxTile::kOutputs * int64_t{sizeof(int32_t)};
  int32_t* second_sums = sums + rows.first * AmxTile::kOutputs;
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + AmxTile::kTileRows, kSumBytes);
  if (kTwo) _tile_stored(2, second_sums, kSumBytes);
  if (kTwo) _tile_stored(3, second_sums + AmxTile::kTileRows, kSumBytes);
}

// As for other tiles. All blocks have the same rows, so that tiles need one shape: the last ones
// may begin with rows of the block before, which are computed again.
template <typename Finish>
void EachTile(AmxTile /*tile*/, const PanelView& panels, const RowView& rows,
              const Finish& finish) {
  alignas(64) int32_t sums[AmxTile::kRows][AmxTile::kOutputs];
  const int64_t blocks = (rows.count + AmxTile::kRows - 1) / AmxTile::kRows;
  const int64_t count = (rows.count + blocks - 1) / blocks;
  const BlockRows shape(count);
  const auto block_sums = shape.second > 0 ? &BlockSums<true> : &BlockSums<false>;
  const TileShapes shapes(shape);
  NextPanel next(panels, rows.count, blocks);
  for (int64_t column = panels.begin; column < panels.end; column += AmxTile::kOutputs) {
    const int64_t left = panels.outputs - column;
    const int64_t columns = left < AmxTile::kOutputs ? left : AmxTile::kOutputs;
    const auto weights = WeightsOf<AmxTile>(panels, column, 0, 1);
    next.Begin(panels.weights + (column + AmxTile::kOutputs) * panels.groups * AmxTile::kGroup);
    for (int64_t done = 0; done < rows.count;) {
      const int64_t first = done + count > rows.count ? rows.count - count : done;
      const auto* codes = reinterpret_cast<const uint8_t*>(rows.codes + first * rows.stride);
      block_sums(codes, rows.stride, shape, weights, &next, sums[0]);
      for (; done < first + count; ++done) {
        next.FetchAtRow();
        finish(Place{done, column, columns}, sums[done - first]);
      }
    }
  }
}

bool UsesTiles(const PanelView& panels, const RowView& rows) {
  return rows.count >= AmxTile::kLeastRows && panels.groups % AmxTile::kTileGroups == 0;
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
