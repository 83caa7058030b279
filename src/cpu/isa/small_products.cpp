// Batches of products of small matrices, for each instruction set.
#include "cpu/small_products.h"

#include <cstring>

#include "cpu/isa/tile_inl.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int64_t kMost = SmallProducts::kMost;

// The second factor, in panels as wide as a vector, with zeros behind the last column.
template <class T>
void pack(const SmallProducts& p, const T* b, T* panels) {
  constexpr int64_t kLanes = Lanes<T>::count;
  for (int64_t first = 0; first < p.n; first += kLanes)
    for (int64_t i = 0; i < p.k; ++i, panels += kLanes) {
      const T* from = b + i * p.b.row_stride + first * p.b.column_stride;
      const int64_t columns = std::min(kLanes, p.n - first);
      if (columns == kLanes && p.b.column_stride == 1)
        std::memcpy(panels, from, kRegisterBytes);
      else
        for (int64_t j = 0; j < kLanes; ++j) panels[j] = j < columns ? from[j * p.b.column_stride] : T(0);
    }
}

template <int R, class T>
[[gnu::noinline]] void multiply_rows(const SmallProducts& p, const T* a, const T* panels, T* c) {
  constexpr int64_t kLanes = Lanes<T>::count;
  const T alpha = static_cast<T>(p.alpha), beta = static_cast<T>(p.beta);
  for (int64_t first = 0; first < p.n; first += kLanes, panels += p.k * kLanes) {
    typename Lanes<T>::type sums[R][1] = {};
    accumulate_tile<R, 1, T>(a, p.a.row_stride, p.a.column_stride, panels, p.k, sums);
    const int64_t columns = std::min(kLanes, p.n - first);
    for (int r = 0; r < R; ++r) {
      T* to = c + r * p.ldc + first;
      T before[kLanes];
      typename Lanes<T>::type kept;
      if (beta != 0) {
        read_lanes(to, columns, before);
        load(kept, before);
        sums[r][0] = alpha * sums[r][0] + beta * kept;
      } else if (alpha != 1) {
        sums[r][0] *= alpha;
      }
      T result[kLanes];
      std::memcpy(result, &sums[r][0], kRegisterBytes);
      write_lanes(result, columns, to);
    }
  }
}

template <class T>
void multiply(const SmallProducts& p, int64_t begin, int64_t end) {
  alignas(64) T panels[kMost * kMost + kMost * kRegisterBytes / sizeof(T)];
  for (int64_t i = begin; i < end; ++i) {
    pack(p, static_cast<const T*>(p.b.data) + i * p.b_step, panels);
    const T* a = static_cast<const T*>(p.a.data) + i * p.a_step;
    T* c = static_cast<T*>(p.c) + i * p.c_step;
    int64_t row = 0;
    for (; row + 4 <= p.m; row += 4) multiply_rows<4>(p, a + row * p.a.row_stride, panels, c + row * p.ldc);
    for (; row < p.m; ++row) multiply_rows<1>(p, a + row * p.a.row_stride, panels, c + row * p.ldc);
  }
}

}  // namespace

void small_products(const SmallProducts& p, int64_t begin, int64_t end) {
  if (p.dtype == DType::Float32)
    multiply<float>(p, begin, end);
  else
    multiply<double>(p, begin, end);
}

}  // namespace rushlight::cpu::RL_ISA
