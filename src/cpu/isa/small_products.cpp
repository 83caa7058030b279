// Batches of products of small matrices, for each instruction set.
#include "cpu/small_products.h"

#include <cstring>

#include "cpu/isa/tile_inl.h"
#include "cpu/panel.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kMost = SmallProducts::kMost;

// The second factor, in panels of V vectors, with zeros behind the last column.
template <int V, class T>
void pack(const SmallProducts& p, const T* b, T* panels) {
  constexpr int64_t kWidth = V * Lanes<T>::count;
  for (int64_t first = 0; first < p.n; first += kWidth, panels += p.k * kWidth) {
    const T* from = b + first * p.b.column_stride;
    const int64_t columns = std::min(kWidth, p.n - first);
    if (p.b.column_stride == 1 && columns == kWidth)
      for (int64_t i = 0; i < p.k; ++i)
        std::memcpy(panels + i * kWidth, from + i * p.b.row_stride, V * kRegisterBytes);
    else
      pack_panel(sizeof(T), {from, p.b.row_stride, p.b.column_stride}, p.k, columns, kWidth, panels);
  }
}

template <int R, int V, class T>
[[gnu::noinline]] void multiply_rows(const SmallProducts& p, const T* a, const T* panels, T* c) {
  constexpr int64_t kLanes = Lanes<T>::count;
  const T alpha = static_cast<T>(p.alpha), beta = static_cast<T>(p.beta);
  for (int64_t first = 0; first < p.n; first += V * kLanes, panels += p.k * V * kLanes) {
    typename Lanes<T>::type sums[R][V] = {};
    accumulate_tile<R, V, T>(a, p.a.row_stride, p.a.column_stride, panels, p.k, sums);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V && first + v * kLanes < p.n; ++v) {
        T* to = c + r * p.ldc + first + v * kLanes;
        const int64_t columns = std::min(kLanes, p.n - first - v * kLanes);
        T lanes[kLanes];
        if (beta != 0) {
          typename Lanes<T>::type kept;
          read_lanes(to, columns, lanes);
          load(kept, lanes);
          sums[r][v] = alpha * sums[r][v] + beta * kept;
        } else if (alpha != 1) {
          sums[r][v] *= alpha;
        }
        std::memcpy(lanes, &sums[r][v], kRegisterBytes);
        write_lanes(lanes, columns, to);
      }
  }
}

template <int V, class T>
void multiply(const SmallProducts& p, int64_t begin, int64_t end) {
  alignas(64) T panels[kMost * (kMost + V * kRegisterBytes / sizeof(T))];
  for (int64_t i = begin; i < end; ++i) {
    pack<V>(p, static_cast<const T*>(p.b.data) + i * p.b_step, panels);
    const T* a = static_cast<const T*>(p.a.data) + i * p.a_step;
    T* c = static_cast<T*>(p.c) + i * p.c_step;
    for_row_groups<V>(0, p.m, [&]<int R>(int64_t row) {
      multiply_rows<R, V>(p, a + row * p.a.row_stride, panels, c + row * p.ldc);
    });
  }
}
template <class T>
void multiply(const SmallProducts& p, int64_t begin, int64_t end) {
  if (p.n <= Lanes<T>::count)
    multiply<1, T>(p, begin, end);
  else
    multiply<2, T>(p, begin, end);
}

}  // namespace

void small_products(const SmallProducts& p, int64_t begin, int64_t end) {
  if (p.dtype == DType::Float32)
    multiply<float>(p, begin, end);
  else
    multiply<double>(p, begin, end);
}

}  // namespace rushlight::cpu::RL_ISA
