#include "core/quantizer.h"

namespace rushlight {

const Quantizer& quantizer_of(const Tensor& t) {
  RL_CHECK(t->quantizer, "expected a quantized tensor, but got ", describe(t));
  return *t->quantizer;
}

DType integer_dtype(DType quantized) {
  return quantized == DType::QInt8 ? DType::Int8 : quantized == DType::QInt32 ? DType::Int32 : DType::UInt8;
}
DType quantized_dtype(DType integers) {
  RL_CHECK(integers == DType::UInt8 || integers == DType::Int8 || integers == DType::Int32,
           "expected integers of type Byte, Char or Int, found ", legacy_name(integers));
  return integers == DType::UInt8 ? DType::QUInt8 : integers == DType::Int8 ? DType::QInt8 : DType::QInt32;
}

Tensor alias_as(const Tensor& t, DType dtype) {
  Tensor alias(make_ref<TensorImpl>(t->storage, t->offset, dtype, t->device));
  alias->set_layout(t.sizes(), t.strides());
  alias->version = t->version;
  return alias;
}
int integers_per_byte(DType quantized) {
  return quantized == DType::QUInt4x2 ? 2 : quantized == DType::QUInt2x4 ? 4 : 1;
}
Tensor integers_of(const Tensor& quantized) {
  if (integers_per_byte(quantized.dtype()) > 1)
    RL_NOT_IMPLEMENTED("the operator takes no torch.", dtype_name(quantized.dtype()),
                       " tensors, whose bytes hold several integers: use .dequantize() before it");
  return alias_as(quantized, integer_dtype(quantized.dtype()));
}
void check_quantized_place(Device device) {
  if (device.is_cuda())
    RL_NOT_IMPLEMENTED(
        "Could not run 'aten::empty_quantized' with arguments from the 'QuantizedCUDA' "
        "backend: quantized tensors live on the CPU; make them there (.cpu())");
}
Tensor with_quantizer(const Tensor& integers, DType dtype, Quantizer quantizer) {
  check_quantized_place(integers.device());
  const Tensor t = alias_as(integers, dtype);
  t->quantizer = new Quantizer(std::move(quantizer));
  return t;
}

namespace {

constexpr const char* kAcross = "Setting strides is possible only on uniformly quantized tensor";

// The dimension that steps from channel to channel, or -1. A step of the axis moves by `step` elements, all
// of it by `whole`: what moves less lies in a channel, what moves by multiples of `whole` lies outside of the
// axis.
int64_t channel_dimension(IntList sizes, IntList strides, int64_t step, int64_t whole) {
  int64_t found = -1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t reach = strides[d] * (sizes[d] - 1);
    RL_CHECK(strides[d] >= 0 || sizes[d] <= 1, kAcross);
    if (reach <= 0 || reach < step || strides[d] % whole == 0) continue;
    RL_CHECK(found < 0 && strides[d] % step == 0 && reach < whole, kAcross);
    found = static_cast<int64_t>(d);
  }
  return found;
}

// With one channel any dimension of size 1 may stand for it: the one that is where it was.
int64_t only_channel(IntList sizes, int64_t axis) {
  const auto rank = static_cast<int64_t>(sizes.size());
  if (axis < rank && sizes[static_cast<size_t>(axis)] == 1) return axis;
  for (int64_t d = 0; d < rank; ++d)
    if (sizes[static_cast<size_t>(d)] == 1) return d;
  return -1;
}

}  // namespace

Quantizer quantizer_of_view(const TensorImpl& base, IntList sizes, IntList strides, int64_t offset) {
  const Quantizer& from = *base.quantizer;
  if (!from.per_channel() || (base.sizes == sizes && base.strides == strides)) return from;
  Quantizer q = from;
  const int64_t channels = base.sizes[from.axis], step = base.strides[from.axis], whole = step * channels;
  if (channels > 1 && base.numel > 0) {
    RL_CHECK(step > 0 && channel_dimension(base.sizes, base.strides, step, whole) == from.axis, kAcross);
    q.axis = channel_dimension(sizes, strides, step, whole);
  } else {
    q.axis = channels == 1 ? only_channel(sizes, from.axis) : from.axis;
    RL_CHECK(q.axis < static_cast<int64_t>(sizes.size()) &&
                 (q.axis < 0 || sizes[static_cast<size_t>(q.axis)] == channels),
             kAcross);
  }
  const int64_t first = channels > 1 && step > 0 ? (offset - base.offset) / step % channels : 0;
  if (q.axis < 0) {  // one channel is left
    RL_CHECK(from.scheme == QScheme::PerChannelAffine, kAcross);
    q.scheme = QScheme::PerTensorAffine;
    q.scale = read_scalar(from.scales, first * from.scales->strides[0]).to_double();
    q.zero_point = read_scalar(from.zero_points, first * from.zero_points->strides[0]).to_int();
    q.scales = q.zero_points = Tensor();
    q.axis = 0;
    return q;
  }
  const auto at = static_cast<size_t>(q.axis);
  if (sizes[at] == channels) return q;
  auto part = [&](const Tensor& t) {
    const int64_t stride = t->strides[0];
    return make_view(t, IntList{sizes[at]}, IntList{strides[at] / step * stride}, t->offset + first * stride,
                     false);
  };
  q.scales = part(from.scales), q.zero_points = part(from.zero_points);
  return q;
}

Scalar read_quantized_scalar(const Tensor& t, int64_t element_offset) {
  const Quantizer& q = *t->quantizer;
  double scale = q.scale, zero = static_cast<double>(q.zero_point);
  if (q.per_channel()) {
    // The element's index on the axis, by how far it lies from the first.
    const int64_t stride = t->strides[q.axis], size = t->sizes[q.axis];
    const int64_t at = size > 1 && stride ? element_offset / stride % size : 0;
    scale = read_scalar(q.scales, at * q.scales->strides[0]).to_double();
    zero = read_scalar(q.zero_points, at * q.zero_points->strides[0]).to_double();
  }
  const double integer = read_scalar(integers_of(t), element_offset).to_double();
  return Scalar(static_cast<double>(static_cast<float>(integer - zero) * static_cast<float>(scale)));
}

}  // namespace rushlight
