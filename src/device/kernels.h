// The loops that a device's library provides.
#pragma once
#include <array>
#include <span>

#include "core/tensor.h"
#include "formulas/table.h"

namespace rushlight {

class Generator;
namespace cpu {
enum class ReduceOp : uint8_t;
enum class ScatterOp : uint8_t;
struct ReduceParams;
struct FusedProgram;
}  // namespace cpu

// Calls of `formula` and `reduce` that are launched together (ops/device_multi_tensor.h).
struct FormulaCall {
  FormulaCall(Formula f, DType type, const Tensor& result, std::span<const Tensor* const> operands,
              std::span<const Scalar> numbers)
      : formula(f), compute(type), out(result) {
    for (const Tensor* t : operands) inputs_[input_count_++] = *t;
    for (const Scalar& s : numbers) parameters_[parameter_count_++] = s;
  }
  // f(the inputs as `formula` takes them)
  template <class F>
  decltype(auto) with_inputs(F&& f) const {
    std::array<const Tensor*, kMost> pointers;
    for (size_t i = 0; i < input_count_; ++i) pointers[i] = &inputs_[i];
    return f(std::span<const Tensor* const>(pointers.data(), input_count_));
  }
  std::span<const Tensor> inputs() const { return {inputs_.data(), input_count_}; }
  std::span<const Scalar> parameters() const { return {parameters_.data(), parameter_count_}; }

  Formula formula;
  DType compute;
  Tensor out;

 private:
  static constexpr size_t kMost = 4;
  std::array<Tensor, kMost> inputs_;
  std::array<Scalar, kMost> parameters_;
  size_t input_count_ = 0, parameter_count_ = 0;
};
// Of all of `in`, which has no gaps, to one element.
struct ReduceCall {
  cpu::ReduceOp op;
  double divisor;
  Tensor in, out;
  const char* who;  // in errors
};

// All tensors are on one device, except that inputs of no dimensions may be on the CPU: those are numbers.
struct DeviceKernels {
  // out = formula(inputs), computed in `compute`; broadcast, any strides and dtypes. False where the device
  // does not compute this formula in this type.
  bool (*formula)(Formula f, DType compute, const Tensor& out, std::span<const Tensor* const> inputs,
                  std::span<const Scalar> parameters) = nullptr;
  // The same for several calls of one formula in one compute type, none of which touches what another writes.
  // False: not for these, and nothing was done.
  bool (*formulas)(std::span<const FormulaCall> calls) = nullptr;
  // out = condition ? a : b
  bool (*where)(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) = nullptr;
  // out = source, broadcast and converted. Every device has this one; false: not between these dtypes.
  bool (*copy)(const Tensor& out, const Tensor& source) = nullptr;
  // As their counterparts in cpu/reduce.h and cpu/scan.h; params.centre is of in's dtype. False: not for
  // these dtypes.
  bool (*reduce)(cpu::ReduceOp op, const Tensor& in, uint64_t dims, const Tensor& out,
                 const cpu::ReduceParams& params) = nullptr;
  // As `formulas`, for calls of one formula and divisor.
  bool (*reductions)(std::span<const ReduceCall> calls) = nullptr;
  bool (*arg_extreme)(const Tensor& in, int64_t dim, bool largest, const Tensor& values,
                      const Tensor& indices) = nullptr;
  bool (*cumulate)(bool product, const Tensor& in, int64_t dim, const Tensor& out) = nullptr;
  // offsets += position * stride for positions in [0, size), or [-size, size) where they wrap; in elements.
  void (*add_positions)(const Tensor& offsets, const Tensor& index, int64_t size, int64_t stride,
                        bool wraps) = nullptr;
  // Elements of `base`, whose sizes are those of out, each `offsets` further on.
  void (*take)(const Tensor& out, const Tensor& base, const Tensor& offsets) = nullptr;
  bool (*put)(cpu::ScatterOp op, const Tensor& base, const Tensor& offsets, const Tensor& values) = nullptr;
  // Contiguous `out`, from the device's generator. a and b: bounds, mean and deviation, probability, rate.
  // Integers: a + draw % range, or any 64 bits for a range of 0.
  enum class Random : uint8_t { Uniform, Normal, Bernoulli, Exponential, Integers };
  bool (*random)(Random kind, const Tensor& out, double a, double b, uint64_t range,
                 Generator& generator) = nullptr;
  // out = alpha * a @ b + beta * out for matrices or batches of them; operands as cpu::gemm_readable says.
  bool (*product)(const Tensor& out, const Tensor& a, const Tensor& b, double alpha, double beta) = nullptr;
  // out = activation(a @ b + bias) for matrices, the bias contiguous with one element a column. Gelu: by
  // tanh. False: not here; there are products and formulas.
  enum class Activation : uint8_t { None, Relu, Gelu };
  bool (*product_bias)(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
                       Activation activation) = nullptr;
  // As cpu::run_fused; inputs of no dimensions may be on the CPU. False: not for these dtypes. Programs are
  // made where `fuses` says so.
  bool (*fused)(const cpu::FusedProgram& program, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs) = nullptr;
  bool (*fuses)() = nullptr;
  // Contiguous `out`: start + i * step; and what lies outside a triangle of its matrices zero.
  bool (*range)(const Tensor& out, const Scalar& start, const Scalar& step) = nullptr;
  bool (*triangle)(const Tensor& out, int64_t diagonal, bool upper) = nullptr;
};
void register_device_kernels(DeviceType type, const DeviceKernels* kernels);
const DeviceKernels& device_kernels(DeviceType type);

}  // namespace rushlight
