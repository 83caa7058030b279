#include "cuda/formula_multi_tensor.h"

#include "core/scalar.h"
#include "cuda/operands.h"

namespace rushlight::cuda {
namespace {

// Bytes from one element of an operand to the next.
int64_t step_of(const Piece& piece, int operand) {
  return piece.geometry.rank == 0 ? 0 : piece.geometry.strides[0][operand];
}
int64_t size_of(const Operand& operand) { return static_cast<int64_t>(element_size(operand.dtype)); }

template <class T>
uint64_t bytes_of(T value) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, &value, sizeof(T));
  return bytes;
}

}  // namespace

bool FormulaMultiTensor::fits(const Piece& piece) {
  const Geometry& g = piece.geometry;
  if (g.rank > 1 || g.numel > kMostElements) return false;
  if (g.numel > 1 && step_of(piece, 0) != size_of(piece.operands[0])) return false;
  for (int i = 1; i < g.operands; ++i) {
    const Operand& in = piece.operands[i];
    if (!in.is_value && step_of(piece, i) != 0 && step_of(piece, i) != size_of(in)) return false;
  }
  return true;
}

bool FormulaMultiTensor::goes_with(const Piece& piece) const {
  if (tensor_blocks.count == 0) return true;
  if (tensor_blocks.is_full()) return false;
  for (int i = 0; i < piece.geometry.operands; ++i) {
    const bool number = i > 0 && piece.operands[i].is_value;
    if (!number && dtypes[i] != piece.operands[i].dtype) return false;
  }
  return true;
}

template <class T>
void FormulaMultiTensor::add(const Piece& piece, DType compute, std::span<const Scalar> parameters) {
  Entry& entry = entries[tensor_blocks.count];
  entry = {};
  entry.out = piece.operands[0].data;
  entry.numel = piece.geometry.numel;
  dtypes[0] = piece.operands[0].dtype;
  for (int i = 1; i < piece.geometry.operands; ++i) {
    const Operand& in = piece.operands[i];
    if (in.is_value) {
      entry.numbers |= static_cast<uint8_t>(1 << (i - 1));
      entry.inputs[i - 1] = bytes_of(source_of<T>(in).value);
    } else {
      dtypes[i] = in.dtype;
      entry.inputs[i - 1] = reinterpret_cast<uint64_t>(in.data);
      entry.steps[i - 1] = static_cast<uint8_t>(step_of(piece, i));
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    entry.parameters[i] = bytes_of(number_from<T>(parameters[i], compute));
  tensor_blocks.add((entry.numel + kPerBlock - 1) / kPerBlock);
}

template void FormulaMultiTensor::add<int32_t>(const Piece&, DType, std::span<const Scalar>);
template void FormulaMultiTensor::add<int64_t>(const Piece&, DType, std::span<const Scalar>);
template void FormulaMultiTensor::add<float>(const Piece&, DType, std::span<const Scalar>);
template void FormulaMultiTensor::add<double>(const Piece&, DType, std::span<const Scalar>);
template void FormulaMultiTensor::add<bool>(const Piece&, DType, std::span<const Scalar>);

}  // namespace rushlight::cuda
