// _foreach_*: one operator over every tensor of a list.
#include <deque>
#include <string>

#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using Tensors = std::vector<Tensor>;

void check_lengths(size_t a, size_t b) {
  RL_CHECK(a > 0 || b > 0, "Tensor list must have at least one tensor.");
  RL_CHECK(a == b, "Tensor lists must have the same number of tensors, got ", static_cast<int64_t>(a),
           " and ", static_cast<int64_t>(b));
}
void check_scalars(size_t tensors, size_t scalars) {
  RL_CHECK(tensors > 0, "Tensor list must have at least one tensor.");
  RL_CHECK(tensors == scalars, "Tensor list must have same number of elements as scalar list.");
}
void check_not_empty(TensorList list) {
  RL_CHECK(!list.empty(), "Tensor list must have at least one tensor.");
}

void check_scalar_tensor(const Tensor& other) {
  RL_CHECK(other.dim() == 0 && other.numel() == 1, "scalar tensor expected to be 0 dim but it has ",
           other.dim(), " dimensions and ", other.numel(), " elements.");
}
// The factors of a list of operations, given as the elements of one tensor.
Tensor factors(TensorList self, const Tensor& scalars) {
  RL_CHECK(scalars.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", scalars.dim(),
           " instead.");
  RL_CHECK(scalars.numel() == static_cast<int64_t>(self.size()),
           "Expected length of scalars to match input of length ", static_cast<int64_t>(self.size()),
           " but got ", scalars.numel(), " instead.");
  return ops::contiguous(scalars, MemoryFormat::Contiguous);
}

// f(i) for each position, collected or written into self.
template <class F>
Tensors collect(TensorList self, F f) {
  check_not_empty(self);
  Tensors out;
  out.reserve(self.size());
  for (size_t i = 0; i < self.size(); ++i) out.push_back(f(i));
  return out;
}
template <class F>
void each(TensorList self, F f) {
  check_not_empty(self);
  for (size_t i = 0; i < self.size(); ++i) f(i);
}

template <auto& H>
struct Unary {
  static Tensors fresh(const Call&, TensorList a) {
    return collect(a, [&](size_t i) { return H(a[i]); });
  }
  static void inplace(const Call&, TensorList a) {
    each(a, [&](size_t i) { H.inplace(a[i]); });
  }
};

// Operators of two tensors, with an optional factor behind (alpha).
template <auto& H, class... Tail>
struct Binary {
  static Tensors list(const Call&, TensorList a, TensorList b, const Tail&... tail) {
    check_lengths(a.size(), b.size());
    return collect(a, [&](size_t i) { return H(a[i], b[i], tail...); });
  }
  static void list_inplace(const Call&, TensorList a, TensorList b, const Tail&... tail) {
    check_lengths(a.size(), b.size());
    each(a, [&](size_t i) { H.inplace(a[i], b[i], tail...); });
  }
  static Tensors scalar(const Call&, TensorList a, const Scalar& s) {
    const Tensor number = wrapped_number(s);
    return collect(a, [&](size_t i) { return H(a[i], number); });
  }
  static void scalar_inplace(const Call&, TensorList a, const Scalar& s) {
    const Tensor number = wrapped_number(s);
    each(a, [&](size_t i) { H.inplace(a[i], number); });
  }
  static Tensors tensor(const Call&, TensorList a, const Tensor& other, const Tail&... tail) {
    check_scalar_tensor(other);
    return collect(a, [&](size_t i) { return H(a[i], other, tail...); });
  }
  static void tensor_inplace(const Call&, TensorList a, const Tensor& other, const Tail&... tail) {
    check_scalar_tensor(other);
    each(a, [&](size_t i) { H.inplace(a[i], other, tail...); });
  }
  static Tensors ints(const Call&, TensorList a, IntList s) {
    check_scalars(a.size(), s.size());
    return collect(a, [&](size_t i) { return H(a[i], wrapped_number(Scalar(s[i]))); });
  }
  static void ints_inplace(const Call&, TensorList a, IntList s) {
    check_scalars(a.size(), s.size());
    each(a, [&](size_t i) { H.inplace(a[i], wrapped_number(Scalar(s[i]))); });
  }
  static Tensors scalars(const Call&, TensorList a, FloatList s) {
    check_scalars(a.size(), s.size());
    return collect(a, [&](size_t i) { return H(a[i], wrapped_number(s[i])); });
  }
  static void scalars_inplace(const Call&, TensorList a, FloatList s) {
    check_scalars(a.size(), s.size());
    each(a, [&](size_t i) { H.inplace(a[i], wrapped_number(s[i])); });
  }
};

template <auto& H>
struct Ternary {
  static Tensors scalar(const Call&, TensorList a, TensorList b, TensorList d, const Scalar& value) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    return collect(a, [&](size_t i) { return H(a[i], b[i], d[i], value); });
  }
  static void scalar_inplace(const Call&, TensorList a, TensorList b, TensorList d, const Scalar& value) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    each(a, [&](size_t i) { H.inplace(a[i], b[i], d[i], value); });
  }
  static Tensors scalars(const Call&, TensorList a, TensorList b, TensorList d, FloatList values) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size()),
        check_scalars(a.size(), values.size());
    return collect(a, [&](size_t i) { return H(a[i], b[i], d[i], Scalar(values[i])); });
  }
  static void scalars_inplace(const Call&, TensorList a, TensorList b, TensorList d, FloatList values) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size()),
        check_scalars(a.size(), values.size());
    each(a, [&](size_t i) { H.inplace(a[i], b[i], d[i], Scalar(values[i])); });
  }
};

template <auto& H>
struct TernaryPacked {
  static Tensors fresh(const Call&, TensorList a, TensorList b, TensorList d, const Tensor& scalars) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    const Tensor values = factors(a, scalars);
    return collect(
        a, [&](size_t i) { return H(a[i], b[i], d[i], read_scalar(values, static_cast<int64_t>(i))); });
  }
  static void inplace(const Call&, TensorList a, TensorList b, TensorList d, const Tensor& scalars) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    const Tensor values = factors(a, scalars);
    each(a, [&](size_t i) { H.inplace(a[i], b[i], d[i], read_scalar(values, static_cast<int64_t>(i))); });
  }
};

Tensors lerp_list(const Call&, TensorList a, TensorList b, TensorList w) {
  check_lengths(a.size(), b.size()), check_lengths(a.size(), w.size());
  return collect(a, [&](size_t i) { return ops::lerp(a[i], b[i], w[i]); });
}
void lerp_list_inplace(const Call&, TensorList a, TensorList b, TensorList w) {
  check_lengths(a.size(), b.size()), check_lengths(a.size(), w.size());
  each(a, [&](size_t i) { ops::lerp.inplace(a[i], b[i], w[i]); });
}
Tensors lerp_scalar(const Call&, TensorList a, TensorList b, const Scalar& w) {
  check_lengths(a.size(), b.size());
  return collect(a, [&](size_t i) { return ops::lerp(a[i], b[i], wrapped_number(w)); });
}
void lerp_scalar_inplace(const Call&, TensorList a, TensorList b, const Scalar& w) {
  check_lengths(a.size(), b.size());
  each(a, [&](size_t i) { ops::lerp.inplace(a[i], b[i], wrapped_number(w)); });
}
Tensors lerp_scalars(const Call&, TensorList a, TensorList b, FloatList w) {
  check_lengths(a.size(), b.size()), check_scalars(a.size(), w.size());
  return collect(a, [&](size_t i) { return ops::lerp(a[i], b[i], wrapped_number(w[i])); });
}
void lerp_scalars_inplace(const Call&, TensorList a, TensorList b, FloatList w) {
  check_lengths(a.size(), b.size()), check_scalars(a.size(), w.size());
  each(a, [&](size_t i) { ops::lerp.inplace(a[i], b[i], wrapped_number(w[i])); });
}
Tensors power_of_scalar(const Call&, const Scalar& base, TensorList exponents) {
  const Tensor number = wrapped_number(base);
  return collect(exponents, [&](size_t i) { return ops::pow(number, exponents[i]); });
}
Tensors clone_each(const Call&, TensorList a, std::optional<MemoryFormat> format) {
  return collect(a, [&](size_t i) { return ops::clone(a[i], format); });
}
Tensors max_each(const Call&, TensorList a) {
  return collect(a, [&](size_t i) { return ops::max(a[i]); });
}
void zero_each(const Call&, TensorList a) {
  each(a, [&](size_t i) { ops::zero_(a[i]); });
}
void copy_each(const Call&, TensorList a, TensorList b, bool non_blocking) {
  check_lengths(a.size(), b.size());
  each(a, [&](size_t i) { ops::copy_(a[i], b[i], non_blocking); });
}

// Writes the schemas of one name; texts live as long as the table.
class Writer {
 public:
  Writer(Table& table, const char* name) : table_(table), name_(name) {}
  template <class R, class... A>
  Writer& add(const char* suffix, const char* parameters, R (*body)(const Call&, A...)) {
    static std::deque<std::string> texts;
    constexpr bool fresh = !std::is_void_v<R>;
    texts.push_back(str("_foreach_", name_, fresh ? "" : "_", suffix,
                        fresh ? "(Tensor[] self" : "(Tensor(a!)[] self", parameters,
                        fresh ? ") -> Tensor[]" : ") -> ()"));
    Record record =
        table_.composite(texts.back().c_str(), body).doc("The operator on every tensor of the list.");
    record.op().is_function = true;
    record.op().is_method = false;
    return *this;
  }
  template <auto& H>
  Writer& unary() {
    return add("", "", Unary<H>::fresh).add("", "", Unary<H>::inplace);
  }
  template <auto& H, class... Tail>
  Writer& binary(const char* tail = "") {
    using B = Binary<H, Tail...>;
    const char* list = *tail ? ", Tensor[] other, *, Scalar alpha=1" : ", Tensor[] other";
    add(".List", list, B::list).add(".List", list, B::list_inplace);
    add(".Scalar", ", Scalar scalar", B::scalar).add(".Scalar", ", Scalar scalar", B::scalar_inplace);
    add(".IntList", ", int[] scalars", B::ints).add(".IntList", ", int[] scalars", B::ints_inplace);
    return add(".ScalarList", ", float[] scalars", B::scalars)
        .add(".ScalarList", ", float[] scalars", B::scalars_inplace);
  }
  // Also with one tensor of no dimension for all of the list.
  template <auto& H, class... Tail>
  Writer& tensor(const char* tail = "") {
    using B = Binary<H, Tail...>;
    const char* other = *tail ? ", Tensor other, *, Scalar alpha=1" : ", Tensor other";
    return add(".Tensor", other, B::tensor).add(".Tensor", other, B::tensor_inplace);
  }
  template <auto& H>
  Writer& ternary() {
    const char* scalar = ", Tensor[] tensor1, Tensor[] tensor2, Scalar value=1";
    const char* scalars = ", Tensor[] tensor1, Tensor[] tensor2, float[] scalars";
    add(".Scalar", scalar, Ternary<H>::scalar).add(".Scalar", scalar, Ternary<H>::scalar_inplace);
    add(".ScalarList", scalars, Ternary<H>::scalars).add(".ScalarList", scalars, Ternary<H>::scalars_inplace);
    const char* packed = ", Tensor[] tensor1, Tensor[] tensor2, Tensor scalars";
    return add(".Tensor", packed, TernaryPacked<H>::fresh).add(".Tensor", packed, TernaryPacked<H>::inplace);
  }

 private:
  Table& table_;
  const char* name_;
};

void register_unaries(Table& t) {
  Writer(t, "abs").unary<ops::abs>();
  Writer(t, "neg").unary<ops::neg>();
  Writer(t, "exp").unary<ops::exp>();
  Writer(t, "expm1").unary<ops::expm1>();
  Writer(t, "log").unary<ops::log>();
  Writer(t, "log2").unary<ops::log2>();
  Writer(t, "log10").unary<ops::log10>();
  Writer(t, "log1p").unary<ops::log1p>();
  Writer(t, "sqrt").unary<ops::sqrt>();
  Writer(t, "rsqrt").unary<ops::rsqrt>();
  Writer(t, "reciprocal").unary<ops::reciprocal>();
  Writer(t, "sign").unary<ops::sign>();
  Writer(t, "sin").unary<ops::sin>();
  Writer(t, "cos").unary<ops::cos>();
  Writer(t, "tan").unary<ops::tan>();
  Writer(t, "asin").unary<ops::asin>();
  Writer(t, "acos").unary<ops::acos>();
  Writer(t, "atan").unary<ops::atan>();
  Writer(t, "sinh").unary<ops::sinh>();
  Writer(t, "cosh").unary<ops::cosh>();
  Writer(t, "tanh").unary<ops::tanh>();
  Writer(t, "erf").unary<ops::erf>();
  Writer(t, "erfc").unary<ops::erfc>();
  Writer(t, "lgamma").unary<ops::lgamma>();
  Writer(t, "floor").unary<ops::floor>();
  Writer(t, "ceil").unary<ops::ceil>();
  Writer(t, "round").unary<ops::round>();
  Writer(t, "sigmoid").unary<ops::sigmoid>();
  Writer(t, "trunc").unary<ops::trunc>();
  Writer(t, "frac").unary<ops::frac>();
}

}  // namespace

void register_foreach_operators(Table& t) {
  register_unaries(t);
  Writer(t, "add").binary<ops::add, Scalar>("alpha").tensor<ops::add, Scalar>("alpha");
  Writer(t, "sub").binary<ops::sub, Scalar>("alpha");
  Writer(t, "mul").binary<ops::mul>().tensor<ops::mul>();
  Writer(t, "div").binary<ops::div>().tensor<ops::div>();
  Writer(t, "pow").binary<ops::pow>();
  Writer(t, "maximum").binary<ops::maximum>();
  Writer(t, "minimum").binary<ops::minimum>();
  Writer(t, "clamp_min").binary<ops::maximum>();
  Writer(t, "clamp_max").binary<ops::minimum>();
  Writer(t, "addcmul").ternary<ops::addcmul>();
  Writer(t, "addcdiv").ternary<ops::addcdiv>();
  const char *weights = ", Tensor[] tensors1, Tensor[] weights",
             *weight = ", Tensor[] tensors1, Scalar weight";
  Writer(t, "lerp")
      .add(".List", weights, lerp_list)
      .add(".List", weights, lerp_list_inplace)
      .add(".Scalar", weight, lerp_scalar)
      .add(".Scalar", weight, lerp_scalar_inplace)
      .add(".ScalarList", ", Tensor[] tensors1, float[] weight", lerp_scalars)
      .add(".ScalarList", ", Tensor[] tensors1, float[] weight", lerp_scalars_inplace);
  t.composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", power_of_scalar)
      .doc("A number to the power of every tensor of the list.");
  Writer(t, "clone").add("", ", *, MemoryFormat? memory_format=None", clone_each);
  Writer(t, "max").add("", "", max_each);
  Writer(t, "zero").add("", "", zero_each);
  Writer(t, "copy").add("", ", Tensor[] src, bool non_blocking=False", copy_each);
}

}  // namespace rushlight
