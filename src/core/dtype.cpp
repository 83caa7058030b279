#include "core/dtype.h"

#include <atomic>

namespace rushlight {
namespace detail {

namespace {
template <class T>
constexpr Category category() {
  if constexpr (std::is_same_v<T, bool>)
    return Category::Bool;
  else if constexpr (is_complex_v<T>)
    return Category::Complex;
  else if constexpr (is_floating_v<T>)
    return Category::Floating;
  else
    return Category::Integral;
}
}  // namespace

const DTypeInfo dtype_infos[kAllDTypeCount] = {
#define RL_INFO(name, type, text) {sizeof(type), category<type>(), text},
    RL_FORALL_DTYPES(RL_INFO)
#undef RL_INFO
#define RL_INFO(name, size, is_signed, text) {size, Category::Special, text},
        RL_FORALL_SPECIAL_DTYPES(RL_INFO)
#undef RL_INFO
};

uint8_t float8_from_float(float value, Float8Format format) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const int m = format.mantissa_bits, exponent_bits = 7 - m;
  const uint8_t nan_code = format.unsigned_zero ? 0x80 : static_cast<uint8_t>(sign | 0x7f);
  const uint8_t infinity_code = static_cast<uint8_t>(((1 << exponent_bits) - 1) << m);
  if (std::isnan(value)) return nan_code;
  // The largest finite code; above its rounding range lie infinity, NaN or itself.
  const uint8_t largest = format.unsigned_zero ? 0x7f
                          : format.finite_only ? 0x7e
                                               : static_cast<uint8_t>(infinity_code - 1);
  const float magnitude = std::fabs(value), top = float8_to_float(largest, format);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  const int lowest = 1 - format.bias;
  const float quantum = std::ldexp(1.0f, std::max(exponent - 1, lowest) - m);
  const float rounded = std::isinf(magnitude) ? magnitude : std::nearbyint(magnitude / quantum) * quantum;
  if (rounded > top) {
    if (format.unsigned_zero) return nan_code;
    return static_cast<uint8_t>(sign | (format.finite_only ? largest : infinity_code));  // e4m3fn saturates
  }
  if (rounded == 0) return format.unsigned_zero ? uint8_t{0} : sign;
  std::frexp(rounded, &exponent);
  const int biased = exponent - 1 + format.bias;
  const int code = biased <= 0
                       ? static_cast<int>(std::ldexp(rounded, m - lowest))
                       : (biased << m) + static_cast<int>(std::ldexp(rounded, m - exponent + 1)) - (1 << m);
  return static_cast<uint8_t>(sign | code);
}

float float8_to_float(uint8_t bits, Float8Format format) {
  const int m = format.mantissa_bits, exponent_bits = 7 - m, all_ones = (1 << exponent_bits) - 1;
  const int exponent = (bits & 0x7f) >> m, mantissa = bits & ((1 << m) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (format.unsigned_zero && bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  if (!format.unsigned_zero && exponent == all_ones) {
    if (!format.finite_only)
      return mantissa ? std::numeric_limits<float>::quiet_NaN()
                      : sign * std::numeric_limits<float>::infinity();
    if (mantissa == (1 << m) - 1) return sign * std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - format.bias - m);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << m)), exponent - format.bias - m);
}

}  // namespace detail

std::string_view legacy_name(DType t) {
  if (is_special(t)) {
    static constexpr std::string_view special[] = {
#define RL_NAME(name, ...) #name,
        RL_FORALL_SPECIAL_DTYPES(RL_NAME)
#undef RL_NAME
    };
    return special[static_cast<int>(t) - kDTypeCount];
  }
  static constexpr std::string_view names[kDTypeCount] = {"Bool",
                                                          "Byte",
                                                          "Char",
                                                          "Short",
                                                          "Int",
                                                          "Long",
                                                          "UInt16",
                                                          "UInt32",
                                                          "UInt64",
                                                          "Half",
                                                          "BFloat16",
                                                          "Float",
                                                          "Double",
                                                          "ComplexFloat",
                                                          "ComplexDouble",
                                                          "Float8_e5m2",
                                                          "Float8_e4m3fn",
                                                          "Float8_e5m2fnuz",
                                                          "Float8_e4m3fnuz",
                                                          "Float8_e8m0fnu",
                                                          "ComplexHalf"};
  return names[static_cast<int>(t)];
}

std::string_view cpp_name(DType t) {
  static constexpr std::string_view names[] = {"bool",
                                               "unsigned char",
                                               "signed char",
                                               "short int",
                                               "int",
                                               "long int",
                                               "short unsigned int",
                                               "unsigned int",
                                               "long unsigned int",
                                               "c10::Half",
                                               "c10::BFloat16",
                                               "float",
                                               "double",
                                               "c10::complex<float>",
                                               "c10::complex<double>"};
  const auto i = static_cast<size_t>(t);
  return i < std::size(names) ? names[i] : dtype_name(t);
}

bool is_signed(DType t) {
  if (is_special(t)) {
    static constexpr bool special[] = {
#define RL_SIGNED(name, size, is_signed, text) is_signed,
        RL_FORALL_SPECIAL_DTYPES(RL_SIGNED)
#undef RL_SIGNED
    };
    return special[static_cast<int>(t) - kDTypeCount];
  }
  return !(t == DType::Bool || t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 ||
           t == DType::UInt64 || t == DType::Float8_e8m0fnu);
}

DType real_dtype(DType t) {
  return t == DType::Complex64    ? DType::Float32
         : t == DType::Complex128 ? DType::Float64
         : t == DType::Complex32  ? DType::Float16
                                  : t;
}

DType complex_dtype(DType t) {
  if (is_complex(t)) return t;
  return t == DType::Float64 ? DType::Complex128 : t == DType::Float16 ? DType::Complex32 : DType::Complex64;
}

DType compute_dtype(DType t) {
  if (t == DType::Complex32) return DType::Complex64;
  return is_floating(t) && t != DType::Float64 ? DType::Float32 : t;
}

static std::atomic<DType> default_dtype{DType::Float32};
DType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  RL_CHECK_TYPE(is_floating(t), "only floating-point types are supported as the default type, got ",
                dtype_name(t));
  default_dtype.store(t, std::memory_order_relaxed);
}

namespace {

// NumPy's rule where PyTorch refuses (uint16, uint32, uint64 mixes): the smallest type that holds both
// ranges.
DType promote_integers(DType a, DType b) {
  const size_t sa = element_size(a), sb = element_size(b);
  if (is_signed(a) == is_signed(b)) return sa >= sb ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (element_size(s) > element_size(u)) return s;
  RL_CHECK(u != DType::UInt64,
           "Promotion of uint64 with signed integers is not supported (no integer type holds both), "
           "attempted to promote ",
           legacy_name(a), " and ", legacy_name(b), "; convert one with .to()");
  return u == DType::UInt8 ? DType::Int16 : u == DType::UInt16 ? DType::Int32 : DType::Int64;
}

}  // namespace

void refuse_dtype(std::string_view op, DType t) {
  RL_NOT_IMPLEMENTED("\"", op, "\" not implemented for '", legacy_name(t), "'");
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  RL_CHECK(!is_quantized(a) && !is_quantized(b),
           "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should "
           "be, offending types: ",
           legacy_name(a), " ", legacy_name(b));
  RL_CHECK(!is_special(a) && !is_special(b), "Promotion for ", legacy_name(is_special(a) ? a : b),
           " is not supported, attempted to promote ", legacy_name(a), " and ", legacy_name(b));
  RL_CHECK(!is_float8(a) && !is_float8(b),
           "Promotion for Float8 Types is not supported, attempted to promote ", legacy_name(a), " and ",
           legacy_name(b));
  const Category ca = category_of(a), cb = category_of(b);
  if (ca == Category::Bool) return b;
  if (cb == Category::Bool) return a;
  if (ca == Category::Complex && cb == Category::Integral) return a;
  if (cb == Category::Complex && ca == Category::Integral) return b;
  if (ca == Category::Complex || cb == Category::Complex)
    return complex_dtype(promote_types(real_dtype(a), real_dtype(b)));
  if (ca != cb) return ca == Category::Floating ? a : b;
  if (ca == Category::Integral) return promote_integers(a, b);
  if (element_size(a) == element_size(b)) return DType::Float32;  // float16 with bfloat16
  return element_size(a) > element_size(b) ? a : b;
}

}  // namespace rushlight
