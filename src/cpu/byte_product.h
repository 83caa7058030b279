// Products of matrices of bytes, exact in 32 bits: of activations with or without a sign by a signed weight
// that was laid out once, and what turns the sums into what a layer returns. The layout is the instruction
// set's own: nobody else may read it.
#pragma once
#include <memory>

#include "cpu/buffer.h"
#include "cpu/gemm.h"

namespace rushlight::cpu {

// A weight [k, n] of int8 in panels of columns, filled up with zeros, and the sum of each column.
class PackedBytes {
 public:
  PackedBytes(int64_t k, int64_t n, MatrixView weight);
  const int64_t k, n;
  const int8_t* panels() const { return panels_.as<int8_t>(); }
  const int32_t* column_sums() const { return sums_.as<int32_t>(); }
  size_t nbytes() const { return bytes_ + static_cast<size_t>(n) * sizeof(int32_t); }

 private:
  size_t bytes_;
  Buffer panels_, sums_;
};

struct ByteProduct;

// Rows of up to this length have sums that fit 32 bits, whatever they hold.
constexpr int64_t kLongestByteRow = INT32_MAX / (UINT8_MAX * -INT8_MIN);

// Rows that lie in pieces of one length, as in an image. Offsets are in bytes.
struct RowPieces {
  const int64_t* rows;    // of each row
  const int64_t* pieces;  // of each piece, from its row
  int64_t count, length;  // pieces, and elements of each: a multiple of the depth
  // Where rows lie at places that are evenly apart: `width` of them at the first of the `places` of each line
  // of a plane. Behind the last row there is memory for kPlacesBehind more. 0: they lie anyhow.
  int64_t step = 0, width = 0, lines = 0, places = 0;
};
constexpr int64_t kPlacesBehind = 32;

// What processors do with rows of one form.
struct RowKernels {
  int64_t element = 0;     // bytes of an element: 1 (unsigned) or 2 (words)
  bool in_pieces = false;  // whether rows may be
  // n bytes to elements, and zeros up to a multiple of the depth.
  void (*fill)(const void* bytes, bool is_signed, int64_t n, void* out) = nullptr;
  void (*quantize)(const float* x, int64_t n, float inverse_scale, int32_t zero_point, int32_t low,
                   int32_t high, bool is_signed, void* out) = nullptr;
  int32_t (*sum)(const void* row, int64_t n) = nullptr;
  // Rows [row, row_end) of the columns in panels [begin, end).
  void (*multiply)(const ByteProduct& p, int64_t row, int64_t row_end, int64_t begin, int64_t end) = nullptr;
};
struct ByteKernels {
  int64_t columns, depth;  // of a panel: columns, and elements of one that lie together
  RowKernels rows;
  int64_t (*panel_bytes)(int64_t k);
  // Panels [begin, end), and their column sums.
  void (*pack)(int64_t k, int64_t n, const MatrixView& weight, int8_t* panels, int32_t* sums, int64_t begin,
               int64_t end);
  // The least and the largest of n numbers and zero, without those that are none.
  void (*range)(const float* x, int64_t n, float* least, float* most);
};
const ByteKernels& byte_kernels();

// Rows of activations as the products read them: unsigned bytes, or words where that is exact and bytes are
// not. A matrix that has this form already is read where it lies.
class ByteRows {
 public:
  // bytes[m, k] with rows `row` apart and elements `column` apart.
  ByteRows(int64_t m, int64_t k, const void* bytes, bool is_signed, int64_t row, int64_t column);
  // Rows to be written in place, by fill() or quantize().
  ByteRows(int64_t m, int64_t k, bool is_signed);
  // A copy with zeros outside of columns [begin, end).
  ByteRows(const ByteRows& from, int64_t begin, int64_t end);
  // Elements in pieces, which are read where they lie. Such rows have no sums.
  ByteRows(int64_t m, bool is_signed, const void* elements, const RowPieces& pieces);

  // Rows [begin, end) as clamp(round(x / scale) + zero_point, low, high) of floats that lie `row` apart.
  void quantize(int64_t begin, int64_t end, const float* x, int64_t row, float scale, int32_t zero_point,
                int32_t low, int32_t high);
  // One row from k adjacent bytes, which may be the row's own memory where elements are bytes.
  void fill(int64_t row, const void* bytes);
  // Memory for k bytes of a row, from which fill() is to make the row: its own, or `other`.
  void* bytes_of(int64_t row, void* other) const;
  // The sum of each row, as the bytes say.
  void sums(int32_t* out) const;

  const int64_t m, k;
  const bool is_signed;
  const void* data() const { return data_; }
  int64_t row_bytes() const { return row_bytes_; }
  const RowPieces* pieces() const { return pieces_; }
  // What was added to each element.
  int32_t shift() const;

 private:
  Buffer own_;
  void* data_;
  int64_t row_bytes_;
  const RowPieces* pieces_ = nullptr;
};

enum class ByteResult { kInt32, kFloat, kUInt8, kInt8 };

// What follows a result of bytes, which stand for (byte - zero) * scale: the sum with such bytes of another
// tensor, rounded again: clamp(round(max(this + other, least) / out_scale) + out_zero, low, high). The bits
// are those of add_affine.
struct ByteSum {
  const void *result, *other;  // where the product's result begins, and the bytes that are added to it
  float scale, other_scale, other_zero, least, inverse_out_scale, low, high;
  int32_t out_zero;
  bool other_first;  // the first product is rounded together with the sum
  // From a byte of the result to the one that is added to it.
  int64_t away() const { return static_cast<const char*>(other) - static_cast<const char*>(result); }
};

// sum = (a - a_zero) (b - b_zero), then by `result`, which is exact for rows of any length but for kInt32:
//   kInt32   sum
//   kFloat   clamp(sum * scale + bias, low, high)
//   bytes    clamp(round((sum + bias) * scale) + out_zero, low, high), to even where two are as near
struct ByteProduct {
  const ByteRows* a;
  const PackedBytes* b;
  int32_t a_zero = 0;
  const int32_t* b_zeros = nullptr;  // one a column; null: all zero
  ByteResult result = ByteResult::kInt32;
  const float* scales = nullptr;  // one a column
  const float* bias = nullptr;    // one a column; null: none
  float low = 0, high = 0;
  int32_t out_zero = 0;
  void* c = nullptr;
  int64_t ldc = 0;               // elements between its rows
  const ByteSum* sum = nullptr;  // of results of bytes; rows are short, and b_zeros null
  // Set by byte_product().
  const int32_t* row_terms = nullptr;
};
void byte_product(ByteProduct p);

}  // namespace rushlight::cpu
