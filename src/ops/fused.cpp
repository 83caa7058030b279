// Chains of pointwise operators as one: what torch.compile makes of them. On a device it is a kernel of their
// own.
#include "cpu/fused.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/fork_mutex.h"
#include "cpu/pointwise.h"
#include "device/kernels.h"
#include "dispatch/table.h"
#include "ops/factory.h"

namespace rushlight {
namespace ops {
inline Fn<std::vector<Tensor>(TensorList inputs, IntList program, FloatList numbers, DType dtype)>
    fused_pointwise;
inline Fn<std::vector<Tensor>(TensorList inputs, IntList program, FloatList numbers, DType dtype,
                              IntList shape, IntList row_inputs)>
    fused_rows;
}  // namespace ops

namespace {

using cpu::FusedProgram;
using cpu::FusedStep;

constexpr size_t kMaxInputs = 64, kMaxSteps = 256;
constexpr int64_t kLongestRow = 1 << 14;

// Reads the list of integers: number of steps; for each the formula, its operands and the positions of its
// parameters among the numbers; number of outputs, and their registers.
class Reader {
 public:
  Reader(const Call& call, IntList code, FusedProgram& program)
      : call_(call), code_(code), program_(program) {}

  void read() {
    const size_t steps = count(kMaxSteps);
    for (size_t i = 0; i < steps; ++i) program_.steps.push_back(step());
    const size_t outputs = count(kMaxSteps);
    RL_CHECK_VALUE(outputs > 0, call_.op.name(), "(): there are no outputs");
    for (size_t i = 0; i < outputs; ++i) program_.outputs.push_back(existing());
    RL_CHECK_VALUE(at_ == code_.size(), call_.op.name(), "(): the program goes on after its outputs");
  }

 private:
  int64_t next() {
    RL_CHECK_VALUE(at_ < code_.size(), call_.op.name(), "(): the program ends too early");
    return code_[at_++];
  }
  size_t count(size_t limit) {
    const int64_t n = next();
    RL_CHECK_VALUE(n >= 0 && static_cast<size_t>(n) <= limit, call_.op.name(), "(): ", n, " is no count");
    return static_cast<size_t>(n);
  }
  int existing() {
    const int64_t r = next(), end = program_.step_register(program_.steps.size());
    RL_CHECK_VALUE(r >= 0 && r < end, call_.op.name(), "(): there is no register ", r);
    return static_cast<int>(r);
  }
  int operand(bool wants_bool) {
    const int r = existing();
    RL_CHECK_VALUE(program_.is_bool(r) == wants_bool, call_.op.name(), "(): register ", r, " is ",
                   wants_bool ? "not " : "", "bool");
    return r;
  }

  FusedStep step() {
    const int64_t formula = next();
    return formula < FusedStep::kChoose ? step_of_rows(formula) : pointwise_step(formula);
  }

  FusedStep step_of_rows(int64_t code) {
    RL_CHECK_VALUE(program_.row && code >= FusedStep::kLogSoftmax, call_.op.name(), "(): there is no step ",
                   code);
    FusedStep s;
    s.formula = static_cast<int>(code);
    s.operand_count = 1;
    s.operands[0] = operand(false);
    RL_CHECK_VALUE(!program_.is_by_row(s.operands[0]), call_.op.name(), "(): register ", s.operands[0],
                   " has one element a row");
    s.by_row = s.reduces();
    if (s.formula == FusedStep::kSum) s.divisor = parameter().to_double();
    return s;
  }

  Scalar parameter() {
    const int64_t n = next();
    RL_CHECK_VALUE(n >= 0 && static_cast<size_t>(n) < program_.numbers.size(), call_.op.name(),
                   "(): there is no number ", n);
    return Scalar(program_.numbers[static_cast<size_t>(n)]);
  }

  bool is_number(int reg) const {
    const auto first = static_cast<int>(program_.input_bool.size());
    return reg >= first && reg < program_.step_register(0);
  }
  // A result has one element a row where all operands have, apart from numbers.
  bool gives_rows(const FusedStep& s) const {
    bool some = false, all = true;
    for (int i = 0; i < s.operand_count; ++i) {
      const int reg = s.operands[static_cast<size_t>(i)];
      if (is_number(reg)) continue;
      some |= program_.is_by_row(reg), all &= program_.is_by_row(reg);
    }
    RL_CHECK_VALUE(all || !program_.is_bool(s.operands[0]) || !program_.is_by_row(s.operands[0]),
                   call_.op.name(), "(): a choice for rows is taken for elements");
    return some && all;
  }

  FusedStep pointwise_step(int64_t formula) {
    FusedStep s;
    if (formula == FusedStep::kChoose) {
      s.operand_count = 3;
      for (size_t i = 0; i < 3; ++i) s.operands[i] = operand(i == 0);
      s.by_row = gives_rows(s);
      return s;
    }
    RL_CHECK_VALUE(formula >= 0 && formula < kFormulaCount && program_.has_loop(static_cast<int>(formula)),
                   call_.op.name(), "(): there is no formula ", formula, " for ", program_.type);
    const FormulaInfo& info = kFormulaInfo[formula];
    s.formula = static_cast<int>(formula);
    s.operand_count = info.inputs;
    s.gives_bool = info.result == FormulaResult::Bool;
    for (size_t i = 0; i < info.inputs; ++i) s.operands[i] = operand(false);
    std::vector<Scalar> parameters;
    for (int i = 0; i < info.parameters; ++i) parameters.push_back(parameter());
    s.by_row = gives_rows(s);
    const cpu::PackedParameters packed(parameters, program_.computes_in(s.formula));
    std::memcpy(s.parameters.data(), packed.data(), s.parameters.size());
    return s;
  }

  const Call& call_;
  IntList code_;
  FusedProgram& program_;
  size_t at_ = 0;
};

// A program without its steps, for inputs that broadcast to `shape`.
FusedProgram begin_program(const Call& call, TensorList inputs, FloatList numbers, DType dtype) {
  RL_CHECK_VALUE(!inputs.empty() && inputs.size() <= kMaxInputs, call.op.name(), "(): expected 1 to ",
                 kMaxInputs, " inputs, but got ", inputs.size());
  RL_CHECK_VALUE(dtype == DType::Float32 || dtype == DType::Float64 || is_reduced_float(dtype),
                 call.op.name(), "(): computes in floating-point types, not ", dtype);
  RL_CHECK_VALUE(numbers.size() <= kMaxSteps * 4, call.op.name(), "(): too many numbers");
  FusedProgram program;
  program.type = dtype;
  program.numbers.assign(numbers.begin(), numbers.end());
  for (const Tensor& t : inputs) {
    RL_CHECK(!is_complex(t.dtype()), call.op.name(), "(): an input is complex");
    program.input_bool.push_back(t.dtype() == DType::Bool);
  }
  program.input_by_row.resize(inputs.size());
  return program;
}

void run_on_device(const Call& call, const FusedProgram& program, std::span<const Tensor> inputs,
                   std::span<const Tensor> outputs, Device device) {
  const DeviceKernels& kernels = device_kernels(device.type());
  const bool done = kernels.fused && kernels.fused(program, inputs, outputs);
  if (!done) RL_NOT_IMPLEMENTED(call.op.name(), "(): there is no kernel for these inputs on ", device);
}

std::vector<Tensor> run_program(const Call& call, const FusedProgram& program, TensorList inputs) {
  const auto away = std::ranges::find_if(inputs, [](const Tensor& t) { return !t.is_cpu(); });
  const Device device = away == inputs.end() ? Device{} : away->device();
  Dims rows = program.shape;
  if (program.row) rows.back() = 1;
  std::vector<Tensor> outputs;
  for (const int r : program.outputs)
    outputs.push_back(empty_tensor(program.is_by_row(r) ? rows : program.shape,
                                   program.is_bool(r) ? DType::Bool : program.type, device));
  const std::span<const Tensor> given(inputs.data(), inputs.size());
  if (device.is_cpu())
    cpu::run_fused(program, given, outputs);
  else
    run_on_device(call, program, given, outputs, device);
  return outputs;
}

// Programs that were read before: a graph calls the same ones again and again, and reading one takes longer
// than running it on a few elements. A call has one for itself, since it puts its shape in.
class KnownPrograms {
 public:
  struct Known {
    std::vector<int64_t> code;
    FusedProgram program;

    bool is(TensorList inputs, IntList text, FloatList numbers, DType dtype) const {
      if (program.type != dtype || program.input_bool.size() != inputs.size() ||
          program.numbers.size() != numbers.size() || !std::ranges::equal(text, code))
        return false;
      // Bit by bit: 0 and -0 are two numbers, a NaN is itself.
      if (!numbers.empty() &&
          std::memcmp(program.numbers.data(), numbers.data(), numbers.size() * sizeof(double)) != 0)
        return false;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (program.input_bool[i] != (inputs[i].dtype() == DType::Bool) || is_complex(inputs[i].dtype()))
          return false;
      return true;
    }
  };

  std::unique_ptr<Known> take(const Call& call, TensorList inputs, IntList code, FloatList numbers,
                              DType dtype) {
    {
      std::lock_guard lock(mutex_);
      for (auto at = idle_.rbegin(); at != idle_.rend(); ++at)
        if ((*at)->is(inputs, code, numbers, dtype)) {
          std::unique_ptr<Known> found = std::move(*at);
          idle_.erase(std::next(at).base());
          return found;
        }
    }
    auto made = std::make_unique<Known>();
    made->program = begin_program(call, inputs, numbers, dtype);
    Reader(call, code, made->program).read();
    made->code.assign(code.begin(), code.end());
    return made;
  }
  void give(std::unique_ptr<Known> known) {
    constexpr size_t kMost = 64;
    std::lock_guard lock(mutex_);
    if (idle_.size() == kMost) idle_.erase(idle_.begin());
    idle_.push_back(std::move(known));
  }

 private:
  ForkMutex mutex_;
  std::vector<std::unique_ptr<Known>> idle_;  // those used last come last
};

std::vector<Tensor> fused_pointwise_kernel(const Call& call, TensorList inputs, IntList code,
                                           FloatList numbers, DType dtype) {
  static KnownPrograms& programs = *new KnownPrograms;
  auto known = programs.take(call, inputs, code, numbers, dtype);
  FusedProgram& program = known->program;
  program.shape = inputs[0].sizes().dims();
  for (const Tensor& t : inputs)
    if (t.sizes() != IntList(program.shape)) program.shape = broadcast_shapes(program.shape, t.sizes());
  std::vector<Tensor> results = run_program(call, program, inputs);
  programs.give(std::move(known));
  return results;
}

std::vector<Tensor> fused_rows_kernel(const Call& call, TensorList inputs, IntList code, FloatList numbers,
                                      DType dtype, IntList shape, IntList row_inputs) {
  FusedProgram program = begin_program(call, inputs, numbers, dtype);
  RL_CHECK_VALUE(!shape.empty() && shape.back() > 0 && shape.back() <= kLongestRow, call.op.name(),
                 "(): rows must have 1 to ", kLongestRow, " elements, but the shape is ", shape);
  program.shape = shape.dims();
  program.row = shape.back();
  for (const int64_t i : row_inputs) {
    RL_CHECK_VALUE(i >= 0 && static_cast<size_t>(i) < inputs.size(), call.op.name(), "(): there is no input ",
                   i);
    program.input_by_row[static_cast<size_t>(i)] = true;
  }
  Dims rows = program.shape;
  rows.back() = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Dims& whole = program.input_by_row[i] ? rows : program.shape;
    RL_CHECK_VALUE(broadcast_shapes(whole, inputs[i].sizes()) == whole, call.op.name(),
                   "(): an input of size ", inputs[i].sizes(), " does not broadcast to ", IntList(whole));
  }
  Reader(call, code, program).read();
  return run_program(call, program, inputs);
}

}  // namespace

void register_fused_operators(Table& t) {
  t.op(ops::fused_pointwise,
       "_fused_pointwise(Tensor[] inputs, int[] program, float[] numbers, ScalarType dtype) -> Tensor[]",
       fused_pointwise_kernel)
      .absent_in_pytorch()
      .internal()
      .on_devices()
      .doc(
          "Runs a chain of pointwise formulas tile by tile: what torch.compile makes of pointwise operators.")
      .no_meta("its program is made for the shapes of a graph")
      .not_differentiable("it stands in graphs that record no gradients");
  t.op(ops::fused_rows,
       "_fused_rows(Tensor[] inputs, int[] program, float[] numbers, ScalarType dtype, int[] shape, int[] "
       "row_inputs) -> Tensor[]",
       fused_rows_kernel)
      .absent_in_pytorch()
      .internal()
      .on_devices()
      .doc(
          "Runs pointwise formulas, reductions and softmax along rows, a few rows at a time: what "
          "torch.compile "
          "makes of them.")
      .no_meta("its program is made for the shapes of a graph")
      .not_differentiable("it stands in graphs that record no gradients");
}

}  // namespace rushlight
