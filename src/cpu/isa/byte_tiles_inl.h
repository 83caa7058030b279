// Products of bytes by the tiles of AMX: sixteen rows of 64 bytes by sixteen steps of sixteen columns at
// once. A panel is what VNNI reads, filled up to whole tiles with zeros; so rows may end anywhere.
#pragma once
#include <algorithm>
#include <cstring>

#include "cpu/isa/byte_finish_inl.h"
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

// Rows that lie `row` bytes apart, each in pieces of `parts` tiles.
struct TiledPieces {
  const char* rows;
  int64_t row, parts;
  const int64_t *first, *last;  // offsets of the pieces
};

// What becomes of the sums of a group of rows: it is computed when the tiles have begun with the next group,
// and need nothing of what the rest of the processor has.
class TiledResults {
 public:
  TiledResults(const ByteProduct& p, Finish finish) : p_(p), finish_(finish) {}
  ~TiledResults() { finish_last(); }
  TiledResults(const TiledResults&) = delete;
  TiledResults& operator=(const TiledResults&) = delete;

  // What follows sums that are added from now on, of columns from `first` on.
  void use(const Rest& rest, int64_t first) { next_ = {&rest, first}; }
  // Memory for the sums of the next group; those of the last one stay until they are finished.
  Ints* sums() { return sums_[turn_]; }
  // Rows of the group that was written to sums(), when the last one is finished; swap() ends it.
  void add(int64_t row, int rows, const Ints* sums) { runs_[count_++] = {row, rows, sums}; }
  void swap() { turn_ = 1 - turn_, last_ = next_; }
  void finish_last() {
    if (count_ > 0) finish_runs();
  }
  void finish_now(int64_t row, int rows, const Ints* sums) const {
    finish_(p_, *next_.rest, sums, rows, row, next_.first);
  }

 private:
  struct Run {
    int64_t row;
    int rows;
    const Ints* sums;
  };
  struct Settings {
    const Rest* rest;
    int64_t first;
  };
  [[gnu::noinline]] void finish_runs() {
    for (int i = 0; i < count_; ++i)
      finish_(p_, *last_.rest, runs_[i].sums, runs_[i].rows, runs_[i].row, last_.first);
    count_ = 0;
  }

  const ByteProduct& p_;
  const Finish finish_;
  int turn_ = 0, count_ = 0;
  Settings last_{}, next_{};
  Run runs_[kTiledRows];
  alignas(kTileBytes) Ints sums_[2][kTiledRows * kVectors];
};

// results.sums()[16 or 32 rows][kVectors] = rows by a panel.
template <bool Both>
[[gnu::noinline]] void multiply_tiles(TiledPieces in, const int8_t* panel, PanelAhead ahead,
                                      TiledResults& results) {
  constexpr int64_t kApart = kColumns * FourBytes::depth;
  const int64_t row = in.row;
  asm volatile("tilezero %tmm0\n\ttilezero %tmm1");
  if constexpr (Both) asm volatile("tilezero %tmm2\n\ttilezero %tmm3");
  const auto add = [&](const char* a) {
    const char* lower = a + kTileSteps * row;
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
    panel += kTiledPart;
  };
  for (; in.first != in.last; ++in.first) {
    const char* a = in.rows + *in.first;
    for (int64_t part = 0; part < in.parts; ++part, a += kTileBytes) {
      add(a);
      results.finish_last();
    }
  }
  Ints* out = results.sums();
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

void multiply_some_tiles(int64_t rows, const TiledPieces& in, const int8_t* panel, PanelAhead ahead,
                         TiledResults& results) {
  (rows > kTileSteps ? multiply_tiles<true> : multiply_tiles<false>)(in, panel, ahead, results);
}

// Rows of an image that tiles read where they lie: at all places between the first and the last one. Sums of
// those at the ends of lines, which no row has, are left alone.
class PlacedRows {
 public:
  static bool fit(const ByteRows& rows) {
    const RowPieces* in = rows.pieces();
    return in && in->places > 0 && in->length % kTileBytes == 0;
  }
  PlacedRows(const ByteRows& rows, int64_t begin, int64_t end)
      : rows_(rows), in_(*rows.pieces()), begin_(begin), end_(end), plane_(in_.width * in_.lines) {}
  int64_t groups() const {
    return (placed_at(end_ - 1) - placed_at(begin_)) / kTiledRows + (end_ - 1) / plane_ - begin_ / plane_ + 1;
  }
  // As RowBlock's.
  template <class Before>
  void multiply(const int8_t* panel, PanelAhead ahead, Before before, TiledResults& results) const {
    for (int64_t first = begin_ / plane_ * plane_; first < end_; first += plane_) {
      const int64_t last = placed_at(std::min(end_, first + plane_) - 1) + 1;
      const char* plane = static_cast<const char*>(rows_.data()) + in_.rows[first];
      for (int64_t at = placed_at(std::max(begin_, first)); at < last; ahead.from += ahead.bytes) {
        const int64_t places = std::min(kTiledRows, last - at), row = first + rows_before(at);
        before(row, static_cast<int>(first + rows_before(at + places) - row));
        const TiledPieces in{plane + at * in_.step, in_.step, in_.length / kTileBytes, in_.pieces,
                             in_.pieces + in_.count};
        multiply_some_tiles(places, in, panel, ahead, results);
        at = add_rows(first, at, at + places, results);
      }
    }
  }

 private:
  // Of its plane, and the other way.
  int64_t placed_at(int64_t row) const {
    row %= plane_;
    return row / in_.width * in_.places + row % in_.width;
  }
  int64_t rows_before(int64_t place) const {
    return place / in_.places * in_.width + std::min(place % in_.places, in_.width);
  }
  // The rows at places [at, last) of the plane that begins with row `first`; the next one's place.
  int64_t add_rows(int64_t first, int64_t at, int64_t last, TiledResults& results) const {
    const Ints* sums = results.sums();
    int64_t column = at % in_.places;
    for (int64_t row = first + rows_before(at); at < last; column = 0) {
      const int64_t count = std::min(in_.width - column, last - at);
      results.add(row, static_cast<int>(count), sums);
      const int64_t next = column + count < in_.width ? count : in_.places - column;
      row += count, at += next, sums += next * kVectors;
    }
    results.swap();
    return at;
  }

  const ByteRows& rows_;
  const RowPieces& in_;
  const int64_t begin_, end_, plane_;
};

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
  void multiply(int64_t at, int rows, const int8_t* panel, PanelAhead ahead, TiledResults& results) const {
    const bool own = at < copied_;
    const char* a = own ? static_cast<const char*>(rows_.data()) + at * rows_.row_bytes()
                        : copies_ + (at - copied_) * pitch_;
    constexpr int64_t kWhole = 0;
    const TiledPieces in{a, own ? rows_.row_bytes() : pitch_, parts(rows_.k), &kWhole, &kWhole + 1};
    multiply_some_tiles(rows, in, panel, ahead, results);
    results.add(at, rows, results.sums());
    results.swap();
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
