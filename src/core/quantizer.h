// What the integers of a quantised tensor mean.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Note [Quantised tensors]
// A quantised tensor is a plain tensor whose elements are integers, of one of the dtypes quint8, qint8,
// qint32 (quint4x2 and quint2x4 pack several into a byte), and a quantiser that says which numbers they stand
// for: (integer - zero point) * scale, with one scale and zero point for all, or one for each index of an
// axis. Kernel tables do not know these dtypes: they lie beyond kDTypeCount, and every tensor of such a dtype
// has the flag kSpecialElements, so that the gate's last interceptor sees it (transform/quantized.cpp). A
// fact on an operator's record (OnQuantized, dispatch/traits.h) says what becomes of the call there: most run
// on the integers, as an alias of a plain dtype shows them, and their results get the operand's quantiser.
enum class QScheme : uint8_t {
  PerTensorAffine,
  PerChannelAffine,
  PerTensorSymmetric,  // the last but one are names that programs use; no tensor has them
  PerChannelSymmetric,
  PerChannelAffineFloatQParams,
};

struct Quantizer {
  QScheme scheme = QScheme::PerTensorAffine;
  double scale = 1;
  int64_t zero_point = 0;
  Tensor scales = {}, zero_points = {};  // by channel, in the types that PyTorch keeps them in
  int64_t axis = 0;
  bool per_channel() const { return scheme != QScheme::PerTensorAffine; }
};

inline bool is_quantized(const Tensor& t) { return is_quantized(t.dtype()); }
const Quantizer& quantizer_of(const Tensor& t);
// The plain dtype of the integers, and the quantised one that holds such integers.
DType integer_dtype(DType quantized);
DType quantized_dtype(DType integers);

// How many integers lie in a byte: 1 but for quint4x2 and quint2x4, whose tensors have fewer bytes than
// elements; only what takes them apart reads those.
int integers_per_byte(DType quantized);

// Another tensor on the same memory, of another dtype with elements of that size.
Tensor alias_as(const Tensor& t, DType dtype);
// The integers themselves, and integers under a quantiser: memory is shared.
Tensor integers_of(const Tensor& quantized);
void check_quantized_place(Device device);  // they live on the CPU
Tensor with_quantizer(const Tensor& integers, DType dtype, Quantizer quantizer);

// What a view's integers mean: scales of channels go along with their dimension, or the part of it that is
// seen. Refuses views in which a dimension runs across channels.
Quantizer quantizer_of_view(const TensorImpl& base, IntList sizes, IntList strides, int64_t offset);

Scalar read_quantized_scalar(const Tensor& t, int64_t element_offset);

}  // namespace rushlight
