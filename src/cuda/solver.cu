// Small kernels around cuSOLVER.
#include "cuda/launch.h"
#include "cuda/solver.h"

namespace rushlight::cuda {
namespace {

struct PointAt {
  char* base;
  int64_t bytes;
  void** pointers;
  RL_BOTH void operator()(int64_t i) const { pointers[i] = base + i * bytes; }
};

template <class R>
struct Pair {
  R real, imaginary;
};
template <class T>
RL_BOTH T conjugate(T x) {
  return x;
}
template <class R>
RL_BOTH Pair<R> conjugate(Pair<R> x) {
  return {x.real, -x.imaginary};
}

template <class T>
struct Adjoint {
  int64_t rows, columns;
  const T* in;
  T* out;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t row = i % rows, column = i / rows;
    out[row * columns + column] = conjugate(in[i]);
  }
};

// One thread a permutation: exchanges come one after the other.
struct Permutation {
  int64_t k, size;
  const int32_t* pivots;
  int64_t* rows;
  RL_BOTH void operator()(int64_t b) const {
    int64_t* order = rows + b * size;
    for (int64_t i = 0; i < size; ++i) order[i] = i;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = pivots[b * k + i] - 1;
      const bool inside = other >= 0 && other < size && i < size;
      device_assert(inside, "pivots are between 1 and the number of rows");
      if (!inside) return;
      const int64_t mine = order[i];
      order[i] = order[other];
      order[other] = mine;
    }
  }
};

// A value with a positive imaginary part leads a pair: its column holds the real parts, the next one the
// imaginary parts of its vector.
template <class R>
struct ComplexVectors {
  int64_t n;
  const Pair<R>* values;
  const R* vectors;
  Pair<R>* out;
  RL_BOTH void operator()(int64_t i) const {
    const R turn = values[i / n].imaginary;
    if (turn == 0)
      out[i] = {vectors[i], R(0)};
    else if (turn > 0)
      out[i] = {vectors[i], vectors[i + n]};
    else
      out[i] = {vectors[i - n], -vectors[i]};
  }
};

// An exchange of two rows together is named twice, by the same negative number.
struct WidenPivots {
  int64_t n;
  const int32_t* in;
  int64_t* out;
  RL_BOTH void operator()(int64_t i) const {
    const int64_t pivot = in[i], row = i % n;
    const bool twice = (row + 1 < n && in[i + 1] == pivot) || (row > 0 && in[i - 1] == pivot);
    const bool known = pivot < 0 ? pivot >= -n && twice : pivot >= 1 && pivot <= n;
    device_assert(known, "pivots are those of ldl_factor");
    out[i] = known ? pivot : row + 1;
  }
};
struct NarrowPivots {
  const int64_t* in;
  int32_t* out;
  RL_BOTH void operator()(int64_t i) const { out[i] = static_cast<int32_t>(in[i]); }
};

template <class T>
void adjoint_of(const Launch& at, int64_t rows, int64_t columns, const void* in, void* out) {
  for_each_index(at, rows * columns,
                 Adjoint<T>{rows, columns, static_cast<const T*>(in), static_cast<T*>(out)});
}

}  // namespace

void point_at(int device, int64_t count, void* base, int64_t bytes, void** pointers) {
  for_each_index({device, "point_at"}, count, PointAt{static_cast<char*>(base), bytes, pointers});
}

void adjoint(int device, DType dtype, int64_t rows, int64_t columns, const void* in, void* out) {
  const Launch at{device, "adjoint"};
  if (dtype == DType::Float32) return adjoint_of<float>(at, rows, columns, in, out);
  if (dtype == DType::Float64) return adjoint_of<double>(at, rows, columns, in, out);
  if (dtype == DType::Complex64) return adjoint_of<Pair<float>>(at, rows, columns, in, out);
  adjoint_of<Pair<double>>(at, rows, columns, in, out);
}

void complex_vectors(int device, DType dtype, int64_t n, const void* values, const void* vectors, void* out) {
  auto run = [&](auto zero) {
    using R = decltype(zero);
    for_each_index({device, "complex_vectors"}, n * n,
                   ComplexVectors<R>{n, static_cast<const Pair<R>*>(values), static_cast<const R*>(vectors),
                                     static_cast<Pair<R>*>(out)});
  };
  dtype == DType::Float32 ? run(0.0f) : run(0.0);
}

void widen_pivots(int device, int64_t count, int64_t n, const int32_t* pivots, int64_t* out) {
  for_each_index({device, "pivots"}, count, WidenPivots{n, pivots, out});
}
void narrow_pivots(int device, int64_t count, const int64_t* pivots, int32_t* out) {
  for_each_index({device, "pivots"}, count, NarrowPivots{pivots, out});
}

void permutation(int device, int64_t count, int64_t k, int64_t size, const int32_t* pivots, int64_t* rows) {
  for_each_index({device, "permutation"}, count, Permutation{k, size, pivots, rows});
}

}  // namespace rushlight::cuda
