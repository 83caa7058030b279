#include "core/scalar.h"

#include <cmath>
#include <limits>

namespace rushlight {

Scalar Scalar::operator-() const {
  switch (kind_) {
    case Kind::Bool:
    case Kind::Int:
      return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(value_.i)));
    case Kind::UInt:
      return Scalar(-to<double>());
    case Kind::Float:
      return Scalar(-value_.d);
    default:
      return Scalar(complex128(-value_.z[0], -value_.z[1]));
  }
}

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::UInt:
      return DType::UInt64;
    case Kind::Float:
      return get_default_dtype();
    default:
      return complex_dtype(get_default_dtype());
  }
}

bool Scalar::operator==(const Scalar& other) const {
  if (is_complex() || other.is_complex()) return to<complex128>() == other.to<complex128>();
  if (is_floating() || other.is_floating()) return to_double() == other.to_double();
  if (kind_ == Kind::UInt || other.kind_ == Kind::UInt)
    return kind_ == other.kind_ && value_.i == other.value_.i;
  return value_.i == other.value_.i;
}

void Scalar::check_fits(DType t) const {
  auto fail = [&] {
    if (is_special(t)) RL_FAIL("value cannot be converted to type ", dtype_name(t), " without overflow");
    static constexpr std::string_view names[kDTypeCount] = {"bool",
                                                            "uint8_t",
                                                            "int8_t",
                                                            "int16_t",
                                                            "int",
                                                            "int64_t",
                                                            "uint16_t",
                                                            "uint32_t",
                                                            "uint64_t",
                                                            "c10::Half",
                                                            "c10::BFloat16",
                                                            "float",
                                                            "double",
                                                            "c10::complex<float>",
                                                            "c10::complex<double>",
                                                            "Float8_e5m2",
                                                            "Float8_e4m3fn",
                                                            "Float8_e5m2fnuz",
                                                            "Float8_e4m3fnuz",
                                                            "Float8_e8m0fnu",
                                                            "c10::complex<c10::Half>"};
    RL_FAIL("value cannot be converted to type ", names[static_cast<int>(t)], " without overflow");
  };
  if (t == DType::Bool) return;
  if (is_complex() && !rushlight::is_complex(t)) {
    if (value_.z[1] != 0) fail();
  }
  visit_dtype(StorageTypes{}, t, "check_fits", [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (is_floating() || is_complex()) {
        const double d = to_double();
        // NaN and infinity have no integer; of negative numbers only integers wrap in unsigned types.
        const double low = static_cast<double>(std::numeric_limits<T>::min());
        if (!(d >= low && d <= static_cast<double>(std::numeric_limits<T>::max()))) fail();
      } else if (kind_ == Kind::UInt) {
        if (static_cast<uint64_t>(value_.i) > static_cast<uint64_t>(std::numeric_limits<T>::max())) fail();
      } else if constexpr (sizeof(T) < 8) {
        const int64_t high = static_cast<int64_t>(std::numeric_limits<T>::max());
        const int64_t low = std::is_signed_v<T> ? static_cast<int64_t>(std::numeric_limits<T>::min()) : -high;
        if (value_.i < low || value_.i > high) fail();
      }
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Half> ||
                         std::is_same_v<T, complex64>) {
      const double limit =
          std::is_same_v<T, Half> ? 65504.0 : static_cast<double>(std::numeric_limits<float>::max());
      auto overflows = [&](double d) { return std::isfinite(d) && std::fabs(d) > limit; };
      if (is_complex() ? overflows(value_.z[0]) || overflows(value_.z[1]) : overflows(to_double())) fail();
    }
  });
}

std::string to_string(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return s.to<bool>() ? "True" : "False";
    case Scalar::Kind::Int:
      return str(s.to<int64_t>());
    case Scalar::Kind::UInt:
      return str(s.to<uint64_t>());
    case Scalar::Kind::Float:
      return str(s.to_double());
    default: {
      const auto z = s.to<complex128>();
      return str("(", z.real(), z.imag() < 0 ? "" : "+", z.imag(), "j)");
    }
  }
}

}  // namespace rushlight
