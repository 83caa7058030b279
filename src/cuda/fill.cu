// Fills that depend on the position.
#include "cuda/elements.h"
#include "cuda/kernels.h"

namespace rushlight::cuda {
namespace {

template <class T>
struct Range {
  char* out;
  DType dtype;
  T start, step;
  RL_BOTH void operator()(int64_t i) const {
    store(dtype, out + i * stored_size(dtype), start + static_cast<T>(i) * step);
  }
};

// Element i, where it lies inside.
template <class Word>
struct Triangle {
  Word* out;
  const Word* in;
  int64_t rows, columns, diagonal;
  bool upper;
  RL_BOTH bool inside(int64_t row, int64_t column) const {
    return upper ? column - row >= diagonal : column - row <= diagonal;
  }
  RL_BOTH void operator()(int64_t i) const {
    const int64_t column = i % columns, row = i / columns % rows;
    const bool stays = inside(row, column);
    if (!stays || in != out) out[i] = stays ? in[i] : Word{};
  }
};
// Four neighbours of a row, of fewer than 2^31 elements in all. What lies outside is not read.
template <class Word>
struct TriangleNeighbours {
  Triangle<Word> triangle;
  Divider quads, rows;  // of a row, of a matrix
  RL_BOTH void operator()(int64_t i) const {
    const auto n = static_cast<uint32_t>(i);
    const uint32_t line = quads.divide(n);
    const int64_t column = static_cast<int64_t>(n - line * quads.divisor) * kAtOnce;
    const int64_t row = line - rows.divide(line) * rows.divisor;
    const bool first = triangle.inside(row, column), last = triangle.inside(row, column + kAtOnce - 1);
    const bool in_place = triangle.in == triangle.out;
    if (first && last && in_place) return;
    Neighbours<Word> all{};
    if (first || last) all = *(reinterpret_cast<const Neighbours<Word>*>(triangle.in) + i);
    if (first != last)
      for (int k = 0; k < kAtOnce; ++k)
        if (!triangle.inside(row, column + k)) all.item[k] = Word{};
    *(reinterpret_cast<Neighbours<Word>*>(triangle.out) + i) = all;
  }
};

template <class Word>
void triangle(const View& out, const View& in, int64_t diagonal, bool upper) {
  const int64_t rows = out.sizes[out.rank - 2], columns = out.sizes[out.rank - 1];
  const Launch launch{out.device, "triangle"};
  const Triangle<Word> each{reinterpret_cast<Word*>(out.data),
                            reinterpret_cast<const Word*>(in.data),
                            rows,
                            columns,
                            diagonal,
                            upper};
  auto lies_well = [](const void* data) {
    return reinterpret_cast<uintptr_t>(data) % alignof(Neighbours<Word>) == 0;
  };
  if (columns % kAtOnce || out.numel >= INT32_MAX || !lies_well(in.data) || !lies_well(out.data))
    return for_each_index(launch, out.numel, each);
  const Divider quads(static_cast<uint32_t>(columns / kAtOnce)), height(static_cast<uint32_t>(rows));
  for_each_index(launch, out.numel / kAtOnce, TriangleNeighbours<Word>{each, quads, height});
}

}  // namespace

void run_range(const View& out, const double* real, const int64_t* whole) {
  const Launch launch{out.device, "range"};
  if (whole)
    for_each_index(launch, out.numel, Range<int64_t>{out.data, out.dtype, whole[0], whole[1]});
  else
    for_each_index(launch, out.numel, Range<double>{out.data, out.dtype, real[0], real[1]});
}

void run_triangle(const View& out, const View& in, int64_t diagonal, bool upper) {
  if (out.numel == 0) return;
  visit_word(element_size(out.dtype),
             [&](auto tag) { triangle<typename decltype(tag)::type>(out, in, diagonal, upper); });
}

}  // namespace rushlight::cuda
