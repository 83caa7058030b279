// Distances between the rows of two matrices.
#include <cmath>

#include "cuda/launch.h"
#include "cuda/layers.h"
#include "cuda/memory.h"

namespace rushlight::cuda {
namespace {

enum class Norm : uint8_t { Zero, One, Two, Infinite, Other };

template <class T>
struct RowDistance {
  const T *a, *b;
  T* out;
  int64_t rows_a, rows_b, columns;
  Norm norm;
  T p;
  RL_BOTH void operator()(int64_t i) const {
    using std::pow;
    using std::sqrt;
    const int64_t pair = i / rows_b, row = i % rows_b, batch = pair / rows_a;
    const T *x = a + pair * columns, *y = b + (batch * rows_b + row) * columns;
    T sum = 0;
    for (int64_t k = 0; k < columns; ++k) {
      const T gap = x[k] < y[k] ? y[k] - x[k] : x[k] - y[k];
      switch (norm) {
        case Norm::Zero:
          sum += gap != 0;
          break;
        case Norm::One:
          sum += gap;
          break;
        case Norm::Two:
          sum += gap * gap;
          break;
        case Norm::Infinite:
          sum = gap > sum || gap != gap ? gap : sum;
          break;
        default:
          sum += pow(gap, p);
      }
    }
    out[i] = norm == Norm::Two ? sqrt(sum) : norm == Norm::Other ? pow(sum, 1 / p) : sum;
  }
};

template <class T>
void distances_as(const Launch& at, int64_t batch, int64_t rows_a, int64_t rows_b, int64_t columns, double p,
                  const void* a, const void* b, void* out) {
  const Norm norm = p == 0          ? Norm::Zero
                    : p == 1        ? Norm::One
                    : p == 2        ? Norm::Two
                    : std::isinf(p) ? Norm::Infinite
                                    : Norm::Other;
  for_each_index(at, batch * rows_a * rows_b,
                 RowDistance<T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out),
                                rows_a, rows_b, columns, norm, static_cast<T>(p)});
}

}  // namespace

void row_distances(int device, DType dtype, int64_t batch, int64_t rows_a, int64_t rows_b, int64_t columns,
                   double p, const void* a, const void* b, void* out) {
  const Launch at{device, "cdist"};
  dtype == DType::Float64 ? distances_as<double>(at, batch, rows_a, rows_b, columns, p, a, b, out)
                          : distances_as<float>(at, batch, rows_a, rows_b, columns, p, a, b, out);
}

}  // namespace rushlight::cuda
