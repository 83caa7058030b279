// The windows of pooling along one dimension, for the tables of the CPU's loops and for kernels.
#pragma once
#include <cstdint>

namespace rushlight::formulas {

struct PoolRule {
  int64_t in = 1, out = 1;
  bool adaptive = false;  // windows that divide the input evenly, whatever follows
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool counts_padding = true;
};

// a / b for numbers that are not negative: in 32 bits, where they fit, as GPUs divide 64 slowly.
constexpr int64_t pool_ratio(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}

// Output o looks at start, start + dilation, ... below end; a mean divides by count.
struct PoolSpan {
  int64_t start, end, count;
};
constexpr PoolSpan pool_window(const PoolRule& r, int64_t o) {
  if (r.adaptive) {
    const int64_t start = pool_ratio(o * r.in, r.out);
    const int64_t end = pool_ratio((o + 1) * r.in + r.out - 1, r.out);
    return {start, end, end - start};
  }
  int64_t start = o * r.stride - r.padding;
  const int64_t last = start + r.kernel, wide = r.in + r.padding;
  const int64_t padded = (last < wide ? last : wide) - start;
  const int64_t reach = start + (r.kernel - 1) * r.dilation + 1, end = reach < r.in ? reach : r.in;
  if (start < 0) start += (-start + r.dilation - 1) / r.dilation * r.dilation;
  return {start, end, r.counts_padding ? padded : end - start};
}

// The outputs [start, end) whose windows may hold input i; with a dilation not all of them do.
constexpr PoolSpan windows_over(const PoolRule& r, int64_t i) {
  if (r.adaptive) return {pool_ratio(i * r.out, r.in), pool_ratio((i + 1) * r.out + r.in - 1, r.in), 0};
  const int64_t first = i + r.padding - (r.kernel - 1) * r.dilation;
  const int64_t start = first <= 0 ? 0 : pool_ratio(first + r.stride - 1, r.stride);
  const int64_t end = pool_ratio(i + r.padding, r.stride) + 1;
  return {start, end < r.out ? end : r.out, 0};
}

}  // namespace rushlight::formulas
