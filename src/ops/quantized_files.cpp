// Steps of quantised models in files: what programs write as several operators on quantised tensors, as one
// on integers, and layers whose weights alone are integers.
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "cpu/affine.h"
#include "cpu/quantize.h"
#include "cpu/weight_product.h"
#include "ops/copy.h"
#include "ops/dense.h"
#include "ops/quantized.h"
#include "ops/quantized_settings.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Fn<Tensor(const Tensor& input, const Tensor& weight, const Tensor& scales, const Tensor& bias,
          int64_t group_size)>
    weight_only_linear;
Fn<Tensor(const Tensor& weight, const Tensor& scales, const Tensor& indices, int64_t group_size)>
    weight_only_embedding;
Fn<Tensor(const Tensor& self, double scale, int64_t zero_point, DType dtype)> quantized_integers;

// Where a result lies: beside operands without data, it has none.
Device place_of(std::initializer_list<const Tensor*> operands) {
  for (const Tensor* t : operands)
    if (t->defined() && !t->is_cpu()) return t->device();
  return {};
}

// --- weights of integers

// int8 [n, k] with a scale a row, or numbers of four bits, [n, k / 2] bytes, with a scale for each group of
// columns: [n, groups].
cpu::WeightProduct described(const char* who, const Tensor& weight, const Tensor& scales, int64_t group) {
  const bool bytes = group == 0;
  RL_CHECK(
      weight.dim() == 2 && weight.is_contiguous() && weight.dtype() == (bytes ? DType::Int8 : DType::UInt8),
      who, ": the weight must be a contiguous matrix of ", bytes ? "int8" : "uint8", ", got ",
      describe(weight));
  cpu::WeightProduct p{};
  p.bits = bytes ? 8 : 4;
  p.n = weight->sizes[0];
  p.k = weight->sizes[1] * (bytes ? 1 : 2);
  RL_CHECK(bytes || (group > 0 && group % 32 == 0), who,
           ": groups must be multiples of 32 columns, or 0 for a weight of int8, got ", group);
  RL_CHECK(scales.is_contiguous() &&
               (scales.dtype() == DType::Float32 || (!bytes && scales.dtype() == DType::BFloat16)),
           who, ": scales must be contiguous and float32", bytes ? "" : " or bfloat16", ", got ",
           describe(scales));
  const int64_t groups = bytes ? 1 : (p.k + group - 1) / group;
  RL_CHECK(bytes ? scales.sizes() == IntList{p.n} : scales.sizes() == (IntList{p.n, groups}), who,
           ": scales must be ", bytes ? str("[", p.n, "]") : str("[", p.n, ", ", groups, "]"), ", got ",
           describe(scales));
  p.settings_dtype = scales.dtype();
  if (weight.is_cpu() && scales.is_cpu()) p.weight = weight.data_ptr(), p.settings = scales.data_ptr();
  p.group = group;
  p.zeros = false;
  return p;
}

Tensor linear_kernel(const Call&, const Tensor& input, const Tensor& weight, const Tensor& scales,
                     const Tensor& bias, int64_t group) {
  constexpr const char* kWho = "_weight_only_linear";
  cpu::WeightProduct p = described(kWho, weight, scales, group);
  RL_CHECK(input.dtype() == DType::Float32, kWho, ": the input must be float32, got ", describe(input));
  RL_CHECK(input.dim() >= 1 && input->sizes[input.dim() - 1] == p.k, kWho,
           ": the input's last dimension must be ", p.k, ", got ", describe(input));
  RL_CHECK(!bias.defined() || (bias.dtype() == DType::Float32 && bias.sizes() == IntList{p.n}), kWho,
           ": bias must be ", p.n, " numbers of float32, got ", describe(bias));
  std::vector<int64_t> sizes(input->sizes.begin(), input->sizes.end());
  sizes.back() = p.n;
  const Tensor y = empty_tensor(sizes, DType::Float32, place_of({&input, &weight, &scales, &bias}));
  if (!y.is_cpu() || y.numel() == 0) return y;
  const Tensor x = contiguous(input, MemoryFormat::Contiguous);
  p.m = y.numel() / p.n;
  p.x = static_cast<const float*>(x.data_ptr());
  p.y = static_cast<float*>(y.data_ptr());
  cpu::weight_product(p);
  if (!bias.defined()) return y;
  const Tensor own = contiguous(bias, MemoryFormat::Contiguous);
  const auto* add = static_cast<const float*>(own.data_ptr());
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) p.y[i * p.n + j] += add[j];
  return y;
}

Tensor embedding_kernel(const Call&, const Tensor& weight, const Tensor& scales, const Tensor& indices,
                        int64_t group) {
  constexpr const char* kWho = "_weight_only_embedding";
  const cpu::WeightProduct p = described(kWho, weight, scales, group);
  RL_CHECK(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, kWho,
           ": indices must be int64 or int32, got ", describe(indices));
  std::vector<int64_t> sizes(indices->sizes.begin(), indices->sizes.end());
  sizes.push_back(p.k);
  const Tensor y = empty_tensor(sizes, DType::Float32, place_of({&weight, &scales, &indices}));
  if (!y.is_cpu() || y.numel() == 0) return y;
  const Tensor own = contiguous(to_dtype(indices, DType::Int64), MemoryFormat::Contiguous);
  const auto* at = static_cast<const int64_t*>(own.data_ptr());
  const int64_t count = own.numel();
  for (int64_t i = 0; i < count; ++i)
    RL_CHECK_INDEX(at[i] >= 0 && at[i] < p.n, "index out of range in self: ", at[i], " is not a row of ",
                   p.n);
  auto* out = static_cast<float*>(y.data_ptr());
  parallel_for(0, count, std::max<int64_t>(1, kGrainSize / p.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) cpu::weight_row(p, at[i], out + i * p.k);
  });
  return y;
}

// --- activations of integers

void check_settings(const char* who, double scale, DType dtype) {
  RL_CHECK(dtype == DType::UInt8 || dtype == DType::Int8, who, ": the result must be uint8 or int8, got ",
           dtype_name(dtype));
  RL_CHECK(std::isfinite(scale) && scale > 0, who, ": scales must be positive numbers, got ", scale);
}

Tensor integers_kernel(const Call&, const Tensor& self, double scale, int64_t zero_point, DType dtype) {
  constexpr const char* kWho = "_quantized_integers";
  check_settings(kWho, scale, dtype);
  RL_CHECK(self.dtype() == DType::Float32, kWho, ": the input must be float32, got ", describe(self));
  const Tensor x = dense(self), y = empty_like_tensor(x, dtype);
  if (!x.is_cpu() || x.numel() == 0) return y;
  const auto factor = static_cast<float>(scale), zero = static_cast<float>(zero_point);
  cpu::Quantization q;
  q.integers = dtype;
  q.n = x.numel();
  q.scale = &factor, q.zero_point = &zero;
  cpu::quantize(q, static_cast<const float*>(x.data_ptr()), y.data_ptr());
  return y;
}

Tensor sum_kernel(const Call&, const Tensor& a, double a_scale, int64_t a_zero, const Tensor& b,
                  double b_scale, int64_t b_zero, double scale, int64_t zero, DType dtype, bool relu) {
  constexpr const char* kWho = "_quantized_sum";
  check_settings(kWho, scale, dtype);
  for (const Tensor& t : {a, b})
    RL_CHECK(t.dtype() == DType::UInt8 || t.dtype() == DType::Int8 || t.dtype() == DType::Float32, kWho,
             ": operands must be uint8, int8 or float32, got ", describe(t));
  RL_CHECK(a.sizes() == b.sizes(), kWho, ": operands must have the same sizes, got ", describe(a), " and ",
           describe(b));
  if (a.is_cpu() && !b.is_cpu()) return empty_tensor(a.sizes(), dtype, b.device());
  const Tensor left = dense(a), y = empty_like_tensor(left, dtype);
  if (!left.is_cpu() || y.numel() == 0) return y;
  Tensor right = b;
  if (b.strides() != left.strides()) {  // the order of `left`, whatever that is
    right = empty_like_tensor(left, b.dtype());
    copy_(right, b, false);
  }
  const auto operand = [](const Tensor& t, double s, int64_t z) {
    return cpu::AffineOperand{t.data_ptr(), t.dtype(), static_cast<float>(s), static_cast<float>(z)};
  };
  const bool is_signed = dtype == DType::Int8;
  cpu::add_affine(operand(left, a_scale, a_zero), operand(right, b_scale, b_zero), y.numel(), relu,
                  static_cast<float>(scale), static_cast<float>(zero), dtype, is_signed ? -128 : 0,
                  is_signed ? 127 : 255, y.data_ptr());
  return y;
}

constexpr const char* kFixedWeights = "it serves inference with weights that are fixed";
constexpr const char* kIntegers = "its result is integers";

}  // namespace

void register_quantized_file_operators(Table& t) {
  t.op(weight_only_linear,
       "_weight_only_linear(Tensor input, Tensor weight, Tensor scales, Tensor? bias=None, int group_size=0) "
       "-> Tensor",
       linear_kernel)
      .absent_in_pytorch()
      .family(Family::Matmul)
      .internal()
      .not_differentiable(kFixedWeights)
      .doc("A linear layer of floats by a weight of int8, or of four bits in groups of columns.");
  t.op(weight_only_embedding,
       "_weight_only_embedding(Tensor weight, Tensor scales, Tensor indices, int group_size=0) -> Tensor",
       embedding_kernel)
      .absent_in_pytorch()
      .family(Family::Embedding)
      .internal()
      .not_differentiable(kFixedWeights)
      .doc("Rows of a table of int8, or of four bits in groups of columns, as float32.");
  t.op(quantized_integers,
       "_quantized_integers(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
       integers_kernel)
      .absent_in_pytorch()
      .family(Family::Copy)
      .internal()
      .not_differentiable(kIntegers)
      .doc("The integers of quantize_per_tensor, as a plain tensor.");
  t.op(quantized_sum,
       "_quantized_sum(Tensor a, float a_scale, int a_zero_point, Tensor b, float b_scale, int b_zero_point, "
       "float scale, int zero_point, ScalarType dtype, bool relu=False) -> Tensor",
       sum_kernel)
      .absent_in_pytorch()
      .internal()
      .not_differentiable(kIntegers)
      .doc("The sum of two tensors, of floats or of integers with a scale and a zero point, as integers.");
}

}  // namespace rushlight
