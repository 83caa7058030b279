// What operators did when an archive was written, where that was something else than today.
#include "frontend/torchscript/arguments.h"

namespace rushlight::jit {
namespace {

bool is_whole(const IValue* v) {
  if (!v || v->isNone()) return true;
  if (v->isTensor()) return !is_floating(v->toTensor().dtype()) && !is_complex(v->toTensor().dtype());
  return v->isInt() || v->isBool();
}
// Quotients of whole numbers were whole.
IValue divide(std::string_view name, Arguments& a) {
  if (!a.has_tensors()) return call(find_callee("aten", "div"), a);
  if (is_whole(&a[0]) && is_whole(&a[1]) && is_whole(a.find(SIZE_MAX, "out")))
    a.named.emplace_back("rounding_mode", IValue("trunc"));
  return call_table(name, a);
}
// Of whole numbers, full gave floats.
IValue full(Arguments& a) {
  const IValue *dtype = a.find(2, "dtype"), *out = a.find(SIZE_MAX, "out");
  if ((!dtype || dtype->isNone()) && !out && a.size() > 1) a.values[1] = IValue(to_real(a[1]));
  return call_table("aten::full", a);
}
// A hundred numbers were the default.
IValue spaced(std::string_view name, Arguments& a) {
  const IValue* steps = a.find(2, "steps");
  if (!steps)
    a.values.insert(a.values.begin() + 2, IValue(int64_t{100}));
  else if (steps->isNone() && a.size() > 2)
    a.values[2] = IValue(int64_t{100});
  return call_table(name, a);
}

struct Upgrade {
  std::string_view name;
  int64_t last;  // the version of archives up to which it did so
  std::string_view then;
};
constexpr Upgrade kUpgrades[] = {{"aten::div", 3, "then::div"},
                                 {"aten::div_", 3, "then::div_"},
                                 {"aten::full", 4, "then::full"},
                                 {"aten::linspace", 7, "then::linspace"},
                                 {"aten::logspace", 8, "then::logspace"}};

}  // namespace

std::string_view name_then(std::string_view name, int64_t version) {
  for (const Upgrade& upgrade : kUpgrades)
    if (name == upgrade.name && version <= upgrade.last) return upgrade.then;
  return name;
}

std::vector<NamedBuiltin> builtins_then() {
  return {
      {"then::div", [](Arguments& a) { return divide("aten::div", a); }},
      {"then::div_", [](Arguments& a) { return divide("aten::div_", a); }},
      {"then::full", full},
      {"then::linspace", [](Arguments& a) { return spaced("aten::linspace", a); }},
      {"then::logspace", [](Arguments& a) { return spaced("aten::logspace", a); }},
      {"aten::Size", [](Arguments& a) { return a[0]; }},
  };
}

}  // namespace rushlight::jit
