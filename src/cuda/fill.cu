// Fills that depend on the position.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

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

// Zeroes bytes of element i where it lies outside.
struct Triangle {
  char* out;
  int64_t item, rows, columns, diagonal;
  bool upper;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t column = i % columns, row = i / columns % rows;
    const bool inside = upper ? column - row >= diagonal : column - row <= diagonal;
    if (inside) return;
    for (int64_t b = 0; b < item; ++b) out[i * item + b] = 0;
  }
};

}  // namespace

void run_range(const View& out, const double* real, const int64_t* whole) {
  const Launch launch{out.device, "range"};
  if (whole)
    for_each_index(launch, out.numel, Range<int64_t>{out.data, out.dtype, whole[0], whole[1]});
  else
    for_each_index(launch, out.numel, Range<double>{out.data, out.dtype, real[0], real[1]});
}

void run_triangle(const View& out, int64_t diagonal, bool upper) {
  const int64_t rows = out.sizes[out.rank - 2], columns = out.sizes[out.rank - 1];
  for_each_index(
      {out.device, "triangle"}, out.numel,
      Triangle{out.data, static_cast<int64_t>(element_size(out.dtype)), rows, columns, diagonal, upper});
}

}  // namespace rushlight::cuda
