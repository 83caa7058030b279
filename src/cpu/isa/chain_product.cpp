// Products in chains by a matrix that was not packed, for each instruction set.
#include "cpu/chain_product.h"

#include <cstring>

#include "cpu/isa/tile_inl.h"
#include "cpu/panel.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kVectors = kRegisterBytes == 16 && kRegisters == 32 ? 4 : 2;
template <class T>
constexpr int64_t kWidth = kVectors * Lanes<T>::count;
constexpr int64_t kPanelBytes = 24 << 10;
template <class T>
constexpr int64_t kDepth = kPanelBytes / static_cast<int64_t>(sizeof(T)) / kWidth<T>;

// sums += a panel, where they go on from the panel before.
template <int R, class T>
[[gnu::noinline]] void add_panel(const T* a, int64_t row, int64_t column, const T* panel, int64_t depth,
                                 bool begins, T* sums) {
  typename Lanes<T>::type own[R][kVectors];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVectors; ++v) {
      own[r][v] = typename Lanes<T>::type{};
      if (!begins) load(own[r][v], sums + r * kWidth<T> + v * Lanes<T>::count);
    }
  if (column == 1)
    accumulate_tile<R, kVectors, T>(a, row, 1, panel, depth, own);
  else
    accumulate_tile<R, kVectors, T>(a, row, column, panel, depth, own);
  std::memcpy(sums, own, sizeof(own));
}

template <class T>
void multiply_typed(const ChainRows& p, int64_t begin, int64_t end) {
  alignas(64) T panel[kDepth<T> * kWidth<T>];
  alignas(64) T sums[ChainRows::kMost * kWidth<T>];
  const auto *a = static_cast<const T*>(p.a.data), *b = static_cast<const T*>(p.b.data);
  auto* c = static_cast<T*>(p.c);
  for (int64_t part = begin; part < end; ++part) {
    const int64_t first = part * kWidth<T>, columns = std::min(kWidth<T>, p.n - first);
    std::fill_n(sums, p.m * kWidth<T>, T(0));
    for (int64_t from = 0; from < p.k; from += kDepth<T>) {
      const int64_t depth = std::min(kDepth<T>, p.k - from);
      const T* place = b + from * p.b.row_stride + first * p.b.column_stride;
      pack_panel(sizeof(T), {place, p.b.row_stride, p.b.column_stride}, depth, columns, kWidth<T>, panel);
      for_row_groups<kVectors>(0, p.m, [&]<int R>(int64_t row) {
        add_panel<R, T>(a + row * p.a.row_stride + from * p.a.column_stride, p.a.row_stride,
                        p.a.column_stride, panel, depth, from == 0, sums + row * kWidth<T>);
      });
    }
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t j = 0; j < columns; ++j)
        c[r * p.c_row + (first + j) * p.c_column] = sums[r * kWidth<T> + j];
  }
}

int64_t width(DType dtype) { return dtype == DType::Float64 ? kWidth<double> : kWidth<float>; }

void multiply(const ChainRows& p, int64_t begin, int64_t end) {
  if (p.dtype == DType::Float32)
    multiply_typed<float>(p, begin, end);
  else
    multiply_typed<double>(p, begin, end);
}

}  // namespace

ChainKernels chain_kernels() { return {width, multiply}; }

}  // namespace rushlight::cpu::RL_ISA
