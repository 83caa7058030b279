// Running sums and products. They are kept in double or int64, whatever the elements are.
#include <algorithm>

#include "cuda/reduce_common.h"
#include "cuda/reduce_lines.h"

namespace rushlight::cuda {
namespace {

template <class A, class Combine>
struct Cumulate {
  LongGeometry<2> lines;  // input and output
  int64_t count, in_step, out_step;
  const char* in;
  char* out;
  DType dtype;
  A start;

  RL_BOTH void operator()(const Block& block) const {
    int64_t at[2];
    lines.locate(block.index, at);
    const int64_t length = (count + block.threads - 1) / block.threads, begin = block.thread * length;
    const int64_t end = begin + length < count ? begin + length : count;
    Combine combine;
    A total = start;
    if (block.threads > 1)
      for (int64_t i = begin; i < end; ++i) total = combine(total, read<A>(dtype, in + at[0] + i * in_step));
    A all;
    total = block_scan(block, total, start, combine, &all);
    for (int64_t i = begin; i < end; ++i) {
      total = combine(total, read<A>(dtype, in + at[0] + i * in_step));
      write(dtype, out + at[1] + i * out_step, total);
    }
  }
};

// --- lines whose elements are neighbours

// A block goes along a line, or a chunk of a long one.
struct ScanLines {
  LongGeometry<2> lines;  // input and output, in bytes
  int64_t count, chunks, chunk;
  const char* in;
  char* out;
  bool packed;  // lines and chunks begin where a pack may

  template <class S, class F>  // f(from, to, elements)
  RL_BOTH void visit(int64_t index, F&& f) const {
    const int64_t line = quotient(index, chunks), begin = (index - line * chunks) * chunk;
    int64_t at[2];
    lines.locate(line, at);
    f(reinterpret_cast<const S*>(in + at[0]) + begin, reinterpret_cast<S*>(out + at[1]) + begin,
      begin + chunk < count ? chunk : count - begin);
  }
};

constexpr int kScanPacks = 2, kScanItems = kScanPacks * kPack;  // of a thread

// Those of n elements that a thread has from i on.
template <class S>
struct Items {
  Pack<S, kPack> packs[kScanPacks];
  RL_BOTH S at(int k) const { return packs[k / kPack].v[k % kPack]; }
  RL_BOTH void read(const S* from, int64_t i, int64_t n, bool packed) {
    if (packed && i + kScanItems <= n) {
      for (int p = 0; p < kScanPacks; ++p)
        packs[p] = *reinterpret_cast<const Pack<S, kPack>*>(from + i + p * kPack);
    } else {
      for (int k = 0; k < kScanItems; ++k)
        if (i + k < n) packs[k / kPack].v[k % kPack] = from[i + k];
    }
  }
};
template <class S, class A>
RL_BOTH void write_items(S* to, int64_t i, int64_t n, bool packed, const A (&x)[kScanItems]) {
  if (packed && i + kScanItems <= n) {
    for (int p = 0; p < kScanPacks; ++p) {
      Pack<S, kPack> pack;
      for (int k = 0; k < kPack; ++k) pack.v[k] = number<S>(x[p * kPack + k]);
      *reinterpret_cast<Pack<S, kPack>*>(to + i + p * kPack) = pack;
    }
  } else {
    for (int k = 0; k < kScanItems; ++k)
      if (i + k < n) to[i + k] = number<S>(x[k]);
  }
}

template <class S, class A, class Combine>
struct ChunkTotals {
  ScanLines lines;
  A* totals;
  A start;
  RL_BOTH void operator()(const Block& block) const {
    A total = start;
    lines.visit<S>(block.index, [&](const S* from, S*, int64_t n) {
      // What order is free in: neighbouring threads read neighbouring packs, four tiles at once.
      const int64_t packs = lines.packed ? n / kPack : 0;
      constexpr int kInFlight = 4;
      for (int64_t i = block.thread; i < packs; i += kInFlight * int64_t{block.threads}) {
        Pack<S, kPack> read[kInFlight];
        RL_UNROLL for (int u = 0; u < kInFlight; ++u) if (i + u * block.threads < packs) read[u] =
            reinterpret_cast<const Pack<S, kPack>*>(from)[i + u * block.threads];
        RL_UNROLL for (int u = 0; u < kInFlight; ++u) if (i + u * block.threads < packs)
            RL_UNROLL for (int k = 0; k < kPack; ++k) total = Combine{}(total, number<A>(read[u].v[k]));
      }
      for (int64_t i = packs * kPack + block.thread; i < n; i += block.threads)
        total = Combine{}(total, number<A>(from[i]));
    });
    total = block_reduce(block, total, Combine{});
    if (block.thread == 0) totals[block.index] = total;
  }
};

// The last chunks come first: the pass before has read them last, and they may still be cached.
template <class S, class A, class Combine>
struct ScanChunks {
  ScanLines lines;
  const A* totals;  // of chunks; null: one a line
  A start;
  int64_t blocks;
  RL_BOTH void operator()(const Block& block) const {
    const int64_t index = blocks - 1 - block.index;
    A carry = start;
    if (totals) {
      const int64_t first = quotient(index, lines.chunks) * lines.chunks;
      for (int64_t c = first + block.thread; c < index; c += block.threads)
        carry = Combine{}(carry, totals[c]);
      carry = block_reduce(block, carry, Combine{});
    }
    lines.visit<S>(index, [&](const S* from, S* to, int64_t n) {
      const int64_t step = int64_t{block.threads} * kScanItems;
      Items<S> items;  // one tile ahead, so that memory is busy while a tile is added up
      items.read(from, int64_t{block.thread} * kScanItems, n, lines.packed);
      for (int64_t base = 0; base < n; base += step) {
        const int64_t i = base + int64_t{block.thread} * kScanItems;
        A x[kScanItems];
        for (int k = 0; k < kScanItems; ++k) x[k] = i + k < n ? number<A>(items.at(k)) : start;
        if (base + step < n) items.read(from, i + step, n, lines.packed);
        for (int k = 1; k < kScanItems; ++k) x[k] = Combine{}(x[k - 1], x[k]);
        const A before = block_scan(block, x[kScanItems - 1], carry, Combine{}, &carry);
        for (int k = 0; k < kScanItems; ++k) x[k] = Combine{}(before, x[k]);
        write_items(to, i, n, lines.packed, x);
      }
    });
  }
};

template <class S, class A, class Combine>
void scan_lines(const Launch& launch, ScanLines lines, int64_t line_count, A start) {
  constexpr int64_t kTile = kBlockThreads * kScanItems, kBlocks = 8 * kManyMultiprocessors;
  lines.chunks = 1, lines.chunk = lines.count;
  if (line_count < kBlocks && lines.count > 4 * kTile) {
    const int64_t wanted = lines.count * line_count / (2 * kBlocks);
    lines.chunk = std::max<int64_t>((wanted + kTile - 1) / kTile, 2) * kTile;
    lines.chunks = (lines.count + lines.chunk - 1) / lines.chunk;
  }
  const int64_t blocks = line_count * lines.chunks;
  if (lines.chunks == 1)
    return for_each_block(launch, blocks, ScanChunks<S, A, Combine>{lines, nullptr, start, blocks});
  DeviceBackend& backend = device_backend(DeviceType::CUDA);
  const size_t bytes = static_cast<size_t>(blocks) * sizeof(A);
  auto* totals = static_cast<A*>(backend.allocate(bytes, launch.device));
  for_each_block(launch, blocks, ChunkTotals<S, A, Combine>{lines, totals, start});
  for_each_block(launch, blocks, ScanChunks<S, A, Combine>{lines, totals, start, blocks});
  backend.deallocate(totals, bytes, launch.device);
}

// Whether it ran here.
template <class A, class Combine>
bool scan_neighbours(const Launch& launch, const Cumulate<A, Combine>& c, int64_t line_count) {
  if constexpr (std::is_same_v<A, Complex>) {
    return false;
  } else {
    const auto item = static_cast<int64_t>(element_size(c.dtype));
    if (c.in_step != item || c.out_step != item) return false;
    ScanLines lines{c.lines, c.count, 1, c.count, c.in, c.out, false};
    bool packed = packs(c.in, static_cast<size_t>(item)) && packs(c.out, static_cast<size_t>(item));
    for (int d = 0; d < c.lines.rank; ++d)
      for (int64_t stride : c.lines.strides[d])
        packed = packed && (c.lines.sizes[d] == 1 || stride % (kPack * item) == 0);
    lines.packed = packed;
    auto run = [&](auto tag) {
      scan_lines<typename decltype(tag)::type, A, Combine>(launch, lines, line_count, c.start);
    };
    if constexpr (std::is_same_v<A, double>) {
      if (c.dtype == DType::Float64)
        run(Tag<double>{});
      else
        visit_loops<float>(c.dtype, run);
      return true;
    } else {
      if (c.dtype != DType::Int64 && c.dtype != DType::Int32) return false;
      c.dtype == DType::Int64 ? run(Tag<int64_t>{}) : run(Tag<int32_t>{});
      return true;
    }
  }
}

template <class A, class Combine>
void cumulate_as(const View& in, int64_t dim, const View& out, A start) {
  Cumulate<A, Combine> kernel;
  const LongGeometry<1> from = lines_of(in, dim), to = lines_of(out, dim);
  kernel.lines.rank = from.rank;
  for (int d = 0; d < from.rank; ++d) {
    kernel.lines.sizes[d] = from.sizes[d];
    kernel.lines.strides[d][0] = from.strides[d][0], kernel.lines.strides[d][1] = to.strides[d][0];
  }
  const bool whole = in.rank == 0;
  kernel.count = whole ? 1 : in.sizes[dim];
  kernel.in_step = whole ? 0 : in.strides[dim];
  kernel.out_step = whole ? 0 : out.strides[dim];
  kernel.in = in.data, kernel.out = out.data;
  kernel.dtype = in.dtype, kernel.start = start;
  const Launch launch{in.device, "cumulate"};
  const int64_t lines = in.numel / kernel.count;
  if (lines >= 4096 && kernel.count <= 64)
    return for_each_index(launch, lines, AloneInBlock<Cumulate<A, Combine>>{kernel});
  if (scan_neighbours(launch, kernel, lines)) return;
  for_each_block(launch, lines, kernel);
}

}  // namespace

void run_cumulate(bool product, const View& in, int64_t dim, const View& out) {
  if (is_complex(in.dtype)) return cumulate_as<Complex, Multiplied>(in, dim, out, Complex(1));
  if (is_integral_or_bool(in.dtype))
    product ? cumulate_as<int64_t, Multiplied>(in, dim, out, 1)
            : cumulate_as<int64_t, Added>(in, dim, out, 0);
  else
    product ? cumulate_as<double, Multiplied>(in, dim, out, 1) : cumulate_as<double, Added>(in, dim, out, 0);
}

}  // namespace rushlight::cuda
