#include "cpu/byte_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(ByteKernels byte_kernels_variant();)

const ByteKernels& byte_kernels() {
  static const ByteKernels chosen = RL_ISA_VARIANT(byte_kernels_variant());
  return chosen;
}

namespace {

constexpr int64_t kSerialWork = 1 << 18;  // multiplications

int64_t groups_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
const RowKernels& row_kernels() { return byte_kernels().rows; }
int64_t filled_up(int64_t k) { return groups_of(k, byte_kernels().depth) * byte_kernels().depth; }
int64_t panels_of(int64_t n) { return groups_of(n, byte_kernels().columns); }

}  // namespace

PackedBytes::PackedBytes(int64_t k, int64_t n, MatrixView weight)
    : k(k),
      n(n),
      bytes_(static_cast<size_t>(panels_of(n) * byte_kernels().panel_bytes(k))),
      panels_(static_cast<int64_t>(bytes_)),
      sums_(n * static_cast<int64_t>(sizeof(int32_t))) {
  const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, k * byte_kernels().columns));
  parallel_for(0, panels_of(n), grain, [&](int64_t begin, int64_t end) {
    byte_kernels().pack(k, n, weight, panels_.as<int8_t>(), sums_.as<int32_t>(), begin, end);
  });
}

ByteRows::ByteRows(int64_t m, int64_t k, bool is_signed)
    : m(m),
      k(k),
      is_signed(is_signed),
      own_(filled_up(k) * m * row_kernels().element),
      data_(own_.as<void>()),
      row_bytes_(filled_up(k) * row_kernels().element) {}

ByteRows::ByteRows(const ByteRows& from, int64_t begin, int64_t end)
    : ByteRows(from.m, from.k, from.is_signed) {
  const int64_t element = row_kernels().element, width = (end - begin) * element;
  std::memset(data_, shift(), static_cast<size_t>(m * row_bytes_));
  for (int64_t i = 0; i < m; ++i)
    std::memcpy(static_cast<char*>(data_) + i * row_bytes_ + begin * element,
                static_cast<const char*>(from.data()) + i * from.row_bytes() + begin * element,
                static_cast<size_t>(width));
}

ByteRows::ByteRows(int64_t m, int64_t k, const void* bytes, bool is_signed, int64_t row, int64_t column)
    : m(m),
      k(k),
      is_signed(is_signed),
      own_(row_kernels().element == 1 && !is_signed && column == 1 && k % byte_kernels().depth == 0
               ? 0
               : m * filled_up(k) * row_kernels().element),
      data_(own_.as<void>()),
      row_bytes_(filled_up(k) * row_kernels().element) {
  if (!data_) {
    data_ = const_cast<void*>(bytes);
    row_bytes_ = row;
    return;
  }
  const char* from = static_cast<const char*>(bytes);
  parallel_for(0, m, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, k)),
               [&](int64_t begin, int64_t end) {
                 std::vector<char> gathered(static_cast<size_t>(column == 1 ? 0 : k));
                 for (int64_t i = begin; i < end; ++i) {
                   if (column == 1) {
                     fill(i, from + i * row);
                     continue;
                   }
                   for (int64_t p = 0; p < k; ++p)
                     gathered[static_cast<size_t>(p)] = from[i * row + p * column];
                   fill(i, gathered.data());
                 }
               });
}

ByteRows::ByteRows(int64_t m, bool is_signed, const void* elements, const RowPieces& pieces)
    : m(m),
      k(pieces.count * pieces.length),
      is_signed(is_signed),
      own_(0),
      data_(const_cast<void*>(elements)),
      row_bytes_(0),
      pieces_(&pieces) {}

int32_t ByteRows::shift() const { return is_signed && row_kernels().element == 1 ? 128 : 0; }

void ByteRows::fill(int64_t row, const void* bytes) {
  row_kernels().fill(bytes, is_signed, k, static_cast<char*>(data_) + row * row_bytes_);
}

void* ByteRows::bytes_of(int64_t row, void* other) const {
  return row_kernels().element == 1 ? static_cast<char*>(data_) + row * row_bytes_ : other;
}

void ByteRows::quantize(int64_t begin, int64_t end, const float* x, int64_t row, float scale,
                        int32_t zero_point, int32_t low, int32_t high) {
  for (int64_t i = begin; i < end; ++i)
    row_kernels().quantize(x + (i - begin) * row, k, 1 / scale, zero_point, low, high, is_signed,
                           static_cast<char*>(data_) + i * row_bytes_);
}

void ByteRows::sums(int32_t* out) const {
  const auto* rows = static_cast<const char*>(data_);
  parallel_for(
      0, m, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, k)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i] = static_cast<int32_t>(static_cast<uint32_t>(row_kernels().sum(rows + i * row_bytes_, k)) -
                                        static_cast<uint32_t>(shift()) * static_cast<uint32_t>(k));
      });
}

namespace {

// With zero points both factors may have eight bits and a sign.
int64_t longest_row(bool zeros) { return zeros ? INT32_MAX / (UINT8_MAX * UINT8_MAX) : kLongestByteRow; }

void finish_row(const ByteProduct& p, int64_t row, const int64_t* sums) {
  for (int64_t j = 0; j < p.b->n; ++j) {
    const int64_t at = row * p.ldc + j;
    const float sum = static_cast<float>(sums[j]), bias = p.bias ? p.bias[j] : 0;
    if (p.result == ByteResult::kFloat) {
      static_cast<float*>(p.c)[at] = std::min(std::max(p.low, sum * p.scales[j] + bias), p.high);
      continue;
    }
    const float whole = std::nearbyint((sum + bias) * p.scales[j]) + static_cast<float>(p.out_zero);
    static_cast<uint8_t*>(p.c)[at] =
        static_cast<uint8_t>(static_cast<int32_t>(std::min(std::max(p.low, whole), p.high)));
  }
}

// Parts of the columns at a time, added in 64 bits.
void long_product(const ByteProduct& p) {
  const int64_t m = p.a->m, n = p.b->n, k = p.b->k, length = longest_row(false);
  std::vector<int64_t> sums(static_cast<size_t>(m * n));
  std::vector<int32_t> part(sums.size()), row_sums(static_cast<size_t>(m));
  for (int64_t begin = 0; begin < k; begin += length) {
    const ByteRows rows(*p.a, begin, std::min(begin + length, k));
    byte_product({.a = &rows, .b = p.b, .c = part.data(), .ldc = n});
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
  }
  p.a->sums(row_sums.data());
  for (int64_t i = 0; i < m; ++i) {
    int64_t* row = &sums[static_cast<size_t>(i * n)];
    const int64_t rest = row_sums[static_cast<size_t>(i)] - p.a_zero * k;
    for (int64_t j = 0; j < n; ++j)
      row[j] -= p.a_zero * int64_t{p.b->column_sums()[j]} + (p.b_zeros ? p.b_zeros[j] * rest : 0);
    finish_row(p, i, row);
  }
}

}  // namespace

// Threads share rows where there are enough, and panels otherwise.
void byte_product(ByteProduct p) {
  const int64_t m = p.a->m, n = p.b->n, k = p.b->k;
  if (m == 0 || n == 0) return;
  if (k > longest_row(p.b_zeros != nullptr) && p.result != ByteResult::kInt32) return long_product(p);
  std::vector<int32_t> terms;
  if (p.b_zeros) {
    terms.resize(static_cast<size_t>(m));
    p.a->sums(terms.data());
    for (int32_t& term : terms)
      term = static_cast<int32_t>(static_cast<uint32_t>(term) -
                                  static_cast<uint32_t>(p.a_zero) * static_cast<uint32_t>(k));
    p.row_terms = terms.data();
  }
  p.a_zero += p.a->shift();
  constexpr int64_t kFewRows = 48;
  const int64_t panels = panels_of(n), row = std::max<int64_t>(1, n * k);
  if (m >= kFewRows * get_num_threads() || m >= panels) {
    parallel_for(0, m, std::max<int64_t>(kFewRows, kSerialWork / row),
                 [&](int64_t begin, int64_t end) { row_kernels().multiply(p, begin, end, 0, panels); });
    return;
  }
  parallel_for(0, panels, std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, row / panels * m)),
               [&](int64_t begin, int64_t end) { row_kernels().multiply(p, 0, m, begin, end); });
}

}  // namespace rushlight::cpu
