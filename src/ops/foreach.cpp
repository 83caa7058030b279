// _foreach_*: one operator over every tensor of a list.
#include <deque>
#include <string>

#include "ops/activation.h"
#include "ops/copy.h"
#include "ops/device_multi_tensor.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/read_element.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/view.h"

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
  RL_CHECK(scalars.is_contiguous(), "Expected scalars to be contiguous.");
  RL_CHECK(scalars.dim() == 1, "Expected packed scalar Tensor to be of dimension 1. Got ", scalars.dim(),
           " instead.");
  RL_CHECK(scalars.numel() == static_cast<int64_t>(self.size()),
           "Expected length of scalars to match input of length ", static_cast<int64_t>(self.size()),
           " but got ", scalars.numel(), " instead.");
  return scalars;
}

// f(i) for each position, collected or written into self. Note [Multi-tensor launches]
template <class F>
Tensors collect(TensorList self, F f) {
  check_not_empty(self);
  loops::MultiTensorLaunch launches(self);
  Tensors out;
  out.reserve(self.size());
  for (size_t i = 0; i < self.size(); ++i) out.push_back(f(i));
  launches.launch();
  return out;
}
template <class F>
void each(TensorList self, F f) {
  check_not_empty(self);
  loops::MultiTensorLaunch launches(self);
  for (size_t i = 0; i < self.size(); ++i) f(i);
  launches.launch();
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

// The number as `H` takes it: as it is, or as a tensor.
template <auto& H>
auto operand(const Scalar& s) {
  if constexpr (requires(Fn<Tensor(const Tensor&, const Scalar&)>& f) { f = H; })
    return s;
  else
    return wrapped_number(s);
}

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
    const auto number = operand<H>(s);
    return collect(a, [&](size_t i) { return H(a[i], number); });
  }
  static void scalar_inplace(const Call&, TensorList a, const Scalar& s) {
    const auto number = operand<H>(s);
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
  static Tensors scalars(const Call&, TensorList a, ScalarList s) {
    check_scalars(a.size(), s.size());
    return collect(a, [&](size_t i) { return H(a[i], operand<H>(s[i])); });
  }
  static void scalars_inplace(const Call&, TensorList a, ScalarList s) {
    check_scalars(a.size(), s.size());
    each(a, [&](size_t i) { H.inplace(a[i], operand<H>(s[i])); });
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
  static Tensors scalars(const Call&, TensorList a, TensorList b, TensorList d, ScalarList values) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size()),
        check_scalars(a.size(), values.size());
    return collect(a, [&](size_t i) { return H(a[i], b[i], d[i], values[i]); });
  }
  static void scalars_inplace(const Call&, TensorList a, TensorList b, TensorList d, ScalarList values) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size()),
        check_scalars(a.size(), values.size());
    each(a, [&](size_t i) { H.inplace(a[i], b[i], d[i], values[i]); });
  }
};

template <auto& H>
struct TernaryPacked {
  static Tensors fresh(const Call&, TensorList a, TensorList b, TensorList d, const Tensor& scalars) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    const Tensor values = factors(a, scalars);
    return collect(
        a, [&](size_t i) { return H(a[i], b[i], d[i], read_element(values, static_cast<int64_t>(i))); });
  }
  static void inplace(const Call&, TensorList a, TensorList b, TensorList d, const Tensor& scalars) {
    check_lengths(a.size(), b.size()), check_lengths(a.size(), d.size());
    const Tensor values = factors(a, scalars);
    each(a, [&](size_t i) { H.inplace(a[i], b[i], d[i], read_element(values, static_cast<int64_t>(i))); });
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
Tensors lerp_scalars(const Call&, TensorList a, TensorList b, ScalarList w) {
  check_lengths(a.size(), b.size()), check_scalars(a.size(), w.size());
  return collect(a, [&](size_t i) { return ops::lerp(a[i], b[i], wrapped_number(w[i])); });
}
void lerp_scalars_inplace(const Call&, TensorList a, TensorList b, ScalarList w) {
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
Tensors multiply_each(const Call&, TensorList a, TensorList b) {
  RL_CHECK(!a.empty(), "_foreach_mm requires non-empty tensor lists");
  RL_CHECK(a.size() == b.size(), "_foreach_mm: self and mat2 must have the same number of tensors");
  return collect(a, [&](size_t i) { return ops::mm(a[i], b[i]); });
}
Tensors norm_each(const Call&, TensorList a, const Scalar& order, OptDType dtype) {
  return collect(a, [&](size_t i) { return ops::vector_norm(a[i], order, std::nullopt, false, dtype); });
}
Tensors power_sum_each(const Call&, TensorList a, const Scalar& order, OptDType dtype) {
  return collect(a, [&](size_t i) { return ops::linalg_powsum(a[i], order, std::nullopt, false, dtype); });
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
    constexpr bool fresh = !std::is_void_v<R>;
    const char* schema =
        kept("_foreach_", name_, fresh ? "" : "_", suffix, fresh ? "(Tensor[] self" : "(Tensor(a!)[] self",
             parameters, fresh ? ") -> Tensor[]" : ") -> ()");
    OpBuilder record = table_.composite(schema, body).doc("The operator on every tensor of the list.");
    record.op().is_function = true;
    record.op().is_method = false;
    return *this;
  }
  template <auto& H>
  Writer& unary() {
    return add("", "", Unary<H>::fresh).add("", "", Unary<H>::inplace);
  }
  // Numbers go through `N`, which is another operator than `H` where a number has rules of its own. The empty
  // list is a list of numbers, as in PyTorch.
  template <auto& H, auto& N = H, class... Tail>
  Writer& binary(const char* tail = "", const char* one = "scalar", const char* many = "scalars",
                 const char* other = "other") {
    using B = Binary<H, Tail...>;
    using S = Binary<N, Tail...>;
    const char* numbers = kept(", Scalar[] ", many);
    const char* number = kept(", Scalar ", one);
    const char* list = kept(", Tensor[] ", other, tail);
    add(".ScalarList", numbers, S::scalars).add(".ScalarList", numbers, S::scalars_inplace);
    add(".Scalar", number, S::scalar).add(".Scalar", number, S::scalar_inplace);
    return add(".List", list, B::list).add(".List", list, B::list_inplace);
  }
  // Also with one tensor of no dimension for all of the list.
  template <auto& H, class... Tail>
  Writer& tensor(const char* tail = "") {
    using B = Binary<H, Tail...>;
    const char* other = kept(", Tensor other", tail);
    return add(".Tensor", other, B::tensor).add(".Tensor", other, B::tensor_inplace);
  }
  template <auto& H>
  Writer& ternary() {
    const char* scalar = ", Tensor[] tensor1, Tensor[] tensor2, Scalar value=1";
    const char* scalars = ", Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars";
    add(".Scalar", scalar, Ternary<H>::scalar).add(".Scalar", scalar, Ternary<H>::scalar_inplace);
    add(".ScalarList", scalars, Ternary<H>::scalars).add(".ScalarList", scalars, Ternary<H>::scalars_inplace);
    const char* packed = ", Tensor[] tensor1, Tensor[] tensor2, Tensor scalars";
    return add(".Tensor", packed, TernaryPacked<H>::fresh).add(".Tensor", packed, TernaryPacked<H>::inplace);
  }

 private:
  // Text that lives as long as the table.
  template <class... Part>
  static const char* kept(const Part&... parts) {
    static std::deque<std::string> texts;
    return texts.emplace_back(str(parts...)).c_str();
  }

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
  const char* alpha = ", *, Scalar alpha=1";
  Writer(t, "add").binary<ops::add, ops::add, Scalar>(alpha).tensor<ops::add, Scalar>(alpha);
  Writer(t, "sub").binary<ops::sub, ops::sub, Scalar>(alpha);
  Writer(t, "mul").binary<ops::mul>().tensor<ops::mul>();
  Writer(t, "div").binary<ops::div>().tensor<ops::div>();
  Writer(t, "pow").binary<ops::pow>("", "exponent", "exponent", "exponent");
  Writer(t, "maximum").binary<ops::maximum, ops::clamp_min>();
  Writer(t, "minimum").binary<ops::minimum, ops::clamp_max>();
  Writer(t, "clamp_min").binary<ops::clamp_min_tensor, ops::clamp_min>();
  Writer(t, "clamp_max").binary<ops::clamp_max_tensor, ops::clamp_max>();
  Writer(t, "addcmul").ternary<ops::addcmul>();
  Writer(t, "addcdiv").ternary<ops::addcdiv>();
  const char *weights = ", Tensor[] tensors1, Tensor[] weights",
             *weight = ", Tensor[] tensors1, Scalar weight";
  Writer(t, "lerp")
      .add(".List", weights, lerp_list)
      .add(".List", weights, lerp_list_inplace)
      .add(".Scalar", weight, lerp_scalar)
      .add(".Scalar", weight, lerp_scalar_inplace)
      .add(".ScalarList", ", Tensor[] tensors1, Scalar[] weight", lerp_scalars)
      .add(".ScalarList", ", Tensor[] tensors1, Scalar[] weight", lerp_scalars_inplace);
  t.composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", power_of_scalar)
      .doc("A number to the power of every tensor of the list.");
  Writer(t, "clone").add("", ", *, MemoryFormat? memory_format=None", clone_each);
  Writer(t, "max").add("", "", max_each);
  Writer(t, "mm").add("", ", Tensor[] mat2", multiply_each);
  Writer(t, "norm").add(".Scalar", ", Scalar ord=2, ScalarType? dtype=None", norm_each);
  Writer(t, "powsum").add(".Scalar", ", Scalar ord=2, ScalarType? dtype=None", power_sum_each);
  Writer(t, "zero").add("", "", zero_each);
  Writer(t, "copy").add("", ", Tensor[] src, bool non_blocking=False", copy_each);
}

}  // namespace rushlight
