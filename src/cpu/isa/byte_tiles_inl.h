// Products of bytes by the tiles of AMX: sixteen rows of 64 bytes by sixteen steps of sixteen columns at
// once. A panel is what VNNI reads, filled up to whole tiles with zeros; so rows may end anywhere.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/isa/byte_steps_inl.h"
#include "cpu/isa/tile_registers_inl.h"
#include "cpu/scratch.h"

namespace rushlight::cpu::RL_ISA {
namespace {

#if defined(__AVX512BW__)
struct Tiles : FourBytes {};
template <class P>
constexpr bool kTiled = std::is_same_v<P, Tiles>;

constexpr int64_t kTileSteps = kTileBytes / FourBytes::depth;  // and rows, and columns
constexpr int64_t kTiledRows = 2 * kTileSteps;                 // which share what is read of a panel
constexpr int64_t kTiledPart =
    kTileSteps * kColumns * FourBytes::depth;  // of a panel: two tiles side by side

// What the product of some rows asks memory for: `bytes` from `from` on, and as many of each next part.
struct PanelAhead {
  const int8_t* from;
  int64_t bytes;
};

// out[16 or 32 rows][kVectors] = rows that lie `row` bytes apart by `parts` of a panel.
template <bool Both>
[[gnu::noinline]] void multiply_tiles(const char* a, int64_t row, const int8_t* panel, int64_t parts,
                                      PanelAhead ahead, Ints* out) {
  constexpr int64_t kApart = kColumns * FourBytes::depth;
  const char* lower = a + kTileSteps * row;
  asm volatile("tilezero %tmm0\n\ttilezero %tmm1");
  if constexpr (Both) asm volatile("tilezero %tmm2\n\ttilezero %tmm3");
  for (; parts > 0; --parts, a += kTileBytes, lower += kTileBytes, panel += kTiledPart) {
    for (int64_t at = 0; at < ahead.bytes; at += 64) __builtin_prefetch(ahead.from + at, 0, 2);
    ahead.from += kTiledPart;
    asm volatile(
        "tileloadd (%0,%1,1), %%tmm6\n\t"
        "tileloadd (%2,%3,1), %%tmm4\n\t"
        "tdpbusd %%tmm6, %%tmm4, %%tmm0\n\t"
        "tileloadd 64(%0,%1,1), %%tmm7\n\t"
        "tdpbusd %%tmm7, %%tmm4, %%tmm1"
        :
        : "r"(panel), "r"(kApart), "r"(a), "r"(row)
        : "memory");
    if constexpr (Both)
      asm volatile(
          "tileloadd (%0,%1,1), %%tmm5\n\t"
          "tdpbusd %%tmm6, %%tmm5, %%tmm2\n\t"
          "tdpbusd %%tmm7, %%tmm5, %%tmm3"
          :
          : "r"(lower), "r"(row)
          : "memory");
  }
  asm volatile("tilestored %%tmm0, (%0,%1,1)\n\ttilestored %%tmm1, 64(%0,%1,1)"
               :
               : "r"(out), "r"(kVectors * sizeof(Ints))
               : "memory");
  if constexpr (Both)
    asm volatile("tilestored %%tmm2, (%0,%1,1)\n\ttilestored %%tmm3, 64(%0,%1,1)"
                 :
                 : "r"(out + kTileSteps * kVectors), "r"(kVectors * sizeof(Ints))
                 : "memory");
}

// Rows as tiles read them: evenly apart, and whole tiles of them. The matrix's own are where nothing behind
// its end would be read; the others are copied.
class TiledRows {
 public:
  // Rows whose copies stay in the second cache.
  static int64_t at_once(int64_t k) {
    constexpr int64_t kBytes = 1 << 18, kMost = 4 * kTiledRows;
    return std::clamp(kBytes / std::max<int64_t>(k, 1) / kTiledRows * kTiledRows, kTiledRows, kMost);
  }
  TiledRows(const ByteRows& rows, int64_t begin, int64_t end)
      : rows_(rows), pitch_(parts(rows.k) * kTileBytes), begin_(begin), copied_(begin) {
    while (copied_ < end && in_place(copied_, end)) copied_ = std::min(end, copied_ + kTiledRows);
    if (copied_ == end) return;
    memory_ = static_cast<char*>(take_scratch((end - copied_ + kTiledRows) * pitch_ + kTileBytes));
    copies_ = memory_ + (-reinterpret_cast<intptr_t>(memory_) & (kTileBytes - 1));
    for (int64_t row = copied_; row < end; ++row) copy(row, copies_ + (row - copied_) * pitch_);
  }
  ~TiledRows() {
    if (memory_) give_scratch(memory_);
  }
  TiledRows(const TiledRows&) = delete;
  TiledRows& operator=(const TiledRows&) = delete;

  static int64_t parts(int64_t k) { return (k + kTileBytes - 1) / kTileBytes; }
  // Up to kTiledRows rows from `at` on, a multiple of those behind the first one.
  void multiply(int64_t at, int rows, const int8_t* panel, PanelAhead ahead, Ints* out) const {
    const bool own = at < copied_;
    const char* a = own ? static_cast<const char*>(rows_.data()) + at * rows_.row_bytes()
                        : copies_ + (at - copied_) * pitch_;
    (rows > kTileSteps ? multiply_tiles<true> : multiply_tiles<false>)(a, own ? rows_.row_bytes() : pitch_,
                                                                       panel, parts(rows_.k), ahead, out);
  }

 private:
  bool in_place(int64_t at, int64_t end) const {
    if (rows_.pieces() || end - at < kTiledRows) return false;
    return (rows_.m - at - kTiledRows) * rows_.row_bytes() >= pitch_ - rows_.k;
  }
  void copy(int64_t row, char* to) const {
    const auto* from = static_cast<const char*>(rows_.data());
    if (const RowPieces* in = rows_.pieces()) {
      for (int64_t piece = 0; piece < in->count; ++piece, to += in->length)
        copy_some(from + in->rows[row] + in->pieces[piece], in->length, to);
    } else {
      copy_some(from + row * rows_.row_bytes(), rows_.k, to);
    }
  }
  // Without the call that memcpy is.
  static void copy_some(const char* from, int64_t bytes, char* to) {
    for (; bytes >= kTileBytes; bytes -= kTileBytes, from += kTileBytes, to += kTileBytes)
      __builtin_memcpy(to, from, kTileBytes);
    if (bytes > 0) {
      const auto some = static_cast<__mmask64>((uint64_t{1} << bytes) - 1);
      _mm512_mask_storeu_epi8(to, some, _mm512_maskz_loadu_epi8(some, from));
    }
  }

  const ByteRows& rows_;
  const int64_t pitch_, begin_;
  int64_t copied_;  // the first row that is copied
  char *memory_ = nullptr, *copies_ = nullptr;
};
#else
template <class P>
constexpr bool kTiled = false;
#endif

}  // namespace
}  // namespace rushlight::cpu::RL_ISA
