// Several operators as one pass over memory: a program for tiles that stay in cache. Its steps are the loops
// that the operators themselves run, so results are the same to the last bit. Tiles are elements in order, or
// whole rows where the program reduces along them.
#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "cpu/loops.h"

namespace rushlight::cpu {

// A register holds one tile: of an input, of a number in every element, or of what a step computed.
struct FusedStep {
  // Instead of a formula: operand 0 ? operand 1 : operand 2; and of rows: the sum over `divisor` and extremes
  // of each; its softmax.
  static constexpr int kChoose = -1, kSum = -2, kMax = -3, kMin = -4, kSoftmax = -5, kLogSoftmax = -6;
  bool reduces() const { return formula <= kSum && formula >= kMin; }
  bool is_softmax() const { return formula == kSoftmax || formula == kLogSoftmax; }

  int formula = kChoose;
  double divisor = 1;
  bool by_row = false;            // the result has one element for each row
  std::array<int, 3> operands{};  // registers
  int operand_count = 0;
  bool gives_bool = false;
  alignas(16) std::array<std::byte, 64> parameters{};
};

struct FusedProgram {
  DType type = DType::Float32;  // of registers
  Dims shape;                   // of outputs; those by row have 1 as their last size
  int64_t row = 0;              // elements of a row; 0: there are no steps of rows
  std::vector<bool> input_by_row;
  std::vector<bool> input_bool;  // per input: read as bool, for kChoose
  std::vector<double> numbers;
  std::vector<FusedStep> steps;
  std::vector<int> outputs;  // registers

  int number_register(size_t i) const { return static_cast<int>(input_bool.size() + i); }
  int step_register(size_t i) const { return static_cast<int>(input_bool.size() + numbers.size() + i); }
  bool is_bool(int reg) const;
  bool is_by_row(int reg) const;
  // Formulas without a loop for a half type compute in float32, and round.
  DType computes_in(int formula) const;
  // Appends a step of one formula; the answer is its register.
  int append(Formula formula, std::initializer_list<int> operands,
             std::initializer_list<Scalar> parameters = {});
  // A step that chooses between two registers by a bool one.
  int append_choice(int condition, int chosen, int otherwise);
  bool has_loop(int formula) const;
};

// Inputs of any dtype and strides that broadcast to the program's shape, or to its rows; contiguous outputs.
void run_fused(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

}  // namespace rushlight::cpu
