// Element types: the enumeration, their C++ types, properties and PyTorch's promotion rules.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/half.h"

namespace rushlight {

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

// name, C++ type, PyTorch's name. Order is the index into kernel tables; append only.
#define RL_FORALL_DTYPES(_)                              \
  _(Bool, bool, "bool")                                  \
  _(UInt8, uint8_t, "uint8")                             \
  _(Int8, int8_t, "int8")                                \
  _(Int16, int16_t, "int16")                             \
  _(Int32, int32_t, "int32")                             \
  _(Int64, int64_t, "int64")                             \
  _(UInt16, uint16_t, "uint16")                          \
  _(UInt32, uint32_t, "uint32")                          \
  _(UInt64, uint64_t, "uint64")                          \
  _(Float16, Half, "float16")                            \
  _(BFloat16, BFloat16, "bfloat16")                      \
  _(Float32, float, "float32")                           \
  _(Float64, double, "float64")                          \
  _(Complex64, complex64, "complex64")                   \
  _(Complex128, complex128, "complex128")                \
  _(Float8_e5m2, Float8_e5m2, "float8_e5m2")             \
  _(Float8_e4m3fn, Float8_e4m3fn, "float8_e4m3fn")       \
  _(Float8_e5m2fnuz, Float8_e5m2fnuz, "float8_e5m2fnuz") \
  _(Float8_e4m3fnuz, Float8_e4m3fnuz, "float8_e4m3fnuz") \
  _(Float8_e8m0fnu, Float8_e8m0fnu, "float8_e8m0fnu")    \
  _(Complex32, complex32, "complex32")

// Types in which no kernel computes: name, bytes of an element, whether it is signed, PyTorch's name. Kernel
// tables don't know them; their tensors carry kSpecialElements. Note [Quantised tensors] in core/quantizer.h
#define RL_FORALL_SPECIAL_DTYPES(_) \
  _(QUInt8, 1, false, "quint8")     \
  _(QInt8, 1, true, "qint8")        \
  _(QInt32, 4, true, "qint32")      \
  _(QUInt4x2, 1, false, "quint4x2") \
  _(QUInt2x4, 1, false, "quint2x4") \
  _(Bits1x8, 1, false, "bits1x8")   \
  _(Bits2x4, 1, false, "bits2x4")   \
  _(Bits4x2, 1, false, "bits4x2")   \
  _(Bits8, 1, false, "bits8")       \
  _(Bits16, 2, false, "bits16")     \
  _(UInt1, 1, false, "uint1")       \
  _(UInt2, 1, false, "uint2")       \
  _(UInt3, 1, false, "uint3")       \
  _(UInt4, 1, false, "uint4")       \
  _(UInt5, 1, false, "uint5")       \
  _(UInt6, 1, false, "uint6")       \
  _(UInt7, 1, false, "uint7")       \
  _(Int1, 1, true, "int1")          \
  _(Int2, 1, true, "int2")          \
  _(Int3, 1, true, "int3")          \
  _(Int4, 1, true, "int4")          \
  _(Int5, 1, true, "int5")          \
  _(Int6, 1, true, "int6")          \
  _(Int7, 1, true, "int7")          \
  _(Float4_e2m1fn_x2, 1, true, "float4_e2m1fn_x2")

enum class DType : uint8_t {
#define RL_ENUM(name, ...) name,
  RL_FORALL_DTYPES(RL_ENUM) RL_FORALL_SPECIAL_DTYPES(RL_ENUM)
#undef RL_ENUM

  // libtorch's names
  Byte = UInt8,
  Char = Int8,
  Short = Int16,
  Int = Int32,
  Long = Int64,
  Half = Float16,
  Float = Float32,
  Double = Float64,
  ComplexHalf = Complex32,
  ComplexFloat = Complex64,
  ComplexDouble = Complex128,
};
constexpr int kDTypeCount = 21;     // that kernels know
constexpr int kAllDTypeCount = 46;  // and special ones
constexpr bool is_special(DType t) { return static_cast<int>(t) >= kDTypeCount; }
constexpr bool is_quantized(DType t) { return t >= DType::QUInt8 && t <= DType::QUInt2x4; }

// Number categories in promotion order: a higher category wins over a lower one. What is special takes no
// part in promotion.
enum class Category : uint8_t { Bool, Integral, Floating, Complex, Special };

namespace detail {
struct DTypeInfo {
  uint8_t size;
  Category category;
  std::string_view name;
};
extern const DTypeInfo dtype_infos[kAllDTypeCount];
}  // namespace detail

inline size_t element_size(DType t) { return detail::dtype_infos[static_cast<int>(t)].size; }
inline Category category_of(DType t) { return detail::dtype_infos[static_cast<int>(t)].category; }
// "float32"
inline std::string_view dtype_name(DType t) { return detail::dtype_infos[static_cast<int>(t)].name; }
std::string_view legacy_name(DType t);  // "Float", "Long", ... as PyTorch's error messages spell them
std::string_view cpp_name(DType t);     // "float", "long int", ... as others of its messages do
inline std::string to_string(DType t) { return std::string(dtype_name(t)); }

inline bool is_bool(DType t) { return t == DType::Bool; }
inline bool is_integral(DType t) { return category_of(t) == Category::Integral; }  // without bool
inline bool is_integral_or_bool(DType t) { return category_of(t) <= Category::Integral; }
inline bool is_floating(DType t) { return category_of(t) == Category::Floating; }
inline bool is_complex(DType t) { return category_of(t) == Category::Complex; }
inline bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }
inline bool is_float8(DType t) { return t >= DType::Float8_e5m2 && t <= DType::Float8_e8m0fnu; }
inline bool is_reduced_float(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
bool is_signed(DType t);

// float64 for complex128, and so on; the type itself when it is not complex.
DType real_dtype(DType t);
DType complex_dtype(DType t);
// The type PyTorch's reductions and transcendental kernels compute in: float for half types.
DType compute_dtype(DType t);

DType get_default_dtype();
void set_default_dtype(DType t);

// The smallest type both fit in, by PyTorch's table. Throws for float8 mixes and for uint16/32/64 mixes
// without a rule.
DType promote_types(DType a, DType b);
// Whether a result of type `from` may be written into `to` without losing its category (out= and in-place
// rule).
inline bool can_cast(DType from, DType to) {
  return category_of(from) <= category_of(to) && !(to == DType::Bool && from != DType::Bool);
}

template <class T>
struct dtype_of_t;
#define RL_TRAIT(name, type, text) \
  template <>                      \
  struct dtype_of_t<type> : std::integral_constant<DType, DType::name> {};
RL_FORALL_DTYPES(RL_TRAIT)
#undef RL_TRAIT
template <class T>
constexpr DType dtype_of = dtype_of_t<T>::value;

// The type a kernel computes in for elements of type T.
template <class T>
struct compute_type_t {
  using type = T;
};
template <>
struct compute_type_t<Half> {
  using type = float;
};
template <>
struct compute_type_t<BFloat16> {
  using type = float;
};
template <int M, int B, bool F, bool U>
struct compute_type_t<Float8<M, B, F, U>> {
  using type = float;
};
template <>
struct compute_type_t<Float8_e8m0fnu> {
  using type = float;
};
template <>
struct compute_type_t<complex32> {
  using type = complex64;
};
template <class T>
using compute_type = typename compute_type_t<T>::type;

template <class T>
constexpr bool is_complex_v =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128> || std::is_same_v<T, complex32>;
template <class T>
constexpr bool is_reduced_v = !std::is_same_v<T, compute_type<T>>;
template <class T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || (is_reduced_v<T> && !is_complex_v<T>);

template <class... Ts>
struct TypeList {};
using IntegralTypes = TypeList<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using FloatTypes = TypeList<float, double, Half, BFloat16>;
using ComplexTypes = TypeList<complex64, complex128>;
namespace detail {
template <class... L>
struct concat;
template <class... A>
struct concat<TypeList<A...>> {
  using type = TypeList<A...>;
};
template <class... A, class... B, class... Rest>
struct concat<TypeList<A...>, TypeList<B...>, Rest...> : concat<TypeList<A..., B...>, Rest...> {};
}  // namespace detail
template <class... L>
using Concat = typename detail::concat<L...>::type;
using RealTypes = Concat<IntegralTypes, FloatTypes>;
using NumberTypes = Concat<RealTypes, ComplexTypes>;
using AllTypes = Concat<TypeList<bool>, NumberTypes>;
using StorageTypes =
    Concat<AllTypes,
           TypeList<Float8_e5m2, Float8_e4m3fn, Float8_e5m2fnuz, Float8_e4m3fnuz, Float8_e8m0fnu, complex32>>;

// Apart, so that what builds the text is not compiled into kernels.
[[noreturn, gnu::cold]] void refuse_dtype(std::string_view op, DType t);

// Calls f(T{}) with the C++ type of `t`, or fails with PyTorch's wording: "op" not implemented for 'Half'.
template <class... Ts, class F>
auto visit_dtype(TypeList<Ts...>, DType t, std::string_view op, F&& f) {
  using R = std::common_type_t<decltype(f(Ts{}))...>;
  if constexpr (std::is_void_v<R>) {
    if (!((t == dtype_of<Ts> && (f(Ts{}), true)) || ...)) refuse_dtype(op, t);
  } else {
    R result{};
    if (!((t == dtype_of<Ts> && ((result = f(Ts{})), true)) || ...)) refuse_dtype(op, t);
    return result;
  }
}

// Numeric conversion with C++ semantics extended to complex (imaginary part dropped) and half types.
template <class To, class From>
inline To convert(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, complex32>) {
    return convert<To>(static_cast<complex64>(value));
  } else if constexpr (std::is_same_v<To, complex32>) {
    return complex32(convert<complex64>(value));
  } else if constexpr (is_complex_v<From> && !is_complex_v<To>) {
    if constexpr (std::is_same_v<To, bool>)
      return value.real() != 0 || value.imag() != 0;
    else
      return convert<To>(value.real());
  } else if constexpr (is_complex_v<To>) {
    using Part = typename To::value_type;
    if constexpr (is_complex_v<From>)
      return To(static_cast<Part>(value.real()), static_cast<Part>(value.imag()));
    else
      return To(convert<Part>(value), Part(0));
  } else if constexpr (is_reduced_v<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_reduced_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_unsigned_v<To> &&
                       !std::is_same_v<To, bool>) {
    return static_cast<To>(static_cast<int64_t>(value));  // negative values wrap as on PyTorch's CPU
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace rushlight
