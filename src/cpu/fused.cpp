#include "cpu/fused.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/parallel.h"
#include "cpu/buffer.h"
#include "cpu/iterator.h"
#include "cpu/pointwise.h"
#include "cpu/reduce.h"
#include "cpu/softmax.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kTile = 512, kRowsTile = 8192;

// Elements of a tile; whole rows where a program has some.
int64_t tile_of(const FusedProgram& program) {
  return program.row ? std::max<int64_t>(1, kRowsTile / program.row) * program.row : kTile;
}

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
  Input(const Tensor& t, const Dims& whole, DType wanted)
      : cast(cast_loop(wanted, t.dtype())), size(static_cast<int64_t>(element_size(wanted))) {
    if (t.numel() == 1) {
      read = Read::Once, data = t.data<char>();
    } else if (t.dtype() == wanted && t.sizes() == IntList(whole) && t.is_contiguous()) {
      read = Read::InPlace, data = t.data<char>();
    } else {
      const Tensor order = empty_tensor(whole, DType::Bool);  // its layout is what counts
      walked.emplace(order, t);
      data = walked->iteration.data(1);
      if (walked->iteration.is_scalar(1))
        read = Read::Once;
      else if (t.dtype() == wanted && walked->iteration.is_linear(1, size))
        read = Read::InPlace;
    }
  }
  const char* take(int64_t at, int64_t n, char* tile) const {
    if (read == Read::InPlace) return data + at * size;
    char* to = tile;
    for_each_row(walked->iteration, 1, at, n, [&](char* from, int64_t stride, int64_t count) {
      cast(to, size, from, stride, count);
      to += count * size;
    });
    return tile;
  }

  std::optional<Walked> walked;  // where the elements lie neither in order nor at one place
  CastLoop cast;
  int64_t size;
  const char* data = nullptr;
  Read read = Read::Gathered;
};

class Run {
 public:
  Run(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : program_(program), outputs_(outputs), tile_(tile_of(program)) {
    inputs_.reserve(inputs.size());
    Dims rows = program.shape;
    if (program.row) rows.back() = 1;
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(inputs[i], program.input_by_row[i] ? rows : program.shape,
                           program.input_bool[i] ? DType::Bool : program.type);
  }

  // Elements [begin, end) of the outputs.
  void range(int64_t begin, int64_t end) const {
    const size_t registers = static_cast<size_t>(program_.step_register(program_.steps.size()));
    const int64_t span = std::min(tile_, end - begin);
    const size_t bytes = static_cast<size_t>((span + 7) / 8) * 64;
    constexpr size_t kRepeated = 3;  // operands of one step that repeat a number along rows
    const Buffer memory(static_cast<int64_t>((registers + kRepeated) * bytes));
    char* const tiles = memory.as<char>();
    std::vector<char*> at_register(registers + kRepeated);
    for (size_t r = 0; r < at_register.size(); ++r) at_register[r] = tiles + r * bytes;
    fill_constant(at_register, span);
    for (int64_t at = begin; at < end; at += tile_)
      tile(at, std::min(tile_, end - at), at_register, tiles, bytes);
  }

 private:
  // What does not depend on the position: numbers, and inputs of one element.
  void fill_constant(const std::vector<char*>& at_register, int64_t n) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].read == Read::Once)
        inputs_[i].cast(at_register[i], inputs_[i].size, inputs_[i].data, 0, n);
    const CastLoop cast = cast_loop(program_.type, DType::Float64);
    for (size_t i = 0; i < program_.numbers.size(); ++i)
      cast(at_register[static_cast<size_t>(program_.number_register(i))],
           static_cast<int64_t>(element_size(program_.type)),
           reinterpret_cast<const char*>(&program_.numbers[i]), 0, n);
  }

  void tile(int64_t at, int64_t n, std::vector<char*>& at_register, char* tiles, size_t bytes) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].read != Read::Once)
        at_register[i] = const_cast<char*>(inputs_[i].take(by_row(i, at), by_row(i, n), tiles + i * bytes));
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (program_.outputs[i] >= program_.step_register(0))
        at_register[static_cast<size_t>(program_.outputs[i])] = result_at(i, at);
    for (size_t i = 0; i < program_.steps.size(); ++i)
      step(program_.steps[i], at_register, at_register[static_cast<size_t>(program_.step_register(i))], n);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const auto from = static_cast<size_t>(program_.outputs[i]);
      if (program_.outputs[i] < program_.step_register(0))
        std::memcpy(result_at(i, at), at_register[from],
                    static_cast<size_t>(by_row(from, n)) * element_size(outputs_[i].dtype()));
    }
  }

  // Where a tile of an output lies: steps write there at once.
  char* result_at(size_t output, int64_t at) const {
    return outputs_[output].data<char>() + by_row(static_cast<size_t>(program_.outputs[output]), at) *
                                               static_cast<int64_t>(element_size(outputs_[output].dtype()));
  }

  void step(const FusedStep& s, const std::vector<char*>& at_register, char* result, int64_t n) const {
    char* data[4] = {result};
    for (int i = 0; i < s.operand_count; ++i)
      data[i + 1] = at_register[static_cast<size_t>(s.operands[static_cast<size_t>(i)])];
    if (s.reduces()) return reduce_rows(s, data[1], result, n / program_.row);
    if (s.is_softmax())
      return softmax(data[1], result, {n / program_.row, program_.row, 1},
                     s.formula == FusedStep::kLogSoftmax, program_.type);
    if (s.by_row) n /= program_.row;
    if (repeats_rows(s)) return repeat_step(s, data, at_register.data() + at_register.size() - 3, n);
    compute(s, data, 0, n);
  }

  // One formula; bit i of `scalars`: operand i is one number.
  void compute(const FusedStep& s, char* const* data, unsigned scalars, int64_t n) const {
    if (s.formula != FusedStep::kChoose && program_.computes_in(s.formula) != program_.type)
      return wide_step(s, data, scalars, n);
    if (s.formula != FusedStep::kChoose)
      return row(static_cast<Formula>(s.formula))
          .loop[static_cast<size_t>(program_.type)](data, scalars, n, s.parameters.data());
    const auto choose = where_loops[std::countr_zero(element_size(program_.type))];
    choose(data[0], reinterpret_cast<const bool*>(data[1]), data[2], scalars & 2 ? 0 : 1, data[3],
           scalars & 4 ? 0 : 1, n);
  }

  bool repeats_rows(const FusedStep& s) const {
    return !s.by_row && program_.row &&
           std::any_of(s.operands.begin(), s.operands.begin() + s.operand_count,
                       [&](int reg) { return program_.is_by_row(reg); });
  }

  // A step over elements some of whose operands have one number a row. Long rows take it as it is, of short
  // ones it is repeated first, so that one call does for all rows of a tile.
  void repeat_step(const FusedStep& s, char* const* data, char* const* repeated, int64_t n) const {
    constexpr int64_t kLongRow = 128;
    const auto item = static_cast<int64_t>(element_size(program_.type));
    char* part[4] = {data[0], data[1], data[2], data[3]};
    int64_t step[4] = {(s.gives_bool ? 1 : item) * program_.row};
    unsigned scalars = 0;
    for (int i = 1; i <= s.operand_count; ++i) {
      const int reg = s.operands[static_cast<size_t>(i) - 1];
      step[i] = (program_.is_bool(reg) ? 1 : item) * program_.row;
      if (!program_.is_by_row(reg)) continue;
      if (program_.row < kLongRow) {
        spread(data[i], repeated[i - 1], n / program_.row);
        part[i] = repeated[i - 1];
      } else {
        step[i] = item;
        scalars |= 1u << (i - 1);
      }
    }
    if (!scalars) return compute(s, part, 0, n);
    for (int64_t row = 0; row < n / program_.row; ++row) {
      compute(s, part, scalars, program_.row);
      for (int i = 0; i <= s.operand_count; ++i) part[i] += step[i];
    }
  }

  void reduce_rows(const FusedStep& s, const void* from, void* to, int64_t rows) const {
    const ReduceOp op = s.formula == FusedStep::kSum   ? ReduceOp::Sum
                        : s.formula == FusedStep::kMax ? ReduceOp::Max
                                                       : ReduceOp::Min;
    ReduceNest nest;
    nest.in = from, nest.out = to;
    nest.kept = Dims{rows}, nest.kept_in = Dims{program_.row}, nest.kept_out = Dims{1};
    nest.reduced = Dims{program_.row}, nest.reduced_in = Dims{1};
    nest.outputs = rows, nest.inputs_per_output = program_.row;
    ReduceParams parameters;
    parameters.divisor = s.divisor;
    reduce_kernel(op, program_.type, "sum").run(nest, 0, rows, parameters, nullptr);
  }

  void spread(const char* from, char* to, int64_t rows) const {
    switch (element_size(program_.type)) {
      case 2:
        return spread_as<uint16_t>(from, to, rows);
      case 4:
        return spread_as<uint32_t>(from, to, rows);
      default:
        return spread_as<uint64_t>(from, to, rows);
    }
  }
  template <class T>
  void spread_as(const char* from, char* to, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i)
      std::fill_n(reinterpret_cast<T*>(to) + i * program_.row, program_.row,
                  reinterpret_cast<const T*>(from)[i]);
  }

  // As the operators themselves do it: operands to float32, and what is computed back.
  void wide_step(const FusedStep& s, char* const* data, unsigned scalars, int64_t n) const {
    alignas(64) float tiles[4][kTile];
    const auto narrow = static_cast<int64_t>(element_size(program_.type)), given = s.gives_bool ? 1 : narrow;
    for (int64_t at = 0; at < n; at += kTile) {
      const int64_t count = std::min(kTile, n - at);
      char* const result = data[0] + at * given;
      char* wide[4] = {s.gives_bool ? result : reinterpret_cast<char*>(tiles[0])};
      for (int i = 1; i <= s.operand_count; ++i) {
        const bool scalar = scalars >> (i - 1) & 1;
        wide[i] = reinterpret_cast<char*>(tiles[i]);
        cast_loop(DType::Float32, program_.type)(wide[i], sizeof(float), data[i] + (scalar ? 0 : at * narrow),
                                                 narrow, scalar ? 1 : count);
      }
      cpu::row(static_cast<Formula>(s.formula))
          .loop[static_cast<size_t>(DType::Float32)](wide, scalars, count, s.parameters.data());
      if (!s.gives_bool)
        cast_loop(program_.type, DType::Float32)(result, narrow, wide[0], sizeof(float), count);
    }
  }

  // A number of elements, or where they begin, in a register.
  int64_t by_row(size_t reg, int64_t n) const {
    return program_.is_by_row(static_cast<int>(reg)) ? n / program_.row : n;
  }

  const FusedProgram& program_;
  std::span<const Tensor> outputs_;
  const int64_t tile_;
  std::vector<Input> inputs_;
};

}  // namespace

DType FusedProgram::computes_in(int formula) const {
  const bool has_own = cpu::row(static_cast<Formula>(formula)).loop[static_cast<size_t>(type)];
  return has_own || !is_reduced_float(type) ? type : DType::Float32;
}

bool FusedProgram::has_loop(int formula) const {
  return cpu::row(static_cast<Formula>(formula)).loop[static_cast<size_t>(computes_in(formula))];
}

int FusedProgram::append(Formula formula, std::initializer_list<int> operands,
                         std::initializer_list<Scalar> parameters) {
  FusedStep s;
  s.formula = static_cast<int>(formula);
  s.operand_count = static_cast<int>(operands.size());
  s.gives_bool = kFormulaInfo[s.formula].result == FormulaResult::Bool;
  std::copy(operands.begin(), operands.end(), s.operands.begin());
  const PackedParameters packed(parameters, computes_in(s.formula));
  std::memcpy(s.parameters.data(), packed.data(), s.parameters.size());
  steps.push_back(s);
  return step_register(steps.size() - 1);
}

int FusedProgram::append_choice(int condition, int chosen, int otherwise) {
  FusedStep s;
  s.operands = {condition, chosen, otherwise};
  s.operand_count = 3;
  steps.push_back(s);
  return step_register(steps.size() - 1);
}

bool FusedProgram::is_bool(int reg) const {
  const auto r = static_cast<size_t>(reg);
  if (r < input_bool.size()) return input_bool[r];
  const size_t first_step = input_bool.size() + numbers.size();
  return r >= first_step && steps[r - first_step].gives_bool;
}

bool FusedProgram::is_by_row(int reg) const {
  const auto r = static_cast<size_t>(reg);
  if (r < input_by_row.size()) return input_by_row[r];
  const size_t first_step = input_bool.size() + numbers.size();
  return r >= first_step && steps[r - first_step].by_row;
}

void run_fused(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  int64_t numel = 1;
  for (const int64_t size : program.shape) numel *= size;
  if (numel == 0) return;
  const Run run(program, inputs, outputs);
  const auto steps = static_cast<int64_t>(program.steps.size());
  const int64_t tile = tile_of(program), tiles = (numel + tile - 1) / tile,
                grain = std::max<int64_t>(1, kGrainSize / (1 + steps) / tile);
  parallel_for(0, tiles, grain,
               [&](int64_t b, int64_t e) { run.range(b * tile, std::min(numel, e * tile)); });
}

}  // namespace rushlight::cpu
