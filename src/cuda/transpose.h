// Copies that turn rows into columns: by tiles in shared memory, so that both sides are touched along rows.
#pragma once
#include "cuda/elements.h"
#include "cuda/team.h"

namespace rushlight::cuda {

// Rows of the result run along x, rows of the input along y.
template <class Word>
struct TransposeTiles {
  static constexpr uint32_t kTile = 32, kRow = kTile + 1;  // another bank for each row
  static constexpr size_t kBytes = kTile * kRow * sizeof(Word);
  Geometry rest;  // the other dimensions
  uint32_t size_x, size_y;
  int32_t in_x, out_y;  // strides; the others are one element
  Divider tiles_x, tiles_y;
  char* out;
  const char* in;

  RL_BOTH void operator()(const Team& team) const {
    const auto tile = static_cast<uint32_t>(team.index);
    const uint32_t line = tiles_x.divide(tile), other = tiles_y.divide(line);
    const uint32_t x = (tile - line * tiles_x.divisor) * kTile, y = (line - other * tiles_y.divisor) * kTile;
    int32_t at[2];
    rest.locate_few(other, at);
    const char* from = in + at[1] + static_cast<int64_t>(y) * static_cast<int64_t>(sizeof(Word));
    char* to = out + at[0] + static_cast<int64_t>(x) * static_cast<int64_t>(sizeof(Word));
    Word* memory = reinterpret_cast<Word*>(team.memory);
    team.each([&](uint32_t t) {
      const uint32_t lane = t % kTile;
      for (uint32_t row = t / kTile; row < kTile; row += kTeamThreads / kTile)
        if (x + row < size_x && y + lane < size_y)
          memory[row * kRow + lane] =
              reinterpret_cast<const Word*>(from + static_cast<int64_t>(x + row) * in_x)[lane];
    });
    team.each([&](uint32_t t) {
      const uint32_t lane = t % kTile;
      for (uint32_t row = t / kTile; row < kTile; row += kTeamThreads / kTile)
        if (y + row < size_y && x + lane < size_x)
          reinterpret_cast<Word*>(to + static_cast<int64_t>(y + row) * out_y)[lane] =
              memory[lane * kRow + row];
    });
  }
};

// Moves operand 1 to operand 0 where that turns rows into columns; false elsewhere.
template <class Word>
bool run_transpose(const Piece& piece, const Launch& launch) {
  constexpr uint32_t kLeast = TransposeTiles<Word>::kTile / 2;  // shorter sides leave most of a tile empty
  constexpr auto kItem = static_cast<int32_t>(sizeof(Word));
  const Geometry& g = piece.geometry;
  if (g.rank < 2 || g.strides[0][0] != kItem || g.sizes[0].divisor < kLeast) return false;
  int turned = 1;
  while (turned < g.rank && (g.strides[turned][1] != kItem || g.sizes[turned].divisor < kLeast)) ++turned;
  if (turned == g.rank) return false;
  TransposeTiles<Word> tiles;
  auto divider = [](uint32_t size) {
    return Divider((size + TransposeTiles<Word>::kTile - 1) / TransposeTiles<Word>::kTile);
  };
  tiles.size_x = g.sizes[0].divisor, tiles.size_y = g.sizes[turned].divisor;
  tiles.in_x = g.strides[0][1], tiles.out_y = g.strides[turned][0];
  tiles.tiles_x = divider(tiles.size_x), tiles.tiles_y = divider(tiles.size_y);
  tiles.out = piece.operands[0].data, tiles.in = piece.operands[1].data;
  tiles.rest.operands = 2, tiles.rest.numel = 1;
  for (int d = 1; d < g.rank; ++d) {
    if (d == turned) continue;
    Geometry& rest = tiles.rest;
    rest.sizes[rest.rank] = g.sizes[d], rest.numel *= g.sizes[d].divisor;
    for (int i = 0; i < 2; ++i) rest.strides[rest.rank][i] = g.strides[d][i];
    ++rest.rank;
  }
  const int64_t count = int64_t{tiles.tiles_x.divisor} * tiles.tiles_y.divisor * tiles.rest.numel;
  for_each_team(launch, count, TransposeTiles<Word>::kBytes, tiles);
  return true;
}

}  // namespace rushlight::cuda
