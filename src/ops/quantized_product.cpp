// Products with integers in place of weights, by the names under which programs that quantize networks call
// them.
#include "cpu/weight_product.h"
#include "ops/copy.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/packed_bytes.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace ops {
inline Fn<Tensor(const Tensor& self, const Tensor& mat2)> int_mm;
inline Fn<Tensor(const Tensor& self, const Tensor& mat2, const Tensor& scales)> weight_int8pack_mm;
inline Fn<Tensor(const Tensor& self, int64_t inner_k_tiles)> convert_weight_to_int4pack_for_cpu;
inline Fn<Tensor(const Tensor& self, const Tensor& mat2, int64_t group_size, const Tensor& scales_and_zeros)>
    weight_int4pack_mm_for_cpu;
inline Fn<Tensor(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                 const Tensor& bias, const Tensor& scale_result, OptDType out_dtype, bool use_fast_accum)>
    scaled_mm;
}  // namespace ops

namespace {

template <class T>
T* elements(const Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}

// self times the transposed weight of n rows.
Tensor weight_product(const Tensor& self, int64_t n, int bits, const Tensor& weight, const Tensor& settings,
                      int64_t group) {
  const int64_t m = self->sizes[0], k = self->sizes[1];
  if (!self.is_cpu()) return empty_tensor(IntList{m, n}, self.dtype(), self.device());
  const Tensor x = ops::contiguous(to_dtype(self, DType::Float32), MemoryFormat::Contiguous),
               own = ops::contiguous(settings, MemoryFormat::Contiguous),
               y = empty_tensor(IntList{m, n}, DType::Float32);
  cpu::weight_product({.m = m,
                       .n = n,
                       .k = k,
                       .x = elements<const float>(x),
                       .bits = bits,
                       .weight = weight.data_ptr(),
                       .settings_dtype = own.dtype(),
                       .settings = own.data_ptr(),
                       .group = group,
                       .y = elements<float>(y)});
  return to_dtype(y, self.dtype());
}

// Checks that are the same for both widths.
void check_activation(const char* who, const Tensor& self) {
  RL_CHECK(
      self.dtype() == DType::Float32 || self.dtype() == DType::Float16 || self.dtype() == DType::BFloat16,
      who, " : expect A to be either 32-bit or 16-bit float tensor.");
  RL_CHECK(self.dim() == 2, who, " : expect A to be 2D tensor.");
}
void check_scales(const Tensor& self, const Tensor& scales) {
  RL_CHECK(self.dtype() == scales.dtype(), "expected scalar type ", legacy_name(self.dtype()), " but found ",
           legacy_name(scales.dtype()));
}

Tensor int_mm_kernel(const Call&, const Tensor& self, const Tensor& mat2) {
  constexpr const char* kWho = "int_mm_out_cpu";
  RL_CHECK(self.dim() == 2, kWho, ": Expected self to be of dimension 2 but got ", self.dim());
  RL_CHECK(mat2.dim() == 2, kWho, ": Expected mat2 to be of dimension 2 but got ", mat2.dim());
  RL_CHECK(self->sizes[1] == mat2->sizes[0], kWho, ": self.size(1) needs to match mat2.size(0) but got ",
           self->sizes[1], " and ", mat2->sizes[0]);
  RL_CHECK(self.dtype() == DType::Int8 || self.dtype() == DType::UInt8, kWho,
           ": Expected self dtype to be int8 or uint8 but got ", describe(self));
  RL_CHECK(mat2.dtype() == DType::Int8, kWho, ": Expected mat2 dtype to be of type int8 but got ",
           describe(mat2));
  const int64_t m = self->sizes[0], k = self->sizes[1], n = mat2->sizes[1];
  const Tensor result = empty_tensor(IntList{m, n}, DType::Int32, self.device());
  if (!self.is_cpu()) return result;
  const auto weight = packed_bytes(mat2);
  const cpu::ByteRows rows(m, k, self.data_ptr(), self.dtype() == DType::Int8, self->strides[0],
                           self->strides[1]);
  cpu::byte_product({.a = &rows, .b = weight.get(), .c = result.data_ptr(), .ldc = n});
  return result;
}

Tensor weight_int8pack_mm_kernel(const Call&, const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  constexpr const char* kWho = "_weight_int8pack_mm_cpu";
  check_activation(kWho, self);
  RL_CHECK(self->strides[1] == 1 || self->sizes[1] == 1, kWho,
           " : A must be contiguous on the last dimension.");
  RL_CHECK(mat2.dtype() == DType::Int8, kWho, " : expect B to be int8 tensor.");
  RL_CHECK(mat2.is_contiguous(), kWho, " : expect B to be contiguous.");
  RL_CHECK(mat2.dim() == 2 && mat2->sizes[1] == self->sizes[1], kWho,
           " : expect B.size(1) == ", self->sizes[1]);
  const int64_t n = mat2->sizes[0];
  RL_CHECK(scales.dim() == 1 && scales->sizes[0] == n, kWho, " : expect scales to be 1d tensor with size ",
           n);
  check_scales(self, scales);
  return weight_product(self, n, 8, mat2, scales, 0);
}

// Two numbers from 0 to 15 a byte.
Tensor convert_weight_to_int4pack_kernel(const Call&, const Tensor& self, int64_t) {
  RL_CHECK(self.dim() == 2, "_convert_weight_to_int4pack_cpu : expect weight to be 2D tensor.");
  RL_CHECK(self.dtype() == DType::Int32, "_convert_weight_to_int4pack_cpu : expect weight to be kInt.");
  const int64_t n = self->sizes[0], k = self->sizes[1];
  RL_CHECK(n % 16 == 0, "_convert_weight_to_int4pack_cpu : expect N to be dividable by 16");
  RL_CHECK(k % 2 == 0, "_convert_weight_to_int4pack: expect K to be dividable by 2");
  const Tensor result = empty_tensor(IntList{n, k / 2}, DType::UInt8, self.device());
  if (!self.is_cpu()) return result;
  const Tensor weight = ops::contiguous(self, MemoryFormat::Contiguous);
  for (int64_t row = 0; row < n; ++row)
    cpu::pack_halves(elements<const int32_t>(weight) + row * k, k, elements<uint8_t>(result) + row * (k / 2));
  return result;
}

Tensor weight_int4pack_mm_kernel(const Call&, const Tensor& self, const Tensor& mat2, int64_t group_size,
                                 const Tensor& scales_and_zeros) {
  constexpr const char* kWho = "_weight_int4pack_mm_cpu";
  check_activation(kWho, self);
  RL_CHECK(self.is_contiguous(), kWho, " : expect A to be contiguous.");
  RL_CHECK(mat2.dtype() == DType::UInt8, kWho, " : expect B to be uint8 tensor.");
  RL_CHECK(mat2.is_contiguous() && mat2.dim() == 2 && 2 * mat2->sizes[1] == self->sizes[1], kWho,
           " : expect B to be contiguous, with half as many columns as A, got ", describe(mat2));
  RL_CHECK(group_size == 32 || group_size == 64 || group_size == 128 || group_size == 256, kWho,
           ": expect qGroupSize to be 32, 64, 128 or 256, got ", group_size);
  const int64_t n = mat2->sizes[0], k = self->sizes[1], groups = (k + group_size - 1) / group_size;
  RL_CHECK(scales_and_zeros.dim() == 3 && scales_and_zeros->sizes[1] == n && scales_and_zeros->sizes[2] == 2,
           kWho, ": expect qScaleAndZeros to be 3d tensor with sizes [:, ", n, ", 2]");
  RL_CHECK(scales_and_zeros->sizes[0] >= groups, kWho, ": expect qScaleAndZeros for ", groups,
           " groups of columns, got ", describe(scales_and_zeros));
  check_scales(self, scales_and_zeros);
  return weight_product(self, n, 4, mat2, scales_and_zeros, group_size);
}

// Of matrices of float8 with one scale each, or one for each row and column of the result.
Tensor scaled_mm_body(const Call&, const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                      const Tensor& scale_b, const Tensor& bias, const Tensor&, OptDType out_dtype, bool) {
  RL_CHECK(self.dim() == 2, "mat_a must be a matrix");
  RL_CHECK(mat2.dim() == 2, "mat_b must be a matrix");
  const int64_t m = self->sizes[0], k = self->sizes[1], n = mat2->sizes[1];
  RL_CHECK(k == mat2->sizes[0], "mat_a and mat_b shapes cannot be multiplied (", m, "x", k, " and ",
           mat2->sizes[0], "x", n, ")");
  const bool floats = scale_a.dtype() == DType::Float32 && scale_b.dtype() == DType::Float32 &&
                      is_float8(self.dtype()) && is_float8(mat2.dtype());
  const bool one = scale_a.numel() == 1 && scale_b.numel() == 1;
  const auto is = [](const Tensor& t, int64_t rows, int64_t columns) {
    return t.dim() == 2 && t->sizes[0] == rows && t->sizes[1] == columns && t.is_contiguous();
  };
  RL_CHECK_VALUE(floats && (one || (is(scale_a, m, 1) && is(scale_b, 1, n))),
                 "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales "
                 "should be float and singletons.\n- For RowWise scaling, a and b should be float8, scales "
                 "should be float, scale_a should be (",
                 m, ", 1) and scale_b should be (1, ", n, "), and both should be contiguous.\nGot mat_a ",
                 describe(self), ", mat_b ", describe(mat2), ", scale_a ", describe(scale_a), " and scale_b ",
                 describe(scale_b));
  RL_CHECK(!bias.defined() || bias.numel() == n, "Bias must be size ", n, " but got ", bias.numel());
  Tensor y = ops::mm(to_dtype(self, DType::Float32), to_dtype(mat2, DType::Float32));
  y = y *
      (one ? ops::reshape(scale_a, IntList{1, 1}) * ops::reshape(scale_b, IntList{1, 1}) : scale_a * scale_b);
  if (bias.defined()) y = y + to_dtype(bias, DType::Float32);
  return to_dtype(y, out_dtype.value_or(self.dtype()));
}

constexpr const char* kIntegers = "its operands are integers";
constexpr const char* kFixedWeights = "it serves inference with weights that are fixed";

}  // namespace

void register_quantized_product_operators(Table& t) {
  t.op(ops::int_mm, "_int_mm(Tensor self, Tensor mat2) -> Tensor", int_mm_kernel)
      .out()
      .family(Family::Matmul)
      .not_differentiable(kIntegers)
      .doc("Matrix product of small integers, as int32.");
  t.op(ops::weight_int8pack_mm, "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
       weight_int8pack_mm_kernel)
      .family(Family::Matmul)
      .not_differentiable(kFixedWeights)
      .doc("self @ (mat2 * scales[:, None]).T for a weight of int8.");
  t.op(ops::convert_weight_to_int4pack_for_cpu,
       "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor",
       convert_weight_to_int4pack_kernel)
      .family(Family::Matmul)
      .not_differentiable(kIntegers)
      .doc("A weight of numbers from 0 to 15, two a byte, for _weight_int4pack_mm_for_cpu.");
  t.op(ops::weight_int4pack_mm_for_cpu,
       "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> "
       "Tensor",
       weight_int4pack_mm_kernel)
      .family(Family::Matmul)
      .not_differentiable(kFixedWeights)
      .doc("self @ weight.T for a packed weight whose groups of columns have a scale and a zero point each.");
  t.composite(ops::scaled_mm,
              "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
              "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
              scaled_mm_body)
      .out()
      .function_only()
      .not_differentiable(kFixedWeights)
      .doc("(self * scale_a) @ (mat2 * scale_b) + bias for matrices of float8.");
}

}  // namespace rushlight
