// Reductions whose outputs read lines of memory, in two ways. Rows: the elements of an output lie next to
// each other, and threads share them. Columns: outputs do, and a thread has some of them. Long ones go to
// several blocks, whose results a second kernel joins in order.
//
// An operation has types Acc (what a thread keeps), T (what threads join) and Join; and
//   visit(f)                        calls f(g) with itself for one stored type. g has
//     load<W>(offset, outer)        W elements; outer: the run of a row, the position in a column
//     context(output, run)          what is the same for all elements of an output
//     fold(acc, loaded, k, context, position)
//   begin(), total(acc), finish(output, t)
//   kResident                       blocks that an SM holds at once, which bounds registers
#pragma once
#include <algorithm>

#include "core/device_backend.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/piece.h"

namespace rushlight::cuda {

// W elements that are read at once.
template <class S, int W>
struct alignas(W * sizeof(S) < 16 ? W * sizeof(S) : 16) Pack {
  S v[W];
};
constexpr int kPack = 4;
inline bool packs(const void* address, size_t item) {
  return reinterpret_cast<uintptr_t>(address) % std::min<size_t>(kPack * item, 16) == 0;
}

// All offsets are in elements.
struct Lines {
  LongGeometry<1> outer, runs;        // of outputs (of the first of neighbours); of an output's lines
  int64_t outputs = 1, columns = 0;   // columns: outputs next to each other, 0 in rows
  int64_t run_count = 1, length = 1;  // lines of an output, elements of each
  int64_t step = 1;                   // between rows, for columns
  bool packed = false;                // all lines begin where a pack may
  int64_t lanes = 1 << 30;            // threads that share a run, in rows: a power of two

  // How blocks divide an output: into parts of its runs, and of the elements (packs) of each.
  int64_t run_parts = 1, part_runs = 1, piece_parts = 1, piece = 0;

  bool is_rows() const { return columns == 0; }
  int64_t parts() const { return run_parts * piece_parts; }
  int64_t count() const { return run_count * length; }
  void divide(int64_t wanted, int64_t units) {
    run_parts = std::clamp<int64_t>(wanted, 1, run_count);
    part_runs = (run_count + run_parts - 1) / run_parts;
    run_parts = (run_count + part_runs - 1) / part_runs;
    piece_parts = std::clamp<int64_t>(wanted / run_parts, 1, std::max<int64_t>(units, 1));
    piece = std::max<int64_t>((units + piece_parts - 1) / piece_parts, 1);
    piece_parts = std::max<int64_t>((units + piece - 1) / piece, 1);
  }
};

// Dimensions in the order of their memory, the innermost first.
struct Axes {
  struct Axis {
    int64_t size, stride;
  };
  Axis axis[kMaxRank];
  int rank = 0;
  void add(int64_t size, int64_t stride) {
    if (rank > 0 && axis[rank - 1].size * axis[rank - 1].stride == stride)
      axis[rank - 1].size *= size;
    else
      axis[rank++] = {size, stride};
  }
  bool packs() const {
    return std::all_of(axis, axis + rank,
                       [](const Axis& a) { return a.stride % kPack == 0 || a.stride == 1; });
  }
  // All but one.
  LongGeometry<1> geometry(int but) const {
    LongGeometry<1> g;
    for (int d = 0; d < rank; ++d) {
      if (d == but) continue;
      g.sizes[g.rank] = axis[d].size;
      g.strides[g.rank++][0] = axis[d].stride;
    }
    return g;
  }
};

// The dimensions of `in` whose bit is set as lines. False: memory is better read in another way.
inline bool find_lines(const View& in, uint64_t dims, int64_t outputs, Lines* lines) {
  const auto item = static_cast<int64_t>(element_size(in.dtype));
  Axes kept, reduced, sorted;
  for (int d = in.rank - 1; d >= 0; --d) {
    if (in.sizes[d] == 0) return false;
    if (in.sizes[d] > 1) (dims >> d & 1 ? reduced : kept).add(in.sizes[d], in.strides[d] / item);
  }
  if (reduced.rank == 0) return false;
  std::sort(reduced.axis, reduced.axis + reduced.rank,
            [](const Axes::Axis& a, const Axes::Axis& b) { return a.stride < b.stride; });
  for (int d = 0; d < reduced.rank; ++d) sorted.add(reduced.axis[d].size, reduced.axis[d].stride);
  int64_t count = 1;
  for (int d = 0; d < sorted.rank; ++d) count *= sorted.axis[d].size;
  const bool short_lines = outputs >= 4096 && count <= 64;  // better with a thread for each output
  const bool aligned = packs(in.data, static_cast<size_t>(item)) && kept.packs() && sorted.packs();
  lines->outputs = outputs;
  int along = 0;
  if (sorted.axis[0].stride == 1) {
    if (short_lines || (sorted.rank > 1 && sorted.axis[0].size < 8)) return false;
    lines->outer = kept.geometry(-1);
    lines->packed = aligned;
  } else if (kept.rank > 0 && kept.axis[0].stride == 1) {
    if (short_lines && kept.axis[0].size < 128) return false;
    for (int d = 1; d < sorted.rank; ++d)
      if (sorted.axis[d].size > sorted.axis[along].size) along = d;
    lines->columns = kept.axis[0].size;
    lines->outer = kept.geometry(0);
    lines->step = sorted.axis[along].stride;
    lines->packed = aligned && lines->columns % kPack == 0;
  } else {
    return false;
  }
  lines->runs = sorted.geometry(along);
  lines->length = sorted.axis[along].size;
  lines->run_count = count / lines->length;
  return true;
}

// Folds the packs i, i + threads, ... below n of one line; positions count from `first`. What a block has of
// a line is below 2^31.
template <int W, bool rows, class Typed, class Context, class Acc>
RL_BOTH void walk(const Typed& f, const Context* context, int64_t origin, int64_t step, int32_t i, int32_t n,
                  int32_t threads, int64_t run, int64_t first, Acc (&acc)[W]) {
  using Loaded = decltype(f.template load<W>(0, 0));
  constexpr int kInFlight = W == 1 || sizeof(Loaded) <= 8 ? 8 : 4;
  RL_NO_UNROLL for (; i < n; i += kInFlight * threads) {
    Loaded loaded[kInFlight];
    RL_UNROLL for (int u = 0; u < kInFlight; ++u) {
      const int32_t at = i + u * threads;
      if (at < n) loaded[u] = f.template load<W>(origin + at * step, rows ? run : first + at);
    }
    RL_UNROLL for (int u = 0; u < kInFlight; ++u) {
      const int32_t at = i + u * threads;
      if (at < n) {
        RL_UNROLL for (int k = 0; k < W; ++k)
            f.fold(acc[k], loaded[u], k, context[rows ? 0 : k], first + (rows ? at * W + k : at));
      }
    }
  }
}

template <int W, class Op>
struct ReduceRows {
  using T = typename Op::T;
  Op op;
  Lines lines;
  T* partial;  // by part, then by output; null: of one part

  RL_BOTH void operator()(const Block& block) const {
    const int64_t part = partial ? quotient(block.index, lines.outputs) : 0;
    const int64_t output = block.index - part * lines.outputs;
    const int64_t runs = quotient(part, lines.piece_parts), piece = part - runs * lines.piece_parts;
    const int64_t first_run = runs * lines.part_runs, begin = piece * lines.piece, packs = lines.length / W;
    const int64_t last_run =
        first_run + lines.part_runs < lines.run_count ? first_run + lines.part_runs : lines.run_count;
    const int64_t end = begin + lines.piece < packs ? begin + lines.piece : packs;
    int64_t start;
    lines.outer.locate(output, &start);
    typename Op::Acc acc[W];
    for (int k = 0; k < W; ++k) acc[k] = op.begin();
    op.visit([&](const auto& f) {
      const uint32_t lanes = block.threads < lines.lanes ? block.threads : static_cast<uint32_t>(lines.lanes);
      const uint32_t lane = block.thread & (lanes - 1);
      for (int64_t run = first_run + block.thread / lanes; run < last_run; run += block.threads / lanes) {
        int64_t origin;
        lines.runs.locate(run, &origin);
        origin += start;
        const auto context = f.context(output, run);
        const int64_t first = run * lines.length;
        walk<W, true>(f, &context, origin + begin * W, W, static_cast<int32_t>(lane),
                      static_cast<int32_t>(end - begin), static_cast<int32_t>(lanes), run, first + begin * W,
                      acc);
        if constexpr (W > 1) {  // what is left of the line
          const int64_t rest = packs * W;
          if (piece + 1 == lines.piece_parts)
            for (int64_t i = rest + lane; i < lines.length; i += lanes)
              f.fold(acc[0], f.template load<1>(origin + i, run), 0, context, first + i);
        }
      }
    });
    T total = op.total(acc[0]);
    for (int k = 1; k < W; ++k) total = op.join(total, op.total(acc[k]));
    total = block_reduce(block, total, op.join);
    if (block.thread != 0) return;
    if (partial)
      partial[block.index] = total;
    else
      op.finish(output, total);
  }
};

template <int W, class Op>
struct ReduceColumns {
  using T = typename Op::T;
  Op op;
  Lines lines;
  T* partial;
  int64_t across;  // tiles beside each other

  RL_BOTH void operator()(const Tile& tile) const {
    const int64_t line = quotient(tile.index, across), tiles = tile.index - line * across;
    const int64_t rows = quotient(lines.outputs, lines.columns);  // of outputs
    const int64_t part = partial ? quotient(line, rows) : 0, row = line - part * rows;
    const int64_t runs = quotient(part, lines.piece_parts), piece = part - runs * lines.piece_parts;
    const int64_t first_run = runs * lines.part_runs, begin = piece * lines.piece;
    const int64_t last_run =
        first_run + lines.part_runs < lines.run_count ? first_run + lines.part_runs : lines.run_count;
    const int64_t end = begin + lines.piece < lines.length ? begin + lines.piece : lines.length;
    const int64_t column = (tiles * tile.across + tile.x) * W, output = row * lines.columns + column;
    const bool inside = column < lines.columns;
    int64_t start;
    lines.outer.locate(row, &start);
    typename Op::Acc acc[W];
    for (int k = 0; k < W; ++k) acc[k] = op.begin();
    op.visit([&](const auto& f) {
      if (!inside) return;
      for (int64_t run = first_run; run < last_run; ++run) {
        int64_t origin;
        lines.runs.locate(run, &origin);
        decltype(f.context(0, 0)) context[W];
        for (int k = 0; k < W; ++k) context[k] = f.context(output + k, run);
        walk<W, false>(f, context, origin + start + column + begin * lines.step, lines.step,
                       static_cast<int32_t>(tile.y), static_cast<int32_t>(end - begin),
                       static_cast<int32_t>(tile.rows), run, run * lines.length + begin, acc);
      }
    });
    T total[W];
    for (int k = 0; k < W; ++k) total[k] = op.total(acc[k]);
    tile_reduce(tile, total, op.join);
    if (!inside || tile.y != 0) return;
    for (int k = 0; k < W; ++k) {
      if (partial)
        partial[part * lines.outputs + output + k] = total[k];
      else
        op.finish(output + k, total[k]);
    }
  }
};

// Joins the parts of each output.
template <class Op>
struct JoinParts {
  using T = typename Op::T;
  Op op;
  const T* partial;
  int64_t outputs, parts;
  RL_BOTH void operator()(const Tile& tile) const {
    const int64_t output = tile.index * tile.across + tile.x;
    constexpr int kInFlight = 4;
    T total[1] = {op.total(op.begin())};
    for (int64_t p = tile.y; p < parts && output < outputs; p += kInFlight * tile.rows) {
      T loaded[kInFlight];
      RL_UNROLL for (int u = 0; u < kInFlight; ++u) {
        const int64_t at = p + u * tile.rows;
        loaded[u] = at < parts ? partial[at * outputs + output] : op.total(op.begin());
      }
      RL_UNROLL for (int u = 0; u < kInFlight; ++u) total[0] = op.join(total[0], loaded[u]);
    }
    tile_reduce(tile, total, op.join);
    if (output < outputs && tile.y == 0) op.finish(output, total[0]);
  }
};

inline uint32_t power_of_two_from(int64_t n, uint32_t most) {
  uint32_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

constexpr int64_t kManyMultiprocessors = 132;  // of a large GPU

template <int W, class Op>
void reduce_lines_by(const Launch& at, Lines lines, const Op& op) {
  using T = typename Op::T;
  constexpr int64_t kEnough = 2 * kManyMultiprocessors * Op::kResident;  // blocks
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const int64_t units = lines.is_rows() ? lines.length / W : lines.length;
  uint32_t across = 1;
  int64_t tiles = 0, wanted = 1;
  bool by_warp = false;
  if (lines.is_rows()) {
    if (lines.run_count > 1) lines.lanes = power_of_two_from(lines.length / W, kWideThreads);
    by_warp = lines.count() <= 512 || (lines.outputs >= 2048 && lines.count() <= 8192);
    constexpr int64_t kLeast = 4096;  // elements that are worth a block
    if (lines.outputs < kEnough) wanted = std::min(kEnough / lines.outputs, lines.count() / kLeast);
  } else {
    const int64_t packs = lines.columns / W;
    across = power_of_two_from(packs, 32);
    while (across < kBlockThreads && across < packs && kBlockThreads / across > lines.count()) across *= 2;
    tiles = (packs + across - 1) / across;
    const int64_t all = tiles * (lines.outputs / lines.columns), rows = kBlockThreads / across;
    if (all < kEnough) wanted = std::min(kEnough / all, lines.count() / (4 * rows));
  }
  lines.divide(wanted, units);
  const int64_t parts = lines.parts();
  const size_t bytes = parts > 1 ? static_cast<size_t>(parts * lines.outputs) * sizeof(T) : 0;
  auto* partial = bytes ? static_cast<T*>(backend.allocate(bytes, at.device)) : nullptr;
  if (lines.is_rows()) {
    const ReduceRows<W, Op> kernel{op, lines, partial};
    by_warp ? for_each_warp<Op::kResident>(at, lines.outputs * parts, kernel)
            : for_each_resident_block<Op::kResident>(at, lines.outputs * parts, kernel);
  } else {
    const int64_t rows = lines.outputs / lines.columns;
    for_each_tile<Op::kResident>(at, tiles * rows * parts, across,
                                 ReduceColumns<W, Op>{op, lines, partial, tiles});
  }
  if (!partial) return;
  // A thread joins few parts, one after the other.
  const auto most = static_cast<uint32_t>(std::clamp<int64_t>(4 * kBlockThreads / parts, 1, 32));
  const uint32_t joined = power_of_two_from(lines.outputs, power_of_two_from(most, 32));
  for_each_tile(at, (lines.outputs + joined - 1) / joined, joined,
                JoinParts<Op>{op, partial, lines.outputs, parts});
  backend.deallocate(partial, bytes, at.device);
}

template <class Op>
void reduce_lines(const Launch& at, Lines lines, const Op& op) {
  if (lines.count() == 0) lines.run_count = 1, lines.length = 0;
  lines.packed ? reduce_lines_by<kPack>(at, lines, op) : reduce_lines_by<1>(at, lines, op);
}

}  // namespace rushlight::cuda
