// What options structs are made of: fields with setters, lists that one number fills, named modes.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include "rushlight/tensor.h"

// TORCH_ARG(int64_t, stride) = 1; gives options.stride(2) and options.stride().
#define TORCH_ARG(T, name)                                   \
 public:                                                     \
  inline auto name(const T& new_##name) -> decltype(*this) { \
    this->name##_ = new_##name;                              \
    return *this;                                            \
  }                                                          \
  inline auto name(T&& new_##name) -> decltype(*this) {      \
    this->name##_ = std::move(new_##name);                   \
    return *this;                                            \
  }                                                          \
  inline const T& name() const noexcept { return name##_; }  \
  inline T& name() noexcept { return name##_; }              \
                                                             \
 private:                                                    \
  T name##_ /* NOLINT */

namespace rushlight {

// A choice by name: torch::kMean, torch::kReflect.
class Mode {
 public:
  constexpr Mode(const char* name, const char* enumerator = "") : name_(name), enumerator_(enumerator) {}
  constexpr std::string_view name() const { return name_; }
  constexpr std::string_view enumerator() const { return enumerator_; }  // "kMean"
  std::string text() const { return std::string(name_); }
  friend constexpr bool operator==(Mode a, Mode b) { return a.name_ == b.name_; }

 private:
  std::string_view name_, enumerator_;
};
inline std::string to_string(Mode m) { return m.text(); }

#define RL_MODE(enumerator, name) constexpr Mode enumerator(name, #enumerator);
RL_MODE(kNone, "none")
RL_MODE(kMean, "mean")
RL_MODE(kSum, "sum")
RL_MODE(kBatchMean, "batchmean")
RL_MODE(kZeros, "zeros")
RL_MODE(kConstant, "constant")
RL_MODE(kReflect, "reflect")
RL_MODE(kReplicate, "replicate")
RL_MODE(kCircular, "circular")
RL_MODE(kBorder, "border")
RL_MODE(kReflection, "reflection")
RL_MODE(kNearest, "nearest")
RL_MODE(kNearestExact, "nearest-exact")
RL_MODE(kBilinear, "bilinear")
RL_MODE(kBicubic, "bicubic")
RL_MODE(kTrilinear, "trilinear")
RL_MODE(kArea, "area")
RL_MODE(kLinear, "linear")
RL_MODE(kConv1D, "conv1d")
RL_MODE(kConv2D, "conv2d")
RL_MODE(kConv3D, "conv3d")
RL_MODE(kConvTranspose1D, "conv_transpose1d")
RL_MODE(kConvTranspose2D, "conv_transpose2d")
RL_MODE(kConvTranspose3D, "conv_transpose3d")
RL_MODE(kSigmoid, "sigmoid")
RL_MODE(kTanh, "tanh")
RL_MODE(kReLU, "relu")
RL_MODE(kGELU, "gelu")
RL_MODE(kSiLU, "silu")
RL_MODE(kMish, "mish")
RL_MODE(kLeakyReLU, "leaky_relu")
RL_MODE(kFanIn, "fan_in")
RL_MODE(kFanOut, "fan_out")
RL_MODE(kSame, "same")
RL_MODE(kValid, "valid")
RL_MODE(kMax, "max")
RL_MODE(kLSTM, "lstm")
RL_MODE(kGRU, "gru")
RL_MODE(kRNN_TANH, "rnn_tanh")
RL_MODE(kRNN_RELU, "rnn_relu")
RL_MODE(kEuclidean, "euclidean")
#undef RL_MODE
// As libtorch names the types of these; one type serves them all.
namespace enumtype {
using kNone = Mode;
using kMean = Mode;
using kSum = Mode;
inline std::string get_enum_name(Mode m) { return std::string(m.enumerator()); }
}  // namespace enumtype

// D numbers, or one for all.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  ExpandingArray(const std::vector<T>& list) { assign(list.data(), list.size()); }
  ExpandingArray(IntArrayRef list)
    requires std::is_same_v<T, int64_t>
  {
    assign(list.data(), list.size());
  }
  ExpandingArray(T one) { values_.fill(one); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}
  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const
    requires(!std::is_same_v<T, int64_t>)
  {
    return {values_.data(), D};
  }
  operator IntArrayRef() const
    requires std::is_same_v<T, int64_t>
  {
    return {values_.data(), D};
  }
  size_t size() const { return D; }
  friend std::ostream& operator<<(std::ostream& out, const ExpandingArray& a) {
    if (D == 1) return out << a.values_[0];
    out << "[";
    for (size_t i = 0; i < D; ++i) out << (i ? ", " : "") << a.values_[i];
    return out << "]";
  }

 private:
  void assign(const T* data, size_t n) {
    RL_CHECK(n == D, "Expected ", D, " values, but instead got ", n);
    std::copy_n(data, n, values_.begin());
  }
  std::array<T, D> values_{};
};
// D numbers of which some may be left open.
template <size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
  using Base = ExpandingArray<D, std::optional<T>>;

 public:
  using Base::Base;
  ExpandingArrayWithOptionalElem(T one) : Base(std::optional<T>(one)) {}
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list)
      : Base(std::vector<std::optional<T>>(list.begin(), list.end())) {}
  ExpandingArrayWithOptionalElem(const std::vector<T>& list)
      : Base(std::vector<std::optional<T>>(list.begin(), list.end())) {}
  ExpandingArrayWithOptionalElem(const ExpandingArray<D, T>& all)
      : Base(std::vector<std::optional<T>>((*all).begin(), (*all).end())) {}
  friend std::ostream& operator<<(std::ostream& out, const ExpandingArrayWithOptionalElem& a) {
    if (D != 1) out << "[";
    for (size_t i = 0; i < D; ++i) {
      out << (i ? ", " : "");
      (*a)[i] ? out << *(*a)[i] : out << "None";
    }
    return D != 1 ? out << "]" : out;
  }
};

}  // namespace rushlight
