#include "ops/quantized.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/fake_quantize.h"
#include "cpu/quantize.h"
#include "ops/copy.h"
#include "ops/dense.h"
#include "ops/fake_quantize.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

// --- checks

void check_quantized(DType dtype, const char* what = "Creation of quantized tensor") {
  RL_CHECK(is_quantized(dtype), what, " requires quantized dtype like torch.quint8");
}
void check_float(const Tensor& t) {
  RL_CHECK(t.dtype() == DType::Float32, "Quantize only works on Float Tensor, got ", legacy_name(t.dtype()));
}
void check_zero(int64_t zero, DType dtype, bool channel = false) {
  const DType integers = integer_dtype(dtype);
  const int64_t lowest = integers == DType::UInt8  ? 0
                         : integers == DType::Int8 ? INT8_MIN
                                                   : INT32_MIN,
                highest = integers == DType::UInt8  ? UINT8_MAX
                          : integers == DType::Int8 ? INT8_MAX
                                                    : INT32_MAX;
  const char* who = channel ? "quantize_tensor_per_channel_affine" : "quantize_tensor_per_tensor_affine";
  RL_CHECK(zero <= highest, who, " zero_point ", zero, " is above upper bound: for ", legacy_name(dtype),
           " it lies between ", lowest, " and ", highest);
  RL_CHECK(zero >= lowest, who, " zero_point ", zero, " is below lower bound: for ", legacy_name(dtype),
           " it lies between ", lowest, " and ", highest);
}
double number(const Tensor& t) {
  RL_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return read_scalar(t).to_double();
}
const Quantizer& asked(const Call& call, const Tensor& self) {
  if (!self->quantizer)
    RL_NOT_IMPLEMENTED("Could not run 'aten::", call.op.name(),
                       "' with arguments from the 'CPU' backend: ", "the tensor is not quantized (",
                       describe(self), ")");
  return *self->quantizer;
}
const Quantizer& asked_for_one(const Call& call, const Tensor& self) {
  const Quantizer& q = asked(call, self);
  RL_CHECK(!q.per_channel(), "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.");
  return q;
}
const Quantizer& asked_for_channels(const Call& call, const Tensor& self) {
  const Quantizer& q = asked(call, self);
  RL_CHECK(q.per_channel(), "Expected quantizer->qscheme() == kPerChannelAffine to be true, but got false.");
  return q;
}

// Scales and zero points in the types that PyTorch keeps: doubles and int64, or floats where zero points are.
Quantizer channels(const Tensor& scales, const Tensor& zeros, int64_t axis, IntList sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  RL_CHECK(scales.dim() == 1, "scale tensor must have dimension 1");
  RL_CHECK(zeros.dim() == 1, "zero_points tensor must have dimension 1");
  RL_CHECK(scales.numel() == zeros.numel(), "number of elements in scales and zero_points must match");
  RL_CHECK(axis >= 0 && axis < rank,
           "Channel axis out of range in per channel affine quantization. Got: ", axis, "Expected: [0, ",
           rank, ")");
  RL_CHECK(sizes[static_cast<size_t>(axis)] == scales.numel(),
           "length of scales must equal to channel, expected ", sizes[static_cast<size_t>(axis)], " got, ",
           scales.numel());
  const bool floating = is_floating(zeros.dtype());
  Quantizer q;
  q.scheme = floating ? QScheme::PerChannelAffineFloatQParams : QScheme::PerChannelAffine;
  q.scales = contiguous(to_dtype(detach(scales), floating ? DType::Float32 : DType::Float64),
                        MemoryFormat::Contiguous);
  q.zero_points =
      contiguous(to_dtype(detach(zeros), floating ? DType::Float32 : DType::Int64), MemoryFormat::Contiguous);
  q.axis = axis;
  return q;
}

// --- the loops

struct Settings {
  cpu::Quantization q;
  float scale = 1, zero = 0;
  Tensor scales, zeros;
};
// For elements that lie as those of `like`, which is dense.
void describe_to(Settings& s, const Tensor& like, DType dtype, const Quantizer& quantizer) {
  s.q.integers = integer_dtype(dtype);
  s.q.n = like.numel();
  if (!quantizer.per_channel()) {
    s.scale = static_cast<float>(quantizer.scale), s.zero = static_cast<float>(quantizer.zero_point);
    s.q.scale = &s.scale, s.q.zero_point = &s.zero;
    return;
  }
  s.scales = contiguous(to_dtype(quantizer.scales, DType::Float32), MemoryFormat::Contiguous);
  s.zeros = contiguous(to_dtype(quantizer.zero_points, DType::Float32), MemoryFormat::Contiguous);
  s.q.scale = s.scales.data<float>(), s.q.zero_point = s.zeros.data<float>();
  s.q.one_scale = false;
  s.q.channels = like->sizes[quantizer.axis];
  s.q.inner = s.q.channels > 1 ? like->strides[quantizer.axis] : 1;
}
// --- several integers to a byte, the first in the lowest bits

Tensor with_packed(const Tensor& bytes, DType dtype, IntList sizes, Quantizer quantizer) {
  check_quantized_place(bytes.device());
  Tensor t(make_ref<TensorImpl>(bytes->storage, bytes->offset, dtype, bytes.device()));
  t->set_layout(sizes, contiguous_strides(sizes));
  t->quantizer = new Quantizer(std::move(quantizer));
  return t;
}
int64_t packed_bytes(int64_t numel, DType dtype) {
  const int each = integers_per_byte(dtype);
  return (numel + each - 1) / each;
}
// As many as PyTorch allocates: each row begins a byte there, though its elements follow each other.
Tensor empty_bytes(IntList sizes, DType dtype) {
  int64_t n = packed_bytes(sizes.empty() ? 1 : sizes[sizes.size() - 1], dtype);
  for (size_t d = 0; d + 1 < sizes.size(); ++d) n *= sizes[d];
  return empty_tensor(IntList{n}, DType::UInt8, Device{});
}
Tensor bytes_of(const Tensor& packed) {
  Tensor bytes(make_ref<TensorImpl>(packed->storage, packed->offset, DType::UInt8, packed.device()));
  const std::array<int64_t, 1> n{packed_bytes(packed.numel(), packed.dtype())}, step{1};
  bytes->set_layout(n, step);
  return bytes;
}
Tensor packed_from(const Tensor& integers, DType dtype, const Quantizer& quantizer) {
  const Tensor own = contiguous(integers, MemoryFormat::Contiguous), bytes = empty_bytes(own.sizes(), dtype);
  const int each = integers_per_byte(dtype), bits = 8 / each, most = (1 << bits) - 1;
  const auto* from = static_cast<const uint8_t*>(own.data_ptr());
  auto* to = static_cast<uint8_t*>(bytes.data_ptr());
  std::fill_n(to, bytes.numel(), uint8_t{0});
  for (int64_t i = 0; i < own.numel(); ++i)
    to[i / each] |= static_cast<uint8_t>(std::min<int>(from[i], most) << (i % each * bits));
  return with_packed(bytes, dtype, integers.sizes(), quantizer);
}
Tensor unpacked(const Tensor& packed) {
  const Tensor integers = empty_tensor(packed.sizes(), DType::UInt8, Device{});
  const int each = integers_per_byte(packed.dtype()), bits = 8 / each, most = (1 << bits) - 1;
  const auto* from = static_cast<const uint8_t*>(bytes_of(packed).data_ptr());
  auto* to = static_cast<uint8_t*>(integers.data_ptr());
  for (int64_t i = 0; i < integers.numel(); ++i)
    to[i] = static_cast<uint8_t>(from[i / each] >> (i % each * bits) & most);
  return integers;
}

}  // namespace

Tensor quantize_as(const Tensor& numbers, DType dtype, const Quantizer& quantizer) {
  check_float(numbers);
  if (integers_per_byte(dtype) > 1)
    return packed_from(integers_of(quantize_as(numbers, DType::QUInt8, quantizer)), dtype, quantizer);
  const Tensor x = dense(numbers), integers = empty_like_tensor(x, integer_dtype(dtype));
  if (x.is_cpu() && x.numel() > 0) {
    Settings s;
    describe_to(s, x, dtype, quantizer);
    cpu::quantize(s.q, x.data<float>(), integers.data_ptr());
  }
  return with_quantizer(integers, dtype, quantizer);
}

Tensor dequantize_from(const Tensor& quantized) {
  const Quantizer& quantizer = quantizer_of(quantized);
  if (integers_per_byte(quantized.dtype()) > 1)
    return dequantize_from(with_quantizer(unpacked(quantized), DType::QUInt8, quantizer));
  const Tensor integers = dense(integers_of(quantized)),
               numbers = empty_like_tensor(integers, DType::Float32);
  if (integers.is_cpu() && integers.numel() > 0) {
    Settings s;
    describe_to(s, integers, quantized.dtype(), quantizer);
    cpu::dequantize(s.q, integers.data_ptr(), numbers.data<float>());
  }
  return numbers;
}

namespace {

// --- making them

Tensor in_order(const Tensor& numbers) { return contiguous(numbers, image_format(numbers)); }

Tensor per_tensor_kernel(const Call&, const Tensor& self, double scale, int64_t zero, DType dtype) {
  check_quantized(dtype);
  check_float(self);
  check_zero(zero, dtype);
  return quantize_as(in_order(self), dtype, {.scale = scale, .zero_point = zero});
}
Tensor tensor_qparams_kernel(const Call& call, const Tensor& self, const Tensor& scale, const Tensor& zero,
                             DType dtype) {
  return per_tensor_kernel(call, self, number(scale), static_cast<int64_t>(number(zero)), dtype);
}
std::vector<Tensor> tensors_kernel(const Call& call, TensorList tensors, const Tensor& scales,
                                   const Tensor& zeros, DType dtype) {
  std::vector<Tensor> quantized;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    quantized.push_back(
        tensor_qparams_kernel(call, tensors[i], select(scales, 0, at), select(zeros, 0, at), dtype));
  }
  return quantized;
}
Tensor dynamic_kernel(const Call& call, const Tensor& self, DType dtype, bool reduced) {
  RL_CHECK(dtype == DType::QInt8 || dtype == DType::QUInt8 || dtype == DType::Float16, "dtype ",
           legacy_name(dtype), "not supported");
  if (dtype == DType::Float16) return to_dtype(self, dtype);
  check_float(self);
  const double least = number(min(self)), most = number(max(self));
  RL_CHECK(least <= most, "In ChooseQuantizationParams, min should be less than or equal to max");
  const int lowest = dtype == DType::QInt8 ? -128 : 0, part = reduced ? 2 : 1;
  const cpu::ScaleAndZero chosen = cpu::choose_quantization(
      static_cast<float>(least), static_cast<float>(most), lowest / part, (lowest + 255) / part);
  return per_tensor_kernel(call, self, chosen.scale, chosen.zero_point, dtype);
}
Tensor per_channel_kernel(const Call&, const Tensor& self, const Tensor& scales, const Tensor& zeros,
                          int64_t axis, DType dtype) {
  check_quantized(dtype);
  check_float(self);
  Quantizer q = channels(scales, zeros, axis, self.sizes());
  if (q.zero_points.is_cpu() && q.scheme == QScheme::PerChannelAffine && q.zero_points.numel() > 0) {
    check_zero(read_scalar(min(q.zero_points)).to_int(), dtype, true);
    check_zero(read_scalar(max(q.zero_points)).to_int(), dtype, true);
  }
  return quantize_as(in_order(self), dtype, q);
}

Tensor make_per_tensor_kernel(const Call&, const Tensor& self, double scale, int64_t zero) {
  return with_quantizer(clone(self, MemoryFormat::Preserve), quantized_dtype(self.dtype()),
                        {.scale = scale, .zero_point = zero});
}
Tensor make_per_channel_kernel(const Call&, const Tensor& self, const Tensor& scales, const Tensor& zeros,
                               int64_t axis) {
  return with_quantizer(clone(self, MemoryFormat::Preserve), quantized_dtype(self.dtype()),
                        channels(scales, zeros, axis, self.sizes()));
}

Tensor empty_quantized(IntList size, OptDType dtype, OptDevice device, std::optional<MemoryFormat> format,
                       Quantizer q) {
  RL_CHECK(dtype, "Must provide data type for Tensor creation functions.");
  check_quantized(*dtype);
  if (integers_per_byte(*dtype) > 1)
    return with_packed(empty_bytes(size, *dtype), *dtype, size, std::move(q));
  const Tensor integers = empty_tensor(size, integer_dtype(*dtype), device.value_or(Device{}),
                                       format.value_or(MemoryFormat::Contiguous));
  return with_quantizer(integers, *dtype, std::move(q));
}
Tensor empty_affine_kernel(const Call&, IntList size, OptDType dtype, std::optional<Layout>, OptDevice device,
                           std::optional<bool>, double scale, int64_t zero,
                           std::optional<MemoryFormat> format) {
  return empty_quantized(size, dtype, device, format, {.scale = scale, .zero_point = zero});
}
Tensor empty_per_channel_kernel(const Call&, IntList size, const Tensor& scales, const Tensor& zeros,
                                int64_t axis, OptDType dtype, std::optional<Layout>, OptDevice device,
                                std::optional<bool>, std::optional<MemoryFormat> format) {
  return empty_quantized(size, dtype, device, format, channels(scales, zeros, axis, size));
}

// --- taking them apart

Tensor dequantize_kernel(const Call&, const Tensor& self) {
  return self->quantizer ? dequantize_from(self) : to_dtype(self, DType::Float32);
}
std::vector<Tensor> dequantize_tensors_kernel(const Call& call, TensorList tensors) {
  std::vector<Tensor> numbers;
  for (const Tensor& t : tensors) numbers.push_back(dequantize_kernel(call, t));
  return numbers;
}
Tensor int_repr_kernel(const Call& call, const Tensor& self) {
  asked(call, self);
  if (integers_per_byte(self.dtype()) > 1) return clone(bytes_of(self), MemoryFormat::Contiguous);
  return clone(integers_of(self), MemoryFormat::Preserve);
}
double q_scale_kernel(const Call& call, const Tensor& self) { return asked_for_one(call, self).scale; }
int64_t q_zero_point_kernel(const Call& call, const Tensor& self) {
  return asked_for_one(call, self).zero_point;
}
Tensor q_scales_kernel(const Call& call, const Tensor& self) {
  return clone(asked_for_channels(call, self).scales, std::nullopt);
}
Tensor q_zeros_kernel(const Call& call, const Tensor& self) {
  return clone(asked_for_channels(call, self).zero_points, std::nullopt);
}
int64_t q_axis_kernel(const Call& call, const Tensor& self) { return asked_for_channels(call, self).axis; }

constexpr const char* kInteger = "the result holds integers";

// Registers an operator that takes quantised tensors as well as others.
template <class R, class... A>
OpBuilder both(Table& t, Fn<R(A...)>& handle, const char* schema,
               std::type_identity_t<R (*)(const Call&, A...)> kernel) {
  OpBuilder record = t.op(handle, schema, kernel);
  t.quantized(handle, kernel);
  return record.family(Family::Copy).not_differentiable(kInteger).special_dtypes();
}

}  // namespace

static void register_making_operators(Table& t) {
  both(t, quantize_per_tensor,
       "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
       per_tensor_kernel)
      .function_only()
      .doc(
          "self as integers: round(self / scale + zero_point), as many bits as dtype (torch.quint8, "
          "torch.qint8, torch.qint32) has.");
  both(t, quantize_per_tensor_tensor_qparams,
       "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) "
       "-> Tensor",
       tensor_qparams_kernel)
      .function_only()
      .doc("Likewise, with scale and zero point in tensors of one element.");
  both(t, quantize_per_tensor_tensors,
       "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) "
       "-> Tensor[]",
       tensors_kernel)
      .function_only()
      .doc("Several tensors, each with a scale and a zero point.");
  both(t, quantize_per_tensor_dynamic,
       "quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor",
       dynamic_kernel)
      .function_only()
      .doc("Likewise, with the scale and zero point that cover the elements as they are.");
  both(t, quantize_per_channel,
       "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> "
       "Tensor",
       per_channel_kernel)
      .function_only()
      .doc("self as integers, with a scale and a zero point for each index of dimension axis.");
  both(t, make_per_tensor_quantized_tensor,
       "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
       make_per_tensor_kernel)
      .function_only()
      .doc("A quantised tensor of these integers.");
  both(t, make_per_channel_quantized_tensor,
       "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
       make_per_channel_kernel)
      .function_only()
      .doc("A quantised tensor of these integers, with a scale and a zero point for each index of axis.");
  t.op(empty_affine_quantized,
       "_empty_affine_quantized(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None, float scale=1, int zero_point=0, MemoryFormat? "
       "memory_format=contiguous_format) -> Tensor",
       empty_affine_kernel)
      .function_only()
      .family(Family::Factory)
      .not_differentiable(kInteger)
      .special_dtypes()
      .uninitialized()
      .doc("A quantised tensor of integers as they are found in memory.");
  t.op(empty_per_channel_affine_quantized,
       "_empty_per_channel_affine_quantized(int[] size, *, Tensor scales, Tensor zero_points, int axis, "
       "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       "MemoryFormat? memory_format=contiguous_format) -> Tensor",
       empty_per_channel_kernel)
      .function_only()
      .family(Family::Factory)
      .not_differentiable(kInteger)
      .special_dtypes()
      .uninitialized()
      .doc("Likewise, with a scale and a zero point for each index of axis.");
}

void register_quantized_operators(Table& t) {
  register_making_operators(t);
  both(t, dequantize, "dequantize.self(Tensor self) -> Tensor", dequantize_kernel)
      .doc("The numbers that integers stand for: (integer - zero_point) * scale, as float32.");
  both(t, dequantize_tensors, "dequantize.tensors(Tensor[] tensors) -> Tensor[]", dequantize_tensors_kernel)
      .function_only()
      .doc("Likewise, of several tensors.");
  both(t, int_repr, "int_repr(Tensor self) -> Tensor", int_repr_kernel)
      .doc("A copy of the integers of a quantised tensor.");
  both(t, q_scale, "q_scale(Tensor self) -> float", q_scale_kernel)
      .family(Family::Value)
      .doc("The scale of a quantised tensor.");
  both(t, q_zero_point, "q_zero_point(Tensor self) -> int", q_zero_point_kernel)
      .family(Family::Value)
      .doc("The integer that stands for zero.");
  both(t, q_per_channel_scales, "q_per_channel_scales(Tensor self) -> Tensor", q_scales_kernel)
      .doc("The scales of a tensor that was quantised by channel.");
  both(t, q_per_channel_zero_points, "q_per_channel_zero_points(Tensor self) -> Tensor", q_zeros_kernel)
      .doc("The integers that stand for zero, by channel.");
  both(t, q_per_channel_axis, "q_per_channel_axis(Tensor self) -> int", q_axis_kernel)
      .family(Family::Value)
      .doc("The dimension whose indices have a scale and a zero point each.");
}

}  // namespace rushlight
