// Python arguments -> Values, by an operator's schema and PyTorch's rules.
#pragma once
#include <memory>
#include <vector>

#include "dispatch/table.h"
#include "python/tensor_type.h"

namespace rushlight::python {

// What Python sees of one schema parameter, or an argument that only Python knows (out=, requires_grad=).
struct ParameterSpec {
  enum Role : uint8_t { kValue, kOut, kRequiresGrad };
  PyObject* name = nullptr;         // interned
  const char* numpy_names[6] = {};  // NumPy spellings: axis, keepdims, x, ...
  Tag type = Tag::Tensor;
  Role role = kValue;
  bool has_default = false, allow_none = false, keyword_only = false, elements_optional = false;
  bool numbers = false;          // a Tensor parameter that takes Python numbers
  bool other_list = false;       // a Tensor[] parameter in whose place another overload has a list of numbers
  bool any_truth = false;        // a bool parameter that PyTorch, in Python there, only tests: None, 1, "yes"
  bool integer_tensors = false;  // an int parameter that takes tensors of one element, whatever their shape
  int list_length = 0;
  const Parameter* schema = nullptr;
};

struct SignatureSpec {
  explicit SignatureSpec(const Op& op, bool method, bool inplace, Numbers numbers);
  const Op& op;
  std::vector<ParameterSpec> parameters;  // schema parameters first, in order
  int value_count = 0;                    // how many of them are schema parameters
  int self_count = 0;                     // 1 for a method: what messages do not count
  int max_positional = 0, min_positional = 0;
  std::vector<Value> defaults;  // of the schema parameters; none where there is no default
  int required = 0;             // the schema parameters without one come before this position
  bool method, inplace;
  bool needs_tensor = false;     // refuses calls with nothing but numbers
  bool varargs_ints = false;     // view(2, 3) for view((2, 3))
  bool varargs_tensors = false;  // broadcast_tensors(a, b) for broadcast_tensors([a, b])
  // "(Tensor input, *, Number alpha = 1)" for errors, "(input, *, alpha=1)" for documentation.
  std::string text(bool types = true) const;
};

// The arguments of one call, on the caller's stack. Borrows from the Python objects.
class Arguments {
 public:
  static constexpr int kMaxParameters = 32;
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  ~Arguments() {
    for (int i = 0; i < temp_count_; ++i) Tensor(Ref<TensorImpl>::adopt(temps_[i]));
  }
  Value* values() { return reinterpret_cast<Value*>(storage_); }
  void reset() {
    for (int i = 0; i < temp_count_; ++i) Tensor(Ref<TensorImpl>::adopt(temps_[i]));
    temp_count_ = word_count_ = out_count = 0;
    out_object = nullptr;
    requires_grad = overloaded = false;
    elements = 0;
    deferred = nullptr;
  }
  // Keeps a tensor alive until the call is over.
  TensorImpl* keep(Tensor t) {
    if (temp_count_ == kTemps) return kept_.emplace_back(std::move(t)).impl();
    return temps_[temp_count_++] = t.detach_impl();
  }
  // Room for a list of numbers or pointers.
  template <class T>
  T* take(size_t n) {
    static_assert(sizeof(T) == 8);
    if (word_count_ + n <= kWords) {
      T* room = reinterpret_cast<T*>(words_ + word_count_);
      word_count_ += static_cast<int>(n);
      return room;
    }
    heap_.push_back(std::make_unique<int64_t[]>(n));
    return reinterpret_cast<T*>(heap_.back().get());
  }

#ifdef Py_GIL_DISABLED
  // Keeps what an argument's list holds now until the call is over.
  void hold(PyObject* owned) { held_.emplace_back(owned); }
#endif

  TensorImpl* outs[Results::kMax];
  int out_count = 0;
  PyObject* out_object = nullptr;
  bool requires_grad = false;
  bool overloaded = false;  // some tensor is of a subclass that may define __torch_function__
  int64_t elements = 0;     // of all tensors
  PyObject* deferred =
      nullptr;  // an int list holds this, which is no int: an error if the overload is chosen
  int deferred_parameter = 0, deferred_position = 0;

 private:
  static constexpr int kTemps = 6, kWords = 40;
  alignas(Value) std::byte storage_[kMaxParameters * sizeof(Value)];
  TensorImpl* temps_[kTemps];
  int64_t words_[kWords];
  int temp_count_ = 0, word_count_ = 0;
  std::vector<Tensor> kept_;
  std::vector<std::unique_ptr<int64_t[]>> heap_;
#ifdef Py_GIL_DISABLED
  std::vector<PyRef> held_;
#endif
};

// The arguments of a vectorcall.
struct CallArgs {
  PyObject* const* args;
  Py_ssize_t count;  // positional
  PyObject* names;   // tuple of keyword names, or null
  Py_ssize_t keyword_count() const { return names ? PyTuple_GET_SIZE(names) : 0; }
};

// False when the arguments do not fit the signature. With `explain`, throws the TypeError that says why
// instead.
bool parse(const SignatureSpec& spec, const CallArgs& call, Arguments& out, const char* name, bool explain);
// Throws "add() received an invalid combination of arguments ...".
[[noreturn]] void throw_no_match(const std::vector<const SignatureSpec*>& specs, const CallArgs& call,
                                 const char* name);

// The rules for single values, also used outside the operators.
bool is_number(PyObject* o);  // Python or NumPy number, or bool
bool is_int(PyObject* o);     // an int that is no bool, also NumPy's
bool is_index(PyObject* o);   // what int lists accept: is_int, or an integer 0-dim tensor
bool is_numpy_scalar(PyObject* o);
bool is_numpy_bool(PyObject* o);
Scalar to_scalar(PyObject* o);  // of what is_number accepts
int64_t to_int(PyObject* o);
// A size that torch.compile traces: no int, so that all but operators must ask it by its methods.
bool is_traced_size(PyObject* o);
PyRef traced_size_value(PyObject* o);  // an int
double to_double(PyObject* o);
bool to_bool(PyObject* o);
const char* parameter_type_name(const ParameterSpec& p);

// A Python number as a tensor that is weak in type promotion.
Tensor number_tensor(PyObject* o);

extern PyTypeObject GeneratorType;
Generator* generator_of(PyObject* o);
PyObject* wrap_generator(Ref<Generator> g);

}  // namespace rushlight::python
