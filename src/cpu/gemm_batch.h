// How batches of matrix products are shared among threads.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "cpu/gemm.h"

namespace rushlight::cpu {

// The matrix `elements` of T behind this one.
template <class T>
MatrixView step_to(const MatrixView& m, int64_t elements) {
  return {static_cast<const T*>(m.data) + elements, m.row_stride, m.column_stride};
}

// run(begin, end) for ranges of products that have `serial_work` multiplications, which no thread is worth
// waking for, at least.
template <class Run>
void for_products(const GemmShape& s, int64_t serial_work, Run&& run) {
  parallel_for(0, s.batch, std::max<int64_t>(1, serial_work / std::max<int64_t>(1, s.work())), run);
}

// one(i) for each product: a thread a product where there are enough of them or they are small, else one
// after the other, each of which may share itself among threads.
template <class One>
void each_product(const GemmShape& s, int64_t serial_work, One&& one) {
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  };
  if (s.batch >= get_num_threads() || s.work() <= serial_work)
    for_products(s, serial_work, run);
  else
    run(0, s.batch);
}

}  // namespace rushlight::cpu
