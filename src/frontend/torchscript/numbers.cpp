// What TorchScript computes with numbers; with a tensor among the arguments the table's operators are meant.
#include <algorithm>
#include <climits>
#include <cmath>
#include <numbers>
#include <numeric>

#include "frontend/torchscript/arguments.h"
#include "frontend/torchscript/instance.h"

namespace rushlight::jit {

bool truth(const IValue& v) {
  if (v.isBool()) return v.toBool();
  if (v.isTensor()) return v.toTensor().item().toBool();
  if (v.isInt() || v.isDouble()) return v.toDouble() != 0;
  RL_FAIL_AS(Type, "a condition is a ", v.kind());
}
int64_t to_integer(const IValue& v) {
  if (v.isInt()) return v.toInt();
  if (v.isTensor()) return v.toTensor().item().to_int();
  if (v.isBool()) return v.toBool();
  if (v.isString()) {
    const std::string& text = v.toStringRef();
    char* end = nullptr;
    errno = 0;
    const int64_t n = std::strtoll(text.c_str(), &end, 10);
    RL_CHECK_VALUE(!text.empty() && !*end && !errno, "invalid literal for int() with base 10: '", text, "'");
    return n;
  }
  const double d = v.toDouble();
  return d >= -0x1p63 && d < 0x1p63 ? static_cast<int64_t>(d) : INT64_MIN;  // what processors make of it
}
double to_real(const IValue& v) {
  if (v.isTensor()) return v.toTensor().item().to_double();
  if (v.isBool()) return v.toBool();
  if (v.isString()) {
    const std::string& text = v.toStringRef();
    char* end = nullptr;
    const double d = std::strtod(text.c_str(), &end);
    RL_CHECK_VALUE(!text.empty() && !*end, "could not convert string to float: '", text, "'");
    return d;
  }
  return v.toDouble();
}

namespace {

bool is_whole(const IValue& v) { return v.isInt() || v.isBool(); }
int64_t whole(const IValue& v) { return v.isBool() ? v.toBool() : v.toInt(); }
std::complex<double> to_complex(const IValue& v) {
  return v.isComplexDouble() ? v.toComplexDouble() : std::complex<double>(to_real(v));
}
}  // namespace

int compare(const IValue& a, const IValue& b) {
  if (a.isString()) {
    const int c = a.toStringRef().compare(b.toStringRef());
    return c < 0 ? -1 : c > 0;
  }
  if (is_whole(a) && is_whole(b)) return whole(a) < whole(b) ? -1 : whole(a) > whole(b);
  if (a.isList() || a.isTuple()) {
    const auto& x = a.isList() ? a.toListRef() : a.toTupleRef().items;
    const auto& y = b.isList() ? b.toListRef() : b.toTupleRef().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (const int c = compare(x[i], y[i])) return c;
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  const double x = to_real(a), y = to_real(b);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

namespace {

// Integers wrap, as PyTorch's do.
int64_t wrapped(uint64_t v) { return static_cast<int64_t>(v); }

template <class Ints, class Reals, class Complexes>
IValue combine(Arguments& a, Ints ints, Reals reals, Complexes complexes) {
  if (is_whole(a[0]) && is_whole(a[1])) return IValue(ints(whole(a[0]), whole(a[1])));
  if (a[0].isComplexDouble() || a[1].isComplexDouble())
    return IValue(complexes(to_complex(a[0]), to_complex(a[1])));
  return IValue(reals(to_real(a[0]), to_real(a[1])));
}
int64_t floor_divide(int64_t a, int64_t b) {
  RL_CHECK(b != 0, "integer division or modulo by zero");
  if (b == -1) return wrapped(-static_cast<uint64_t>(a));
  return a / b - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}
int64_t floor_remainder(int64_t a, int64_t b) {
  RL_CHECK(b != 0, "integer division or modulo by zero");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
double float_remainder(double a, double b) { return std::fmod(b + std::fmod(a, b), b); }
IValue quotient_and_remainder(Arguments& a) {
  if (is_whole(a[0]) && is_whole(a[1]))
    return IValue(
        std::make_tuple(floor_divide(whole(a[0]), whole(a[1])), floor_remainder(whole(a[0]), whole(a[1]))));
  const double x = to_real(a[0]), y = to_real(a[1]);
  RL_CHECK(y != 0, "ZeroDivisionError: float divmod()");
  const double rest = float_remainder(x, y);
  return IValue(std::make_tuple((x - rest) / y, rest));
}
IValue rounded(Arguments& a, double (*round)(double)) {
  if (is_whole(a[0])) return a[0];
  const double d = to_real(a[0]);
  RL_CHECK(std::isfinite(d), "Cannot convert float ", d, " to integer");
  return IValue(to_integer(IValue(round(d))));
}
IValue mantissa_and_exponent(Arguments& a) {
  int exponent = 0;
  const double mantissa = std::frexp(to_real(a[0]), &exponent);
  return IValue(std::make_tuple(mantissa, int64_t{exponent}));
}
IValue fraction_and_whole(Arguments& a) {
  double whole_part = 0;
  const double fraction = std::modf(to_real(a[0]), &whole_part);
  return IValue(std::make_tuple(fraction, whole_part));
}
IValue concatenated(const IValue& a, const IValue& b) {
  IValue::List items = a.toListRef();
  items.insert(items.end(), b.toListRef().begin(), b.toListRef().end());
  return IValue(std::move(items), a.list_body()->elements);
}
IValue repeated(const IValue& list, int64_t times) {
  IValue::List items;
  const size_t size = list.toListRef().size();
  RL_CHECK(times <= 0 || size == 0 || static_cast<size_t>(times) < (size_t{1} << 32) / size,
           "the list becomes too long");
  for (int64_t i = 0; i < times; ++i)
    items.insert(items.end(), list.toListRef().begin(), list.toListRef().end());
  return IValue(std::move(items), list.list_body()->elements);
}

IValue add(Arguments& a) {
  if (a[0].isString()) return IValue(a[0].toStringRef() + a[1].toStringRef());
  if (a[0].isList()) return concatenated(a[0], a[1]);
  return combine(
      a, [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); },
      std::plus<>(), std::plus<>());
}
// Lists grow in place.
IValue add_in_place(Arguments& a) {
  if (!a[0].isList()) return add(a);
  const IValue::List more = a[1].toListRef();
  auto& items = a[0].list_body()->items;
  items.insert(items.end(), more.begin(), more.end());
  return a[0];
}
IValue subtract(Arguments& a) {
  return combine(
      a, [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); },
      std::minus<>(), std::minus<>());
}
IValue multiply(Arguments& a) {
  if (a[0].isList()) return repeated(a[0], a[1].toInt());
  if (a[1].isList()) return repeated(a[1], a[0].toInt());
  if (a[0].isString()) {
    std::string out;
    RL_CHECK(a[1].toInt() <= 0 ||
                 a[0].toStringRef().size() < (size_t{1} << 32) / static_cast<size_t>(a[1].toInt()),
             "the text becomes too long");
    for (int64_t i = 0; i < a[1].toInt(); ++i) out += a[0].toStringRef();
    return IValue(std::move(out));
  }
  return combine(
      a, [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); },
      std::multiplies<>(), std::multiplies<>());
}
IValue divide(Arguments& a) {
  if (a[0].isComplexDouble() || a[1].isComplexDouble()) return IValue(to_complex(a[0]) / to_complex(a[1]));
  return IValue(to_real(a[0]) / to_real(a[1]));
}
IValue power(Arguments& a) {
  if (a[0].isComplexDouble() || a[1].isComplexDouble())
    return IValue(std::pow(to_complex(a[0]), to_complex(a[1])));
  return IValue(std::pow(to_real(a[0]), to_real(a[1])));
}
bool equal(const IValue& a, const IValue& b) {
  if (a.isObject() && b.isObject() && a.toObject()->type == b.toObject()->type) {
    const IValue *x = find_attribute(*a.toObject(), "name"), *y = find_attribute(*b.toObject(), "name");
    if (a.toObject()->type->kind == ClassType::Kind::Enum) return x && y && *x == *y;
  }
  return a == b;
}
template <class Better>
IValue extreme(Arguments& a, Better better) {
  if (a.size() == 2 && a[0].isScalar()) {
    if (is_whole(a[0]) == is_whole(a[1])) return better(compare(a[1], a[0])) ? a[1] : a[0];
    return IValue(better(compare(a[1], a[0])) ? to_real(a[1]) : to_real(a[0]));
  }
  if (a.size() == 2) {  // element by element
    IValue::List items = a[0].toListRef();
    for (size_t i = 0; i < std::min(items.size(), a[1].toListRef().size()); ++i)
      if (better(compare(a[1].toListRef()[i], items[i]))) items[i] = a[1].toListRef()[i];
    return IValue(std::move(items));
  }
  const IValue::List& items = a[0].toListRef();
  RL_CHECK_VALUE(!items.empty(), "max() or min() of an empty list");
  const IValue* best = &items[0];
  for (const IValue& item : items)
    if (better(compare(item, *best))) best = &item;
  return *best;
}
IValue sum(Arguments& a) {
  Arguments pair{{IValue(int64_t{0}), IValue()}, {}};
  for (const IValue& item : a[0].toListRef()) {
    pair.values[1] = item;
    pair.values[0] = add(pair);
  }
  return pair[0];
}
IValue absolute(Arguments& a) {
  if (a[0].isTensor()) return call_table("aten::abs", a[0]);
  if (a[0].isComplexDouble()) return IValue(std::abs(a[0].toComplexDouble()));
  return is_whole(a[0]) ? IValue(std::abs(whole(a[0]))) : IValue(std::abs(to_real(a[0])));
}

#define RL_REAL(name) {"aten::" #name, [](Arguments& a) { return IValue(std::name(to_real(a[0]))); }, true}
#define RL_REALS(name) \
  {"aten::" #name, [](Arguments& a) { return IValue(std::name(to_real(a[0]), to_real(a[1]))); }, true}
#define RL_TEST(name) \
  {"aten::" #name, [](Arguments& a) { return IValue(bool(std::name(to_real(a[0])))); }, true}
#define RL_LOGIC(name, sign, ints)                                                          \
  {"aten::" #name,                                                                          \
   [](Arguments& a) {                                                                       \
     return a[0].isBool() && a[1].isBool() ? IValue(bool(a[0].toBool() sign a[1].toBool())) \
                                           : IValue(whole(a[0]) ints whole(a[1]));          \
   },                                                                                       \
   true}
#define RL_ORDER(name, test)            \
  {"aten::" #name,                      \
   [](Arguments& a) {                   \
     const int c = compare(a[0], a[1]); \
     return IValue(test);               \
   },                                   \
   true}

}  // namespace

std::vector<NamedBuiltin> number_builtins() {
  return {
      {"aten::add", add, true},
      {"aten::add_", add_in_place, true},
      {"aten::sub", subtract, true},
      {"aten::rsub",
       [](Arguments& a) {
         std::swap(a.values[0], a.values[1]);
         return subtract(a);
       },
       true},
      {"aten::mul", multiply, true},
      {"aten::mul_", multiply, true},
      {"aten::div", divide, true},
      {"aten::true_divide", divide, true},
      {"aten::floordiv",
       [](Arguments& a) {
         return combine(
             a, floor_divide, [](double x, double y) { return std::floor(x / y); }, std::divides<>());
       },
       true},
      {"aten::remainder",
       [](Arguments& a) { return combine(a, floor_remainder, float_remainder, std::minus<>()); }, true},
      {"aten::divmod", quotient_and_remainder},
      {"aten::frexp", mantissa_and_exponent, true},
      {"aten::modf", fraction_and_whole},
      {"aten::ldexp",
       [](Arguments& a) {
         const int64_t exponent = std::clamp<int64_t>(to_integer(a[1]), INT_MIN, INT_MAX);
         return IValue(std::ldexp(to_real(a[0]), static_cast<int>(exponent)));
       },
       true},
      {"aten::pow", power, true},
      {"aten::neg",
       [](Arguments& a) {
         if (is_whole(a[0])) return IValue(wrapped(-static_cast<uint64_t>(whole(a[0]))));
         return a[0].isComplexDouble() ? IValue(-a[0].toComplexDouble()) : IValue(-to_real(a[0]));
       },
       true},
      {"aten::eq", [](Arguments& a) { return IValue(equal(a[0], a[1])); }, true},
      {"aten::ne", [](Arguments& a) { return IValue(!equal(a[0], a[1])); }, true},
      RL_ORDER(lt, c < 0),
      RL_ORDER(le, c <= 0),
      RL_ORDER(gt, c == 1),
      RL_ORDER(ge, c == 0 || c == 1),
      RL_LOGIC(__and__, &&, &),
      RL_LOGIC(__or__, ||, |),
      RL_LOGIC(__xor__, !=, ^),
      {"aten::__lshift__",
       [](Arguments& a) {
         return IValue(wrapped(static_cast<uint64_t>(a[0].toInt()) << (a[1].toInt() & 63)));
       },
       true},
      {"aten::__rshift__", [](Arguments& a) { return IValue(a[0].toInt() >> (a[1].toInt() & 63)); }, true},
      {"aten::bitwise_not", [](Arguments& a) { return IValue(~whole(a[0])); }, true},
      {"aten::__not__", [](Arguments& a) { return IValue(!truth(a[0])); }},
      {"aten::logical_not", [](Arguments& a) { return IValue(!truth(a[0])); }, true},
      {"aten::__is__", [](Arguments& a) { return IValue(a[0].is(a[1])); }},
      {"aten::__isnot__", [](Arguments& a) { return IValue(!a[0].is(a[1])); }},
      {"aten::abs", absolute, true},
      {"prim::abs", absolute},
      {"python::abs", absolute},
      {"aten::ceil", [](Arguments& a) { return rounded(a, std::ceil); }, true},
      {"aten::floor", [](Arguments& a) { return rounded(a, std::floor); }, true},
      {"aten::trunc", [](Arguments& a) { return IValue(to_integer(a[0])); }, true},
      {"aten::round",
       [](Arguments& a) {
         if (a.size() < 2) return IValue(std::nearbyint(to_real(a[0])));
         const double scale = std::pow(10.0, to_real(a[1]));
         return IValue(std::nearbyint(to_real(a[0]) * scale) / scale);
       },
       true},
      RL_REAL(sqrt),
      RL_REAL(exp),
      RL_REAL(expm1),
      RL_REAL(log2),
      RL_REAL(log10),
      RL_REAL(log1p),
      RL_REAL(sin),
      RL_REAL(cos),
      RL_REAL(tan),
      RL_REAL(asin),
      RL_REAL(acos),
      RL_REAL(atan),
      RL_REAL(sinh),
      RL_REAL(cosh),
      RL_REAL(tanh),
      RL_REAL(asinh),
      RL_REAL(acosh),
      RL_REAL(atanh),
      RL_REAL(erf),
      RL_REAL(erfc),
      RL_REAL(lgamma),
      RL_REALS(fmod),
      RL_REALS(atan2),
      RL_REALS(copysign),
      RL_TEST(isnan),
      RL_TEST(isinf),
      RL_TEST(isfinite),
      {"aten::gamma", [](Arguments& a) { return IValue(std::tgamma(to_real(a[0]))); }, true},
      {"aten::fabs", [](Arguments& a) { return IValue(std::abs(to_real(a[0]))); }, true},
      {"aten::log",
       [](Arguments& a) {
         return IValue(a.size() == 2 ? std::log(to_real(a[0])) / std::log(to_real(a[1]))
                                     : std::log(to_real(a[0])));
       },
       true},
      {"aten::gcd", [](Arguments& a) { return IValue(std::gcd(a[0].toInt(), a[1].toInt())); }, true},
      {"aten::degrees", [](Arguments& a) { return IValue(to_real(a[0]) * 180 / std::numbers::pi); }, true},
      {"aten::radians", [](Arguments& a) { return IValue(to_real(a[0]) * std::numbers::pi / 180); }, true},
      {"aten::factorial",
       [](Arguments& a) { return IValue(to_integer(IValue(std::tgamma(to_real(a[0]) + 1)))); }, true},
      {"aten::sum", sum, true},
      {"aten::any",
       [](Arguments& a) {
         return IValue(std::ranges::any_of(a[0].toListRef(), [](const IValue& v) { return truth(v); }));
       },
       true},
      {"aten::all",
       [](Arguments& a) {
         return IValue(std::ranges::all_of(a[0].toListRef(), [](const IValue& v) { return truth(v); }));
       },
       true},
      {"prim::max",
       [](Arguments& a) {
         return a.has_tensors() ? call_table("aten::max", a) : extreme(a, [](int c) { return c == 1; });
       }},
      {"prim::min",
       [](Arguments& a) {
         return a.has_tensors() ? call_table("aten::min", a) : extreme(a, [](int c) { return c < 0; });
       }},
      {"aten::Int", [](Arguments& a) { return IValue(to_integer(a[0])); }},
      {"aten::IntImplicit", [](Arguments& a) { return IValue(to_integer(a[0])); }},
      {"aten::Float", [](Arguments& a) { return IValue(to_real(a[0])); }},
      {"aten::FloatImplicit", [](Arguments& a) { return IValue(to_real(a[0])); }},
      {"aten::Bool", [](Arguments& a) { return IValue(truth(a[0])); }},
      {"aten::Complex",
       [](Arguments& a) {
         return IValue(to_complex(a[0]) +
                       (a.size() > 1 ? to_complex(a[1]) * std::complex<double>(0, 1) : 0.0));
       }},
      {"python::int", [](Arguments& a) { return IValue(to_integer(a[0])); }},
      {"python::float", [](Arguments& a) { return IValue(to_real(a[0])); }},
      {"python::bool",
       [](Arguments& a) {
         if (a[0].isString()) return IValue(!a[0].toStringRef().empty());
         return IValue(a[0].isList() ? !a[0].toListRef().empty() : truth(a[0]));
       }},
      {"python::complex",
       [](Arguments& a) {
         return IValue(to_complex(a[0]) +
                       (a.size() > 1 ? to_complex(a[1]) * std::complex<double>(0, 1) : 0.0));
       }},
      {"aten::__range_length",
       [](Arguments& a) {
         const int64_t begin = a[0].toInt(), end = a[1].toInt(), step = a[2].toInt();
         RL_CHECK(step != 0, "range() arg 3 must not be zero");
         if (step > 0) return IValue(begin < end ? 1 + (end - 1 - begin) / step : int64_t{0});
         return IValue(begin > end ? 1 + (begin - 1 - end) / -step : int64_t{0});
       }},
      {"aten::__derive_index",
       [](Arguments& a) { return IValue(a[0].toInt() * a[2].toInt() + a[1].toInt()); }},
  };
}

}  // namespace rushlight::jit
