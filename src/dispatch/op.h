// The operator record, and the typed handle through which C++ calls an operator.
#pragma once
#include <array>
#include <tuple>

#include "dispatch/derivative.h"
#include "dispatch/schema.h"
#include "dispatch/state.h"
#include "dispatch/traits.h"

namespace rushlight {

struct Op;
struct Frame;

// What a kernel is told besides its arguments.
struct Call {
  const Op& op;
  // The tensors to write into (out= or in-place), one per result, or null. A kernel may honour it, by making
  // its result with `output()` when reading and writing in that order is safe; when it returns another
  // tensor, the gate copies.
  const Tensor* out = nullptr;
  bool inplace = false;
  // The result tensor: `out` checked and resized if it has this dtype, else a fresh one.
  Tensor output(IntList sizes, DType dtype, Device device = {}) const;
};

// What an operator returned, boxed.
struct Results {
  static constexpr int kMax = 6;
  Tensor tensors[kMax];
  int count = 0;             // of `tensors` in use; lists are in `list`
  std::vector<Tensor> list;  // Tensor[] results
  Value plain;               // bool, int, float, Scalar results
};

struct Op {
  using Trampoline = void (*)(const void* kernel, const Call& call, const Value* args, Results& results);

  Schema schema;
  const char* doc = "";
  Family family = Family::Other;
  Traits traits;
  std::array<const void*, kDeviceTypeCount> kernel{};  // of type R(const Call&, A...)
  Trampoline trampoline = nullptr;                     // one per signature
  const void* sparse_kernel = nullptr;                 // for operands with sparse parts, of the same type
  const void* quantized_kernel = nullptr;              // for quantised operands, likewise
  Derivative derivative;
  const char* refusal = nullptr;         // why there is no derivative, or why it only refuses
  const char* meta_refusal = nullptr;    // why there are no shapes without data, if there are none
  const void* made_in_python = nullptr;  // what src/python keeps of an operator that a program defined
  const void* family_data = nullptr;     // what the family's kernels read: the loops of a pointwise formula
  uint32_t intercepted =
      kDispatchBits & ~kNotCpu;    // which reasons to leave the straight path concern this operator
  uint64_t mutated = 0;            // bit per parameter written in place
  uint64_t tensor_parameters = 0;  // bit per Tensor or Tensor[] parameter
  bool has_inplace = false;        // `name_` exists
  bool has_out = false;            // accepts out=
  bool is_function = true, is_method = true;  // where Python finds it
  bool has_named_returns = false;
  bool is_variadic = false;        // Python gives the tensors of its list one by one, too
  uint32_t id = 0;                 // position in the table
  mutable void* python = nullptr;  // cache for src/python: the named-tuple type, ...

  std::string_view name() const { return schema.name; }
};

// The gate, boxed: interceptors in order, then the kernel. Python, tracing and the slow half of typed calls
// come in here.
struct Frame {
  const Op& op;
  const Value* args;
  const Tensor* out = nullptr;  // out= or in-place targets, one per result
  bool inplace = false;
  uint32_t pending = 0;  // interceptors still to run, as TensorFlag bits
  Results& results;

  int arg_count() const { return static_cast<int>(op.schema.parameters.size()); }
  // Runs the next pending interceptor, or the kernel (with in-place/out= handling and version bumps).
  void proceed();
};
void call_boxed(const Op& op, const Value* args, Results& results, const Tensor* out = nullptr,
                bool inplace = false);

using Interceptor = void (*)(Frame&);
void set_interceptor(TensorFlag bit, Interceptor f);

// Counts an in-place write on every parameter that the schema marks "(a!)".
void bump_mutated(const Op& op, const Value* args);
// Set by the layer that knows copy_: copies `source` into `target` with casting; `recorded` lets autograd see
// it.
extern void (*copy_result)(const Tensor& target, const Tensor& source, bool recorded);
// Shows a warning to the user (Python's warnings.warn once the extension is loaded).
extern void (*show_warning)(const std::string& message);
// Checks that `from` may be written to `out` and gives it the right shape, with PyTorch's messages.
void prepare_output(const Op& op, const Tensor& out, IntList sizes, DType from, bool inplace);

namespace detail {

template <class T>
uint32_t flags_of(const T&) {
  return 0;
}
// A view takes part in autograd as soon as its base does. Note [Views] in autograd/view.h.
inline uint32_t flags_of(const TensorImpl& t) {
  return t.flags | (t.view_base ? t.view_base->flags & kAutograd : 0);
}
inline uint32_t flags_of(const Tensor& t) { return t.defined() ? flags_of(*t.impl()) : 0; }
inline uint32_t flags_of(const TensorList& l) {
  uint32_t flags = 0;
  for (const Tensor& t : l) flags |= flags_of(t);
  return flags;
}
template <class R>
struct Rebox {  // R from Results
  static void put(R value, Results& r) { r.plain = Value(value); }
  static R take(Results& r) { return r.plain.as<R>(); }
};
template <>
struct Rebox<Tensor> {
  static void put(Tensor t, Results& r) { r.tensors[0] = std::move(t), r.count = 1; }
  static Tensor take(Results& r) { return std::move(r.tensors[0]); }
};
template <>
struct Rebox<std::vector<Tensor>> {
  static void put(std::vector<Tensor> v, Results& r) { r.list = std::move(v); }
  static std::vector<Tensor> take(Results& r) { return std::move(r.list); }
};
template <class... T>
struct Rebox<std::tuple<T...>> {
  static void put(std::tuple<T...> t, Results& r) {
    std::apply([&](T&... v) { ((r.tensors[r.count++] = std::move(v)), ...); }, t);
  }
  static std::tuple<T...> take(Results& r) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>(std::move(r.tensors[I])...);
    }(std::index_sequence_for<T...>{});
  }
};

template <class R, class... A>
struct Signature {
  using Kernel = R (*)(const Call&, A...);
  static void trampoline(const void* kernel, const Call& call, const Value* args, Results& results) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      auto f = reinterpret_cast<Kernel>(const_cast<void*>(kernel));
      if constexpr (std::is_void_v<R>)
        f(call, args[I].template as<A>()...);
      else
        Rebox<R>::put(f(call, args[I].template as<A>()...), results);
    }(std::index_sequence_for<A...>{});
  }
};

}  // namespace detail

// The typed handle of an operator: `inline Fn<Tensor(const Tensor& self)> exp;` declares it, registration
// binds it, and `exp(x)` calls it. `exp.inplace(x)` and `exp.out(y, x)` are the variants. Trailing arguments
// may be left out.
template <class Signature>
class Fn;

template <class R, class... A>
class FnBase {
 public:
  const Op& op() const { return *op_; }
  void bind(const Op* op) { op_ = op; }

  R call(A... args) const {
    const uint32_t flags = (0u | ... | detail::flags_of(args));
    const DispatchState& s = dispatch_state;
    if (((s.always | (flags & s.consider)) & op_->intercepted) != 0) [[unlikely]]
      return call_slow(nullptr, false, args...);
    if (op_->mutated) [[unlikely]]
      return call_slow(nullptr, false, args...);
    if ((flags & kNotCpu) || op_->family == Family::Factory) [[unlikely]]
      return call_slow(nullptr, false, args...);
    auto kernel =
        reinterpret_cast<typename detail::Signature<R, A...>::Kernel>(const_cast<void*>(op_->kernel[0]));
    return kernel(Call{*op_}, args...);
  }
  R call_slow(const Tensor* out, bool inplace, A... args) const {
    const Value boxed[sizeof...(A) + 1] = {Value(args)...};
    Results results;
    call_boxed(*op_, boxed, results, out, inplace);
    if constexpr (!std::is_void_v<R>) return detail::Rebox<R>::take(results);
  }

 private:
  const Op* op_ = nullptr;
};

namespace detail {
// One non-template operator() per number of given arguments, so that braces work as arguments.
template <class Base, class R, class Given, class Rest>
class Arity;
template <class Base, class R, class... G, class Next, class... Rest>
class Arity<Base, R, std::tuple<G...>, std::tuple<Next, Rest...>>
    : public Arity<Base, R, std::tuple<G..., Next>, std::tuple<Rest...>> {
 public:
  using Arity<Base, R, std::tuple<G..., Next>, std::tuple<Rest...>>::operator();
  R operator()(G... given) const { return fill(std::make_index_sequence<1 + sizeof...(Rest)>{}, given...); }

 private:
  template <size_t... I>
  R fill(std::index_sequence<I...>, G... given) const {
    const auto& p = this->op().schema.parameters;
    using Missing = std::tuple<Next, Rest...>;
    return this->call(given...,
                      p[sizeof...(G) + I].default_value.template as<std::tuple_element_t<I, Missing>>()...);
  }
};
template <class Base, class R, class... G>
class Arity<Base, R, std::tuple<G...>, std::tuple<>> : public Base {
 public:
  R operator()(G... args) const { return this->call(args...); }
};
}  // namespace detail

template <class R, class... A>
class Fn<R(A...)> : public detail::Arity<FnBase<R, A...>, R, std::tuple<>, std::tuple<A...>> {
 public:
  using Kernel = typename detail::Signature<R, A...>::Kernel;
  // self is the first argument and receives the result.
  template <class... Given>
  const Tensor& inplace(const Tensor& self, Given&&... rest) const {
    into(self, true, std::index_sequence_for<Given...>{}, self, std::forward<Given>(rest)...);
    return self;
  }
  template <class... Given>
  const Tensor& out(const Tensor& target, Given&&... args) const {
    into(target, false, std::index_sequence_for<Given...>{}, std::forward<Given>(args)...);
    return target;
  }

 private:
  template <size_t... I, class... Given>
  void into(const Tensor& target, bool inplace, std::index_sequence<I...>, Given&&... given) const {
    std::array<Value, sizeof...(A)> boxed;
    const auto& p = this->op().schema.parameters;
    for (size_t i = sizeof...(Given); i < boxed.size(); ++i) boxed[i] = p[i].default_value;
    box_each(boxed, std::index_sequence_for<Given...>{}, given...);
    Results results;
    call_boxed(this->op(), boxed.data(), results, &target, inplace);
  }
  template <size_t... I, class... Given>
  static void box_each(std::array<Value, sizeof...(A)>& boxed, std::index_sequence<I...>,
                       const Given&... given) {
    ((boxed[I] = Value(static_cast<std::remove_cvref_t<std::tuple_element_t<I, std::tuple<A...>>>>(given))),
     ...);
  }
};

}  // namespace rushlight
