// Scalar: one number of any category, as Python's bool, int, float and complex.
#pragma once
#include "core/dtype.h"

namespace rushlight {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };  // UInt: an integer above int64's maximum

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::Bool) { value_.i = v; }
  // By the language's own types: int64_t is long on some systems and long long on others.
  Scalar(int v) : Scalar(static_cast<long long>(v)) {}
  Scalar(long v) : Scalar(static_cast<long long>(v)) {}
  Scalar(long long v) : kind_(Kind::Int) { value_.i = v; }
  Scalar(unsigned v) : Scalar(static_cast<long long>(v)) {}
  Scalar(unsigned long v) : Scalar(static_cast<unsigned long long>(v)) {}
  Scalar(unsigned long long v) : kind_(v > INT64_MAX ? Kind::UInt : Kind::Int) {
    value_.i = static_cast<int64_t>(v);
  }
  Scalar(float v) : Scalar(static_cast<double>(v)) {}
  Scalar(double v) : kind_(Kind::Float) { value_.d = v; }
  Scalar(complex64 v) : Scalar(complex128(v)) {}
  Scalar(complex128 v) : kind_(Kind::Complex) { value_.z[0] = v.real(), value_.z[1] = v.imag(); }

  Kind kind() const { return kind_; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::UInt; }
  bool is_floating() const { return kind_ == Kind::Float; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  Category category() const {
    return is_bool()       ? Category::Bool
           : is_integral() ? Category::Integral
           : is_floating() ? Category::Floating
                           : Category::Complex;
  }

  template <class T>
  T to() const {  // unchecked numeric conversion
    switch (kind_) {
      case Kind::Bool:
        return convert<T>(value_.i != 0);
      case Kind::Int:
        return convert<T>(value_.i);
      case Kind::UInt:
        return convert<T>(static_cast<uint64_t>(value_.i));
      case Kind::Float:
        return convert<T>(value_.d);
      default:
        return convert<T>(complex128(value_.z[0], value_.z[1]));
    }
  }
  double to_double() const { return to<double>(); }
  int64_t to_int() const { return to<int64_t>(); }
  // As C++ programs for PyTorch call them.
  bool toBool() const { return to<bool>(); }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }
  float toFloat() const { return to<float>(); }
  double toDouble() const { return to<double>(); }
  bool isFloatingPoint() const { return is_floating(); }
  bool isIntegral(bool include_bool) const { return is_integral() || (include_bool && is_bool()); }
  bool isBoolean() const { return is_bool(); }
  bool isComplex() const { return is_complex(); }
  Scalar operator-() const;
  // "value cannot be converted to type float without overflow" unless the number fits T's range.
  void check_fits(DType t) const;
  bool operator==(const Scalar& other) const;

  // The dtype a Python number stands for: bool, int64, the default dtype or its complex.
  DType dtype() const;

 private:
  union {
    int64_t i;
    double d;
    double z[2];
  } value_;
  Kind kind_;
};

std::string to_string(const Scalar& s);

}  // namespace rushlight
