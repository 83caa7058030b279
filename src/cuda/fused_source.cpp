#include "cuda/fused_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "cuda/kernels.h"
#include "cuda/memory.h"

namespace rushlight::cuda {
namespace {

using cpu::FusedProgram;
using cpu::FusedStep;

struct FormulaText {
  const char *name, *expression;
};
constexpr FormulaText kFormulaText[] = {
#define RL_TEXT(name, inputs, parameters, types, result, ...) {#name, #__VA_ARGS__},
    RL_FORALL_FORMULAS(RL_TEXT)
#undef RL_TEXT
};
bool is_special(int formula) {
  return formula >= static_cast<int>(Formula::TruncDivide) && formula <= static_cast<int>(Formula::NanToNum);
}

// The types of formulas/ and core/half.h.
const char* type_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "bool";
    case DType::UInt8:
      return "uint8_t";
    case DType::Int8:
      return "int8_t";
    case DType::Int16:
      return "int16_t";
    case DType::UInt16:
      return "uint16_t";
    case DType::Int32:
      return "int32_t";
    case DType::UInt32:
      return "uint32_t";
    case DType::Int64:
      return "int64_t";
    case DType::UInt64:
      return "uint64_t";
    case DType::Float16:
      return "Half";
    case DType::BFloat16:
      return "BFloat16";
    case DType::Float32:
      return "float";
    default:
      return "double";
  }
}

// A number as a register of the program holds it.
std::string literal(double value, DType type) {
  if (type == DType::Float16) value = static_cast<float>(Half(static_cast<float>(value)));
  if (type == DType::BFloat16) value = static_cast<float>(BFloat16(static_cast<float>(value)));
  if (value != value) return "kNan<Compute>";
  if (std::isinf(value)) return value > 0 ? "kInf<Compute>" : "-kInf<Compute>";
  char digits[40];
  std::snprintf(digits, sizeof digits, "Compute(%a)", value);
  return digits;
}

constexpr int kVectorBytes = 16;
constexpr int64_t kManyThreads = int64_t{1} << 17;  // that fill a device: from then on each takes a vector

enum class Read : uint8_t { Value, Once, Linear, Gathered };

// How an input lies beside the order in which its elements, or its rows, are counted.
struct Input {
  Input(const Tensor& t, const Dims& shape) : dtype(t.dtype()) {
    if (t.is_cpu()) {
      Operand operand;
      operand.dtype = dtype, operand.is_value = true;
      std::memcpy(operand.value, t.data_ptr(), t.itemsize());
      value = source_of<double>(operand).value;
      read = Read::Value;
      return;
    }
    data = static_cast<const char*>(t.data_ptr());
    for (size_t d = shape.size(); d-- > 0;) add(t, static_cast<int64_t>(d - shape.size()), shape[d]);
    if (sizes.empty() || (sizes.size() == 1 && strides[0] == 0))
      read = Read::Once;
    else if (sizes.size() == 1 && strides[0] == 1)
      read = Read::Linear;
  }
  uint64_t word() const {
    return read == Read::Value ? std::bit_cast<uint64_t>(value) : reinterpret_cast<uint64_t>(data);
  }
  bool is_aligned(int width) const {
    const auto bytes = static_cast<uint64_t>(width) * element_size(dtype);
    return reinterpret_cast<uint64_t>(data) % std::min<uint64_t>(bytes, kVectorBytes) == 0;
  }

  DType dtype;
  std::vector<int64_t> sizes, strides;  // in elements, the innermost first; what can be walked as one is one
  const char* data = nullptr;
  double value = 0;
  Read read = Read::Gathered;

 private:
  // The dimension `d`, counted from the end, of `size` positions.
  void add(const Tensor& t, int64_t d, int64_t size) {
    if (size == 1) return;
    const bool repeats = t.dim() + d < 0 || t.size(d) == 1;
    const int64_t stride = repeats ? 0 : t.strides()[static_cast<size_t>(t.dim() + d)];
    if (!sizes.empty() && stride == strides.back() * sizes.back())
      sizes.back() *= size;
    else
      sizes.push_back(size), strides.push_back(stride);
  }
};

class Printer {
 public:
  Printer(const FusedProgram& program, std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : program_(program), outputs_(outputs) {
    Dims rows = program.shape;
    if (program.row) rows.back() = 1;
    for (const int64_t n : program.shape) numel_ *= n;
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.emplace_back(inputs[i], program.input_by_row[i] ? rows : program.shape);
    choose_width();
  }

  FusedLaunch launch() const {
    FusedLaunch made;
    made.key = key();
    for (const Input& input : inputs_) made.arguments.push_back(input.word());
    for (const Tensor& output : outputs_)
      made.arguments.push_back(reinterpret_cast<uint64_t>(output.data_ptr()));
    const int64_t count = program_.row ? numel_ / program_.row : numel_;
    made.arguments.push_back(static_cast<uint64_t>(count));
    const int64_t per_block = program_.row ? threads_ / team_ : threads_ * width_;
    made.blocks = static_cast<unsigned>((count + per_block - 1) / per_block);
    made.threads = static_cast<unsigned>(threads_);
    return made;
  }

  std::string text() {
    print();
    return std::move(text_);
  }

 private:
  template <class... Parts>
  void line(const Parts&... parts) {
    text_ += str(parts..., "\n");
  }

  void choose_width() {
    const auto most = static_cast<int>(kVectorBytes / element_size(program_.type));
    if (program_.row) {
      constexpr uint64_t kFew = 4, kMany = 16, kWarp = 32,
                         kLargestTeam = 1024;  // few, many: elements a thread
      const auto row = static_cast<uint64_t>(program_.row);
      if (program_.row % most == 0) width_ = most;
      team_ = static_cast<int>(std::clamp(std::bit_ceil(row / kFew), uint64_t{4}, kWarp));
      if (row > kMany * kWarp) team_ = static_cast<int>(std::min(std::bit_ceil(row / kMany), kLargestTeam));
      threads_ = team_ > static_cast<int>(kWarp) ? team_ : 128;
    } else if (numel_ / most >= kManyThreads) {
      width_ = most;
    }
  }

  // All that the text depends on.
  std::string key() const {
    std::string all;
    auto add = [&](auto value) { all.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
    add(program_.type), add(program_.row), add(width_), add(is_wide());
    for (const Input& input : inputs_) {
      add(input.dtype), add(input.read), add(input.is_aligned(width_)),
          add(program_.input_by_row[&input - inputs_.data()] != 0);
      if (input.read == Read::Gathered)
        for (size_t d = 0; d < input.sizes.size(); ++d) add(input.sizes[d]), add(input.strides[d]);
    }
    for (const double number : program_.numbers) add(number);
    for (const FusedStep& s : program_.steps) {
      add(s.formula), add(s.divisor), add(s.operands);
      all.append(reinterpret_cast<const char*>(s.parameters.data()), parameter_bytes(s));
    }
    for (const int reg : program_.outputs) add(reg);
    return all;
  }
  size_t parameter_bytes(const FusedStep& s) const {
    return s.formula < 0 ? 0
                         : kFormulaInfo[s.formula].parameters * element_size(compute_dtype(program_.type));
  }
  bool is_wide() const { return numel_ >= int64_t{1} << 31; }

  void print() {
    const bool special = std::ranges::any_of(
        program_.steps, [](const FusedStep& s) { return s.formula >= 0 && is_special(s.formula); });
    line("#include \"cuda/fused_kernel.h\"");
    if (special)
      for (const char* header :
           {"bessel_math", "incomplete_gamma", "polynomial_math", "special_float", "special_math"})
        line("#include \"formulas/", header, ".h\"");
    line("\nnamespace rushlight::cuda {\nusing namespace formulas;\n");
    line("using Element = ", type_of(program_.type), ";");
    line("using Compute = ", type_of(compute_dtype(program_.type)), ";");
    line("using Index = ", is_wide() ? "uint64_t;" : "uint32_t;");
    if (program_.row)
      line("using Row = Rows<", program_.row, ", ", team_, ", ", width_, ">;");
    else
      line("constexpr int kWidth = ", width_, ";");
    print_arguments();
    print_places();
    print_formulas();
    line("inline void work(const Arguments& a, Index first) {");
    program_.row ? print_rows() : print_elements();
    line("}\n\n}  // namespace rushlight::cuda\n\nusing namespace rushlight::cuda;");
    if (program_.row)
      line("RL_ROWS_KERNEL(", threads_, ", ", team_, ")");
    else
      line("RL_ELEMENTS_KERNEL(", threads_, ", ", width_, ")");
  }

  void print_arguments() {
    line("\nstruct Arguments {");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      if (input.read == Read::Value)
        line("  double in", i, ";");
      else
        line("  const ", type_of(input.dtype), "* in", i, ";");
    }
    for (size_t i = 0; i < outputs_.size(); ++i) line("  ", type_of(outputs_[i].dtype()), "* out", i, ";");
    line("  uint64_t count;  // of ", program_.row ? "rows" : "elements", "\n};\n");
  }

  // Where the elements of inputs lie that are not in order.
  void print_places() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].read != Read::Gathered) continue;
      const auto &sizes = inputs_[i].sizes, &strides = inputs_[i].strides;
      line("inline int64_t place", i, "(Index index) {\n  int64_t offset = 0;");
      for (size_t d = 0; d < sizes.size(); ++d) {
        const bool last = d + 1 == sizes.size();
        const std::string size = str("Index{", sizes[d], "}");
        if (strides[d])
          line("  offset += static_cast<int64_t>(index", last ? "" : " % " + size, ") * ", strides[d], ";");
        if (!last) line("  index /= ", size, ";");
      }
      line("  return offset;\n}\n");
    }
  }

  void print_formulas() {
    std::array<bool, kFormulaCount> printed{};
    for (const FusedStep& s : program_.steps) {
      if (s.formula < 0 || std::exchange(printed[static_cast<size_t>(s.formula)], true)) continue;
      const FormulaText& f = kFormulaText[s.formula];
      line("inline ", s.gives_bool ? "bool " : "Compute ", f.name,
           "_(Compute x, [[maybe_unused]] Compute y, [[maybe_unused]] Compute z,\n"
           "    [[maybe_unused]] const Compute* p) {\n  using T = Compute;\n  return ",
           f.expression, ";\n}\n");
    }
  }

  // --- what registers are called

  std::string name(int reg) const {
    const auto r = static_cast<size_t>(reg);
    if (r >= inputs_.size() && reg < program_.step_register(0)) {
      const double number = program_.numbers[r - inputs_.size()];
      return literal(number, program_.type);
    }
    return str("r", reg);
  }
  const char* holds(int reg) const { return program_.is_bool(reg) ? "bool" : "Compute"; }
  bool is_uniform(int reg) const {  // one number for all elements
    const auto r = static_cast<size_t>(reg);
    return r < inputs_.size() && inputs_[r].read <= Read::Once;
  }
  bool is_number(int reg) const {
    return reg >= static_cast<int>(inputs_.size()) && reg < program_.step_register(0);
  }
  // As a step's operand in a loop over elements.
  std::string at_element(int reg, const char* index) const {
    const bool alone = is_number(reg) || is_uniform(reg) || program_.is_by_row(reg);
    return alone ? name(reg) : name(reg) + index;
  }

  std::string value_of(size_t i, const char* index) const {
    const FusedStep& s = program_.steps[i];
    auto operand = [&](size_t k) { return at_element(s.operands[k], index); };
    if (s.formula == FusedStep::kChoose) return str(operand(0), " ? ", operand(1), " : ", operand(2));
    const int parameters = kFormulaInfo[s.formula].parameters;
    std::string call = str(kFormulaText[s.formula].name, "_(", operand(0));
    for (int k = 1; k < 3; ++k)
      call += k < s.operand_count ? ", " + operand(static_cast<size_t>(k)) : ", Compute(0)";
    call += parameters ? str(", p", program_.step_register(i), ")") : ", nullptr)";
    return s.gives_bool || !is_reduced_float(program_.type) ? call : str("rounded<Element>(", call, ")");
  }

  // Parameters of a step, as its formula takes them.
  void print_parameters(size_t i) {
    const FusedStep& s = program_.steps[i];
    const int parameters = s.formula < 0 ? 0 : kFormulaInfo[s.formula].parameters;
    if (!parameters) return;
    std::string all;
    for (int k = 0; k < parameters; ++k) {
      const auto at = static_cast<size_t>(k);
      double value = 0;
      if (compute_dtype(program_.type) == DType::Float64) {
        std::memcpy(&value, s.parameters.data() + at * sizeof(double), sizeof(double));
      } else {
        float narrow = 0;
        std::memcpy(&narrow, s.parameters.data() + at * sizeof(float), sizeof(float));
        value = narrow;
      }
      all += str(k ? ", " : "", literal(value, compute_dtype(program_.type)));
    }
    line("  const Compute p", program_.step_register(i), "[] = {", all, "};");
  }

  void print_uniform(size_t i) {
    const Input& input = inputs_[i];
    const char* type = holds(static_cast<int>(i));
    const std::string read = str("number<", type, ">(", input.read == Read::Value ? "" : "*", "a.in", i, ")");
    line("  const ", type, " r", i, " = ",
         program_.input_bool[i] ? read : str("rounded<Element>(", read, ")"), ";");
  }

  // Reads `count` elements from `first` on into `to`.
  std::string loading(size_t i, const char* to, int width, const char* first, const char* count) const {
    const Input& input = inputs_[i];
    if (input.read == Read::Linear)
      return str("load<", input.is_aligned(width) ? "true" : "false", ", ", width, ">(", to, ", a.in", i,
                 ", ", first, ", ", count, ");");
    return str("gather<", width, ">(", to, ", a.in", i, ", ", first, ", ", count, ", place", i, ");");
  }
  bool rounds(size_t i) const {
    return !program_.input_bool[i] && is_reduced_float(program_.type) && inputs_[i].dtype != program_.type;
  }

  // --- a pass over elements

  void print_elements() {
    line("  const Index left = static_cast<Index>(a.count) - first;");
    line("  const int count = left < kWidth ? static_cast<int>(left) : kWidth;");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_uniform(static_cast<int>(i))) {
        print_uniform(i);
        continue;
      }
      const std::string to = str("r", i);
      line("  ", holds(static_cast<int>(i)), " ", to, "[kWidth] = {};");
      line("  ", loading(i, to.c_str(), width_, "first", "count"));
      if (rounds(i)) line("  for (auto& value : ", to, ") value = rounded<Element>(value);");
    }
    for (size_t i = 0; i < program_.steps.size(); ++i) print_parameters(i);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const int reg = program_.step_register(i);
      line("  ", holds(reg), " r", reg, "[kWidth];");
    }
    line("  RL_UNROLL\n  for (int k = 0; k < kWidth; ++k) {");
    for (size_t i = 0; i < program_.steps.size(); ++i)
      line("    r", program_.step_register(i), "[k] = ", value_of(i, "[k]"), ";");
    line("  }");
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int reg = program_.outputs[i];
      if (is_number(reg) || is_uniform(reg)) {
        line("  ", holds(reg), " s", i, "[kWidth];\n  for (auto& value : s", i, ") value = ", name(reg), ";");
        line("  store<kWidth>(s", i, ", a.out", i, ", first, count);");
      } else {
        line("  store<kWidth>(r", reg, ", a.out", i, ", first, count);");
      }
    }
  }

  // --- rows

  void print_rows() {
    for (size_t i = 0; i < inputs_.size(); ++i) print_row_input(i);
    for (size_t i = 0; i < program_.steps.size(); ++i) print_parameters(i);
    for (size_t i = 0; i < program_.steps.size(); ++i) print_row_step(i);
    close_loop();
    for (size_t i = 0; i < outputs_.size(); ++i) print_row_output(i);
  }

  void declare(int reg) { line("  ", holds(reg), " r", reg, "[Row::slots][Row::items];"); }

  void print_row_input(size_t i) {
    const int reg = static_cast<int>(i);
    if (is_uniform(reg)) return print_uniform(i);
    if (program_.input_by_row[i]) {
      line("  ", holds(reg), " of_row", i, "[1];");
      line("  ", loading(i, str("of_row", i).c_str(), 1, "first", "1"));
      return line("  const ", holds(reg), " r", i, " = ", rounds(i) ? "rounded<Element>" : "", "(of_row", i,
                  "[0]);");
    }
    declare(reg);
    line("  Row::each_pack([&](int slot, int item, int column, int count) {");
    line("    const Index at = first * ", program_.row, " + column;");
    line("    ", loading(i, str("(r", i, "[slot] + item)").c_str(), width_, "at", "count"));
    line("  });");
    if (rounds(i))
      line("  Row::each([&](int slot, int item) { r", i, "[slot][item] = rounded<Element>(r", i,
           "[slot][item]); });");
  }

  // Steps over elements stand in one loop until one over rows needs all of them.
  void close_loop() {
    if (!std::exchange(in_loop_, false)) return;
    line("  });");
  }

  static const char* operation(int formula) {
    return formula == FusedStep::kSum ? "Sum" : formula == FusedStep::kMax ? "Largest" : "Smallest";
  }

  void print_row_step(size_t i) {
    const FusedStep& s = program_.steps[i];
    const int reg = program_.step_register(i);
    if (s.reduces() || s.is_softmax()) {
      close_loop();
      const std::string whole = whole_row(s.operands[0], reg);
      return s.reduces() ? print_reduction(s, reg, whole) : print_softmax(s, reg, whole);
    }
    if (s.by_row) {
      close_loop();
      return line("  const ", holds(reg), " r", reg, " = ", value_of(i, ""), ";");
    }
    if (!in_loop_) {
      for (size_t later = i; later < program_.steps.size() && is_element_step(later); ++later)
        declare(program_.step_register(later));
      line("  Row::each([&](int slot, int item) {");
      in_loop_ = true;
    }
    line("    r", reg, "[slot][item] = ", value_of(i, "[slot][item]"), ";");
  }
  bool is_element_step(size_t i) const {
    const FusedStep& s = program_.steps[i];
    return !s.reduces() && !s.is_softmax() && !s.by_row;
  }

  // The array of an operand; one number is repeated in one of its own.
  std::string whole_row(int operand, int reg) {
    if (!is_number(operand) && !is_uniform(operand)) return name(operand);
    line("  ", holds(operand), " s", reg, "[Row::slots][Row::items];");
    line("  Row::each([&](int slot, int item) { s", reg, "[slot][item] = ", name(operand), "; });");
    return str("s", reg);
  }

  void print_reduction(const FusedStep& s, int reg, const std::string& of) {
    std::string value = str("Row::reduce<", operation(s.formula), ">(", of, ")");
    if (s.formula == FusedStep::kSum && s.divisor != 1)
      value += str(" / ", literal(s.divisor, compute_dtype(program_.type)));
    line("  const Compute r", reg, " = rounded<Element>(", value, ");");
  }

  // As cuda/softmax.cu: all in the compute type, rounded once.
  void print_softmax(const FusedStep& s, int reg, const std::string& of) {
    const bool logarithm = s.formula == FusedStep::kLogSoftmax;
    declare(reg);
    line("  const Compute m", reg, " = Row::reduce<Largest>(", of, ");");
    line("  Row::each([&](int slot, int item) { r", reg, "[slot][item] = exp(", of, "[slot][item] - m", reg,
         "); });");
    line("  const Compute d", reg, " = ", logarithm ? "log(" : "Compute(1) / (", "Row::reduce<Sum>(r", reg,
         "));");
    const std::string value =
        logarithm ? str(of, "[slot][item] - m", reg, " - d", reg) : str("r", reg, "[slot][item] * d", reg);
    line("  Row::each([&](int slot, int item) { r", reg, "[slot][item] = rounded<Element>(", value, "); });");
  }

  void print_row_output(size_t i) {
    const int reg = program_.outputs[i];
    if (program_.is_by_row(reg))
      return line("  Row::once([&] { a.out", i, "[first] = number<", type_of(outputs_[i].dtype()), ">(",
                  name(reg), "); });");
    const std::string whole = whole_row(reg, static_cast<int>(i));
    line("  Row::each_pack([&](int slot, int item, int column, int count) {");
    line("    store<", width_, ">(", whole, "[slot] + item, a.out", i, ", first * ", program_.row,
         " + column, count);");
    line("  });");
  }

  const FusedProgram& program_;
  std::span<const Tensor> outputs_;
  std::vector<Input> inputs_;
  int64_t numel_ = 1;
  int width_ = 1, team_ = 1, threads_ = 256;
  bool in_loop_ = false;
  std::string text_;
};

}  // namespace

FusedLaunch fused_launch(const FusedProgram& program, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs) {
  return Printer(program, inputs, outputs).launch();
}

std::string fused_source(const FusedProgram& program, std::span<const Tensor> inputs,
                         std::span<const Tensor> outputs) {
  return Printer(program, inputs, outputs).text();
}

}  // namespace rushlight::cuda
