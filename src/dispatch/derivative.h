// Derivative: one lambda written with public operators. The kinds of its parameters say what is saved.
//   [](Grad g, Out<0> y) { return sigmoid_backward(g, y); }
//   [](Grad g, In<0> a, In<1> b, Needs need) { return Grads{...}; }
// Grad / GradOf<k>: gradient of output 0 / k (undefined when nothing flowed).  In<k>: tensor parameter k,
// saved. In<k, j...>: the same, saved only when one of the parameters j wants a gradient, undefined otherwise
// (a product needs one factor only for the other's gradient; one that is not dense is saved all the same).
// Out<k>: output k, saved.  InList<k>: Tensor[] parameter k, saved. Attr<k, T>: non-tensor parameter k as T.
// GradList: the gradients of all outputs of an operator that returns a list. Shape<k>: sizes and dtype of
// tensor parameter k, nothing saved. ColumnMajor<k>: whether the matrix k was laid out by columns, nothing
// saved. Needs: which parameters want a gradient. Parameters are counted over the whole schema, self being 0.
// A Tensor result is the gradient of the first differentiable parameter; Grads lists one entry per Tensor
// parameter in order (a Tensor[] takes as many as it has elements). Gradients of broadcast inputs are summed
// to the input's shape, and cast to its dtype, by the engine.
#pragma once
#include "dispatch/value.h"

namespace rushlight {

struct Op;

struct InputMeta {
  Dims sizes;
  DType dtype = DType::Float32;
  Device device;
  bool described = true;  // false for an output that is no tensor
};

class Grads {
 public:
  Grads() = default;
  Grads(Tensor t) { list_.push_back(std::move(t)); }
  Grads(std::initializer_list<Tensor> l) : list_(l) {}
  Grads(std::vector<Tensor> l) : list_(std::move(l)) {}
  void push_back(Tensor t) { list_.push_back(std::move(t)); }
  size_t size() const { return list_.size(); }
  Tensor& operator[](size_t i) { return list_[i]; }

 private:
  std::vector<Tensor> list_;
};

// What a recorded operation offers its derivative. Implemented by the autograd node.
class BackwardContext {
 public:
  virtual Tensor grad(int output) const = 0;  // undefined when nothing flowed into it
  virtual int output_count() const = 0;
  virtual Tensor input(int parameter) const = 0;  // unpacked saved tensor
  virtual std::vector<Tensor> input_list(int parameter) const = 0;
  virtual Tensor output(int index) const = 0;
  virtual Value attribute(int parameter) const = 0;
  virtual const InputMeta& meta(int parameter) const = 0;
  virtual std::vector<InputMeta> meta_list(int parameter) const = 0;
  virtual bool needs(int parameter, int element = 0) const = 0;
  virtual bool column_major(int parameter) const = 0;

 protected:
  ~BackwardContext() = default;
};

template <int K>
struct GradOf : Tensor {};
using Grad = GradOf<0>;
struct GradList : std::vector<Tensor> {};
template <int K, int... For>
struct In : Tensor {};
template <int K>
struct Out : Tensor {};
template <int K>
struct InList : std::vector<Tensor> {};
template <int K, class T>
struct Attr {
  T value;
  operator const T&() const { return value; }
  const T* operator->() const { return &value; }
  const T& operator*() const { return value; }
};
template <int K>
struct Shape {
  const InputMeta& meta;
  IntList sizes() const { return meta.sizes; }
  DType dtype() const { return meta.dtype; }
  int64_t dim() const { return static_cast<int64_t>(meta.sizes.size()); }
  int64_t size(int64_t d) const { return meta.sizes[wrap_dim(d, dim(), false)]; }
  operator IntList() const { return meta.sizes; }
};
template <int K>
struct ShapeList : std::vector<InputMeta> {};
template <int K>
struct ColumnMajor {
  bool value;
  operator bool() const { return value; }
};
class Needs {
 public:
  explicit Needs(const BackwardContext& c) : context_(c) {}
  bool operator[](int parameter) const { return context_.needs(parameter); }
  bool operator()(int parameter, int element) const { return context_.needs(parameter, element); }

 private:
  const BackwardContext& context_;
};

struct Derivative {
  static constexpr int kConditional = 8;
  Grads (*apply)(const BackwardContext&) = nullptr;
  uint64_t saved_inputs = 0;      // bit per parameter (In, InList)
  uint64_t saved_shapes = 0;      // bit per parameter (Shape, ShapeList)
  uint32_t saved_outputs = 0;     // bit per output
  uint32_t used_grads = 0;        // bit per output gradient read
  uint64_t saved_attributes = 0;  // bit per parameter (Attr)
  // For the first parameters: which others must want a gradient for this one to be saved; 0: always.
  uint64_t saved_for[kConditional] = {};
  uint8_t column_majors = 0;  // bit per parameter (ColumnMajor)
  bool single = false;        // returns a Tensor: the gradient of the first differentiable parameter
  // In place, the result tells the rule as much as the operand that it overwrote, which is then not copied.
  bool result_serves = false;
  explicit operator bool() const { return apply != nullptr; }
};

namespace detail {
template <class T>
struct RuleArg;
template <int K>
struct RuleArg<GradOf<K>> {
  static void note(Derivative& d) { d.used_grads |= 1u << K; }
  static GradOf<K> get(const BackwardContext& c) { return {c.grad(K)}; }
};
template <>
struct RuleArg<GradList> {
  static void note(Derivative& d) { d.used_grads = ~0u; }
  static GradList get(const BackwardContext& c) {
    GradList list;
    for (int i = 0; i < c.output_count(); ++i) list.push_back(c.grad(i));
    return list;
  }
};
template <int K, int... For>
struct RuleArg<In<K, For...>> {
  static_assert(sizeof...(For) == 0 || K < Derivative::kConditional);
  static void note(Derivative& d) {
    d.saved_inputs |= 1ull << K;
    if constexpr (sizeof...(For) > 0) d.saved_for[K] = (0 | ... | (1ull << For));
  }
  static In<K, For...> get(const BackwardContext& c) { return {c.input(K)}; }
};
template <int K>
struct RuleArg<InList<K>> {
  static void note(Derivative& d) { d.saved_inputs |= 1ull << K; }
  static InList<K> get(const BackwardContext& c) { return {c.input_list(K)}; }
};
template <int K>
struct RuleArg<Out<K>> {
  static void note(Derivative& d) { d.saved_outputs |= 1u << K; }
  static Out<K> get(const BackwardContext& c) { return {c.output(K)}; }
};
template <int K, class T>
struct RuleArg<Attr<K, T>> {
  static void note(Derivative& d) { d.saved_attributes |= 1ull << K; }
  static Attr<K, T> get(const BackwardContext& c) { return {c.attribute(K).template as<T>()}; }
};
template <int K>
struct RuleArg<Shape<K>> {
  static void note(Derivative& d) { d.saved_shapes |= 1ull << K; }
  static Shape<K> get(const BackwardContext& c) { return {c.meta(K)}; }
};
template <int K>
struct RuleArg<ShapeList<K>> {
  static void note(Derivative& d) { d.saved_shapes |= 1ull << K; }
  static ShapeList<K> get(const BackwardContext& c) { return {c.meta_list(K)}; }
};
template <int K>
struct RuleArg<ColumnMajor<K>> {
  static_assert(K < Derivative::kConditional);
  static void note(Derivative& d) { d.column_majors |= 1u << K; }
  static ColumnMajor<K> get(const BackwardContext& c) { return {c.column_major(K)}; }
};
template <>
struct RuleArg<Needs> {
  static void note(Derivative&) {}
  static Needs get(const BackwardContext& c) { return Needs(c); }
};

template <class F, class R, class... A>
Derivative make_derivative(R (F::*)(A...) const) {
  Derivative d;
  d.single = std::is_same_v<R, Tensor>;
  (RuleArg<std::remove_cvref_t<A>>::note(d), ...);
  d.apply = [](const BackwardContext& c) -> Grads { return F{}(RuleArg<std::remove_cvref_t<A>>::get(c)...); };
  return d;
}
}  // namespace detail
#ifndef RUSHLIGHT_INFERENCE  // else: small_runtime/no_derivatives.h
// `rule` must capture nothing.
template <class F>
Derivative make_derivative(F) {
  static_assert(std::is_empty_v<F>, "a derivative rule captures nothing");
  return detail::make_derivative<F>(&F::operator());
}
#endif
}  // namespace rushlight
