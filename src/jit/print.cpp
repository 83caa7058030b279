#include <cmath>

#include "jit/text.h"
#include "jit/words.h"

namespace rushlight::jit {
namespace {

class Printer {
 public:
  explicit Printer(const Graph& graph) : g_(graph) {}

  std::string run() {
    out_ = str("rushlight graph ", kTextVersion, "\n");
    for (const Symbol& s : g_.symbols)
      out_ += str("symbol ", s.name, " = ", s.example, " in [", s.lower, ", ",
                  s.upper == INT64_MAX ? std::string("inf") : str(s.upper), "]\n");
    out_ += "graph(";
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      if (i) out_ += ", ";
      value(g_.inputs[i], true);
    }
    out_ += ") {\n";
    for (const Node& node : g_.nodes) statement(node);
    out_ += "  return (";
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      if (i) out_ += ", ";
      if (!g_.outputs[i].name.empty()) out_ += g_.outputs[i].name + ": ";
      value(g_.outputs[i].value, false);
    }
    out_ += ")\n}\n";
    return std::move(out_);
  }

 private:
  void value(ValueId id, bool with_type) {
    const ValueInfo& v = g_.values[id];
    out_ += '%';
    out_ += v.name;
    if (!with_type || v.type.kind == Type::Kind::Unknown) return;
    if (v.type.is_tensor() && !v.type.has_sizes && !is_input(id)) return;  // follows from the schema
    out_ += ": ";
    out_ += g_.type_text(v.type);
  }
  bool is_input(ValueId id) const { return std::ranges::find(g_.inputs, id) != g_.inputs.end(); }

  void statement(const Node& node) {
    out_ += "  ";
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (i) out_ += ", ";
      if (node.results[i] == kNoValue)
        out_ += '_';
      else
        value(node.results[i], true);
    }
    if (!node.results.empty()) out_ += " = ";
    out_ += node.name();
    out_ += '(';
    if (node.is_constant() || node.is_state())
      text(node.constant);
    else if (node.op)
      arguments(node);
    else
      for (size_t i = 0; i < node.arguments.size(); ++i) {
        if (i) out_ += ", ";
        argument(node.arguments[i]);
      }
    out_ += ')';
    if (!node.source.empty()) {
      out_ += "  # ";
      for (const char c : node.source) out_ += c == '\n' || c == '\r' ? ' ' : c;
    }
    out_ += '\n';
  }

  // Positional ones as far as they differ from the defaults, then the others by name.
  void arguments(const Node& node) {
    const auto& parameters = node.op->schema.parameters;
    auto is_default = [&](size_t i) {
      return (parameters[i].has_default || parameters[i].type == Tag::Generator) &&
             node.arguments[i] == argument_of(parameters[i].default_value);
    };
    size_t positional = 0;
    for (size_t i = 0; i < parameters.size() && !parameters[i].keyword_only; ++i)
      if (!is_default(i)) positional = i + 1;
    bool first = true;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i >= positional && is_default(i)) continue;
      if (!first) out_ += ", ";
      first = false;
      if (i >= positional) out_ += str(parameters[i].name, "=");
      argument(node.arguments[i]);
    }
  }

  void argument(const Argument& a) {
    std::visit([&](const auto& content) { literal(content); }, a.content);
  }
  void literal(std::monostate) { out_ += "None"; }
  void literal(const Use& use) {
    if (use.id == kNoValue)
      out_ += "None";
    else
      value(use.id, false);
  }
  void literal(bool b) { out_ += b ? "True" : "False"; }
  void literal(int64_t i) { out_ += str(i); }
  void literal(double d) {
    if (std::isnan(d)) {
      out_ += "nan";
      return;
    }
    const std::string digits = str(d);
    out_ += digits;
    if (digits.find_first_of(".ein") == std::string::npos) out_ += ".0";
  }
  void literal(const complex128& z) {
    out_ += '(';
    literal(z.real());
    if (!std::signbit(z.imag()) || std::isnan(z.imag())) out_ += '+';
    literal(z.imag());
    out_ += "j)";
  }
  void literal(const std::string& s) { text(s); }
  void literal(DType t) { out_ += dtype_name(t); }
  void literal(const Device& d) { text(to_string(d)); }
  void literal(Layout l) { out_ += kLayouts[static_cast<int>(l)]; }
  void literal(MemoryFormat f) { out_ += kMemoryFormats[static_cast<int>(f)]; }
  void literal(const List& list) {
    out_ += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      std::visit([&](const auto& element) { literal(element); }, list[i]);
    }
    out_ += ']';
  }
  void text(std::string_view s) { out_ += quoted(s); }

  const Graph& g_;
  std::string out_;
};

}  // namespace

std::string quoted(std::string_view s) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\x";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string print_graph(const Graph& graph) { return Printer(graph).run(); }

}  // namespace rushlight::jit
