#include "cpu/fused.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "core/parallel.h"
#include "cpu/iterator.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kTile = 512;
constexpr size_t kTileBytes = kTile * sizeof(double);

// An input or output beside the contiguous order in which all are walked.
struct Walked {
  Walked(const Tensor& order, const Tensor& t) : iteration(order.sizes()) {
    iteration.add(order);
    iteration.add(t);
    iteration.finish();
  }
  Iteration iteration;
};

enum class Read : uint8_t { InPlace, Once, Gathered };

struct Input {
  Input(const Tensor& order, const Tensor& t, DType wanted)
      : walked(order, t),
        cast(cast_loop(wanted, t.dtype())),
        size(static_cast<int64_t>(element_size(wanted))) {
    if (walked.iteration.is_scalar(1))
      read = Read::Once;
    else if (t.dtype() == wanted && walked.iteration.is_linear(1, size))
      read = Read::InPlace;
  }
  const char* take(int64_t at, int64_t n, char* tile) const {
    if (read == Read::InPlace) return walked.iteration.data(1) + at * size;
    char* to = tile;
    for_each_row(walked.iteration, 1, at, n, [&](char* from, int64_t stride, int64_t count) {
      cast(to, size, from, stride, count);
      to += count * size;
    });
    return tile;
  }

  Walked walked;
  CastLoop cast;
  int64_t size;
  Read read = Read::Gathered;
};

class Run {
 public:
  Run(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : program_(program), outputs_(outputs) {
    inputs_.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(outputs[0], inputs[i], program.input_bool[i] ? DType::Bool : program.type);
  }

  // Elements [begin, end) of the outputs.
  void range(int64_t begin, int64_t end) const {
    const size_t registers = static_cast<size_t>(program_.step_register(program_.steps.size()));
    const std::unique_ptr<std::byte[]> memory(new std::byte[registers * kTileBytes + 64]);
    const auto address = reinterpret_cast<uintptr_t>(memory.get());
    char* const tiles = reinterpret_cast<char*>((address + 63) & ~uintptr_t{63});
    std::vector<char*> at_register(registers);
    for (size_t r = 0; r < registers; ++r) at_register[r] = tiles + r * kTileBytes;
    fill_constant(at_register, std::min(kTile, end - begin));
    for (int64_t at = begin; at < end; at += kTile) tile(at, std::min(kTile, end - at), at_register, tiles);
  }

 private:
  // What does not depend on the position: numbers, and inputs of one element.
  void fill_constant(const std::vector<char*>& at_register, int64_t n) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].read == Read::Once)
        inputs_[i].cast(at_register[i], inputs_[i].size, inputs_[i].walked.iteration.data(1), 0, n);
    const CastLoop cast = cast_loop(program_.type, DType::Float64);
    for (size_t i = 0; i < program_.numbers.size(); ++i)
      cast(at_register[static_cast<size_t>(program_.number_register(i))],
           static_cast<int64_t>(element_size(program_.type)),
           reinterpret_cast<const char*>(&program_.numbers[i]), 0, n);
  }

  void tile(int64_t at, int64_t n, std::vector<char*>& at_register, char* tiles) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].read != Read::Once)
        at_register[i] = const_cast<char*>(inputs_[i].take(at, n, tiles + i * kTileBytes));
    for (size_t i = 0; i < program_.steps.size(); ++i)
      step(program_.steps[i], at_register, at_register[static_cast<size_t>(program_.step_register(i))], n);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int from = program_.outputs[i];
      const DType type = program_.is_bool(from) ? DType::Bool : program_.type;
      const auto to_size = static_cast<int64_t>(element_size(outputs_[i].dtype()));
      cast_loop(outputs_[i].dtype(), type)(outputs_[i].data<char>() + at * to_size, to_size,
                                           at_register[static_cast<size_t>(from)],
                                           static_cast<int64_t>(element_size(type)), n);
    }
  }

  void step(const FusedStep& s, const std::vector<char*>& at_register, char* result, int64_t n) const {
    char* data[4] = {result};
    for (int i = 0; i < s.operand_count; ++i)
      data[i + 1] = at_register[static_cast<size_t>(s.operands[static_cast<size_t>(i)])];
    if (s.formula != FusedStep::kChoose && program_.computes_in(s.formula) != program_.type)
      return wide_step(s, data, n);
    if (s.formula != FusedStep::kChoose)
      return row(static_cast<Formula>(s.formula))
          .loop[static_cast<size_t>(program_.type)](data, 0, n, s.parameters.data());
    const auto choose = where_loops[std::countr_zero(element_size(program_.type))];
    choose(result, reinterpret_cast<const bool*>(data[1]), data[2], 1, data[3], 1, n);
  }

  // As the operators themselves do it: operands to float32, and what is computed back.
  void wide_step(const FusedStep& s, char* const* data, int64_t n) const {
    alignas(64) float tiles[4][kTile];
    const auto narrow = static_cast<int64_t>(element_size(program_.type));
    char* wide[4] = {s.gives_bool ? data[0] : reinterpret_cast<char*>(tiles[0])};
    for (int i = 1; i <= s.operand_count; ++i) {
      wide[i] = reinterpret_cast<char*>(tiles[i]);
      cast_loop(DType::Float32, program_.type)(wide[i], sizeof(float), data[i], narrow, n);
    }
    row(static_cast<Formula>(s.formula))
        .loop[static_cast<size_t>(DType::Float32)](wide, 0, n, s.parameters.data());
    if (!s.gives_bool) cast_loop(program_.type, DType::Float32)(data[0], narrow, wide[0], sizeof(float), n);
  }

  const FusedProgram& program_;
  std::span<const Tensor> outputs_;
  std::vector<Input> inputs_;
};

}  // namespace

DType FusedProgram::computes_in(int formula) const {
  const bool has_own = row(static_cast<Formula>(formula)).loop[static_cast<size_t>(type)];
  return has_own || !is_reduced_float(type) ? type : DType::Float32;
}

bool FusedProgram::has_loop(int formula) const {
  return row(static_cast<Formula>(formula)).loop[static_cast<size_t>(computes_in(formula))];
}

bool FusedProgram::is_bool(int reg) const {
  const auto r = static_cast<size_t>(reg);
  if (r < input_bool.size()) return input_bool[r];
  const size_t first_step = input_bool.size() + numbers.size();
  return r >= first_step && steps[r - first_step].gives_bool;
}

void run_fused(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  const int64_t numel = outputs[0].numel();
  if (numel == 0) return;
  const Run run(program, inputs, outputs);
  const auto steps = static_cast<int64_t>(program.steps.size());
  const int64_t grain = std::max<int64_t>(kTile, kGrainSize / (1 + steps) / kTile * kTile);
  const int64_t tiles = (numel + kTile - 1) / kTile;
  parallel_for(0, tiles, grain / kTile,
               [&](int64_t b, int64_t e) { run.range(b * kTile, std::min(numel, e * kTile)); });
}

}  // namespace rushlight::cpu
