// Operators that programs and other libraries bring in C++. Their library registers them while it is loaded.
#pragma once
#include <string>

#include "dispatch/table.h"

namespace rushlight {

namespace extension {

// C++ types of parameters and results, and what a schema calls them.
template <class T>
struct Type {
  static T get(const Value& v) { return v.as<T>(); }
};
#define RL_EXTENSION_TYPE(type, text)                        \
  template <>                                                \
  struct Type<type> {                                        \
    static constexpr const char* name = text;                \
    static type get(const Value& v) { return v.as<type>(); } \
  };
RL_EXTENSION_TYPE(Tensor, "Tensor")
RL_EXTENSION_TYPE(int64_t, "int")
RL_EXTENSION_TYPE(double, "float")
RL_EXTENSION_TYPE(bool, "bool")
RL_EXTENSION_TYPE(Scalar, "Scalar")
RL_EXTENSION_TYPE(DType, "ScalarType")
RL_EXTENSION_TYPE(IntList, "int[]")
RL_EXTENSION_TYPE(FloatList, "float[]")
RL_EXTENSION_TYPE(TensorList, "Tensor[]")
RL_EXTENSION_TYPE(std::string_view, "str")
#undef RL_EXTENSION_TYPE
template <>
struct Type<int> {
  static constexpr const char* name = "int";
  static int get(const Value& v) { return static_cast<int>(v.integer()); }
};
template <>
struct Type<float> {
  static constexpr const char* name = "float";
  static float get(const Value& v) { return static_cast<float>(v.floating()); }
};
template <>
struct Type<std::string> {
  static constexpr const char* name = "str";
  static std::string get(const Value& v) { return std::string(v.string()); }
};
template <class List>
auto copied(const List& list) {
  return std::vector<std::remove_cvref_t<decltype(*list.begin())>>(list.begin(), list.end());
}
template <>
struct Type<std::vector<Tensor>> {
  static constexpr const char* name = "Tensor[]";
  static std::vector<Tensor> get(const Value& v) { return copied(v.tensors()); }
};
template <>
struct Type<std::vector<int64_t>> {
  static constexpr const char* name = "int[]";
  static std::vector<int64_t> get(const Value& v) { return copied(v.ints()); }
};
template <>
struct Type<std::vector<double>> {
  static constexpr const char* name = "float[]";
  static std::vector<double> get(const Value& v) { return copied(v.floats()); }
};
template <class T>
struct Type<std::optional<T>> {
  static std::optional<T> get(const Value& v) {
    return v.is_none() ? std::nullopt : std::optional<T>(Type<T>::get(v));
  }
};

template <class T>
std::string type_text() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (requires { typename Plain::value_type; } && !requires { Type<Plain>::name; })
    return std::string(Type<typename Plain::value_type>::name) + "?";
  else
    return Type<Plain>::name;
}

template <class R>
struct Returned {
  static std::string text() { return type_text<R>(); }
};
template <>
struct Returned<void> {
  static std::string text() { return "()"; }
};
template <class... T>
struct Returned<std::tuple<T...>> {
  static std::string text() {
    std::string list;
    ((list += (list.empty() ? "" : ", ") + type_text<T>()), ...);
    return "(" + list + ")";
  }
};

// Runs a plain function on boxed arguments.
template <class R, class... A>
void run_function(const void* function, const Call&, const Value* args, Results& results) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    auto f = reinterpret_cast<R (*)(A...)>(const_cast<void*>(function));
    if constexpr (std::is_void_v<R>)
      f(Type<std::remove_cvref_t<A>>::get(args[I])...);
    else if constexpr (std::is_same_v<R, int> || std::is_same_v<R, float>)
      results.plain = Value(static_cast<std::conditional_t<std::is_same_v<R, int>, int64_t, double>>(
          f(Type<std::remove_cvref_t<A>>::get(args[I])...)));
    else
      detail::Rebox<R>::put(f(Type<std::remove_cvref_t<A>>::get(args[I])...), results);
  }(std::index_sequence_for<A...>{});
}

// A caller's argument, borrowed for the length of a call.
template <class T>
Value boxed(const T& v) {
  if constexpr (std::is_same_v<T, int>)
    return Value(int64_t{v});
  else if constexpr (std::is_same_v<T, float>)
    return Value(static_cast<double>(v));
  else if constexpr (std::is_same_v<T, std::string>)
    return Value(std::string_view(v));
  else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
    return Value(TensorList(v));
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return Value(IntList(v));
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return Value(FloatList(v));
  else
    return Value(v);
}

// "name(Tensor x0, float x1) -> Tensor", from the function's type.
template <class R, class... A>
std::string schema_of(const std::string& name) {
  std::string parameters;
  int i = 0;
  ((parameters += (i ? ", " : "") + type_text<A>() + " x" + std::to_string(i), ++i), ...);
  return name + "(" + parameters + ") -> " + Returned<R>::text();
}

}  // namespace extension

// For what an implementation serves.
enum class DispatchKey : uint8_t {
  CPU,
  CUDA,
  Meta,
  CompositeExplicitAutograd,  // every device, below autograd
  CompositeImplicitAutograd,  // written with public operators
  Autograd                    // runs first, and calls the operator again below autograd
};

class OperatorLibrary {
 public:
  explicit OperatorLibrary(std::string space, DispatchKey key = DispatchKey::CompositeImplicitAutograd)
      : space_(std::move(space)), key_(key) {}
  // Fills a library. An error ends the process, as in any static initialiser, unless errors are kept.
  static bool fill(const char* space, DispatchKey key, void (*body)(OperatorLibrary&));

  // A function written with public operators: autograd and the transforms see what it calls. The schema may
  // be a name alone; parameters are then x0, x1, ...
  template <class R, class... A>
  OpBuilder def(const std::string& schema, R (*function)(A...)) {
    return add<R, A...>(schema, function, true);
  }
  template <class F>
    requires requires(F f) { +f; }
  OpBuilder def(const std::string& schema, F function) {
    return def(schema, +function);
  }
  // A function that the loader of this library calls. It has a space of its own (space_v1, ...) where this
  // one has such an operator already.
  template <class R, class... A>
  void show(const std::string& name, R (*function)(A...)) {
    OperatorLibrary(free_space(name)).def(name, function);
  }
  // An operator whose implementations come by impl(), from this library or others, before or after.
  OpBuilder def(const std::string& schema) { return OpBuilder(declare(schema)); }
  // A function that reads memory. It runs below autograd: give it a `.derivative(...)`, or it refuses
  // operands that require gradients.
  template <class R, class... A>
  OpBuilder kernel(const std::string& schema, R (*function)(A...)) {
    return add<R, A...>(schema, function, false);
  }
  // The implementation of an operator for this library's key, or for another one.
  template <class R, class... A>
  void impl(const std::string& name, R (*function)(A...)) {
    implement(name, key_, &extension::run_function<R, A...>, reinterpret_cast<const void*>(function),
              sizeof...(A));
  }
  template <class F>
    requires requires(F f) { +f; }
  void impl(const std::string& name, F function) {
    impl(name, +function);
  }

 private:
  template <class R, class... A>
  OpBuilder add(const std::string& schema, R (*function)(A...), bool composite) {
    const bool named = schema.find('(') == std::string::npos;
    const std::string text = named ? extension::schema_of<R, A...>(schema) : schema;
    return OpBuilder(define(text, &extension::run_function<R, A...>, reinterpret_cast<const void*>(function),
                            sizeof...(A), composite));
  }
  Op& define(const std::string& schema, Op::Trampoline trampoline, const void* function, size_t parameters,
             bool composite);
  Op& declare(const std::string& schema);
  void implement(const std::string& name, DispatchKey key, Op::Trampoline run, const void* function,
                 size_t parameters);
  std::string free_space(const std::string& name) const;
  std::string space_;
  DispatchKey key_;
};

// Inside, an operator's own Autograd implementation is passed over, and nothing is recorded.
class BelowAutograd {
 public:
  BelowAutograd();
  ~BelowAutograd();
  BelowAutograd(const BelowAutograd&) = delete;

 private:
  bool previous_;
  GradMode mode_{false};
};

// An operator by name, as C++ calls it: find_operator_handle("my_ops::twice", "").typed<Tensor(const
// Tensor&)>()
template <class Signature>
class TypedOperatorHandle;
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(const Op& op) : op_(&op) {}
  R call(A... arguments) const {
    const Value values[sizeof...(A) + 1] = {extension::boxed(arguments)...};
    Results results;
    call_boxed(*op_, values, results);
    if constexpr (!std::is_void_v<R>) return detail::Rebox<std::remove_cvref_t<R>>::take(results);
  }
  R redispatch(A... arguments) const {
    const BelowAutograd below;
    return call(arguments...);
  }

 private:
  const Op* op_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(const Op& op) : op_(&op) {}
  std::string_view schema() const { return op_->schema.text; }
  template <class Signature>
  TypedOperatorHandle<Signature> typed() const {
    return TypedOperatorHandle<Signature>(*op_);
  }

 private:
  const Op* op_;
};
class Dispatcher {
 public:
  static Dispatcher& singleton();
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload) const;
};

// Those that were registered, in order.
const std::vector<const Op*>& extension_operators();
bool is_extension(const Op& op);  // true also of what programs define in Python after that

// From here on what a library fails to register is kept for `take_extension_failures`: an exception cannot
// leave dlopen.
void keep_extension_failures();
std::vector<std::string> take_extension_failures();

}  // namespace rushlight

#define RL_JOIN_(a, b) a##b
#define RL_JOIN(a, b) RL_JOIN_(a, b)
// RUSHLIGHT_LIBRARY(space, m) { m.def("twice", twice); } shows torch.ops.space.twice.
#define RUSHLIGHT_LIBRARY(space, m)                                                               \
  static void RL_JOIN(register_##space##_, __LINE__)(rushlight::OperatorLibrary & m);             \
  [[maybe_unused]] static const bool RL_JOIN(registered_##space##_, __LINE__) =                   \
      rushlight::OperatorLibrary::fill(#space, rushlight::DispatchKey::CompositeImplicitAutograd, \
                                       RL_JOIN(register_##space##_, __LINE__));                   \
  static void RL_JOIN(register_##space##_, __LINE__)(rushlight::OperatorLibrary & m)
// The same for operators that another place declared: RUSHLIGHT_LIBRARY_IMPL(space, CPU, m) { m.impl("twice",
// f); }
#define RUSHLIGHT_LIBRARY_IMPL(space, key, m)                                                  \
  static void RL_JOIN(implement_##space##_##key##_, __LINE__)(rushlight::OperatorLibrary & m); \
  [[maybe_unused]] static const bool RL_JOIN(implemented_##space##_##key##_, __LINE__) =       \
      rushlight::OperatorLibrary::fill(#space, rushlight::DispatchKey::key,                    \
                                       RL_JOIN(implement_##space##_##key##_, __LINE__));       \
  static void RL_JOIN(implement_##space##_##key##_, __LINE__)(rushlight::OperatorLibrary & m)
