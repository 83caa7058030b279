#include "python/op_function.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "autograd/meta.h"
#include "dispatch/extension.h"
#include "dispatch/table.h"
#include "python/call_note.h"
#include "python/package_name.h"

namespace rushlight::python {

// --- running

// Above so many elements other Python threads may run meanwhile.
constexpr int64_t kReleaseElements = 1 << 15;

// Elements that a factory or a random operator is going to make.
static int64_t elements_made(const Op& op, const Value* values) {
  if (op.family != Family::Factory && op.family != Family::Random) return 0;
  if (values[0].tag() != Tag::IntList) return 0;
  int64_t n = 1;
  for (int64_t size : values[0].ints())
    if (__builtin_mul_overflow(n, size, &n)) return 0;
  return n;
}

static bool is_large(const Op& op, Arguments& a) {
  return a.elements + elements_made(op, a.values()) > kReleaseElements && op.family != Family::View;
}

// The lists' elements are borrowed from Python lists that another thread might change.
static void keep_lists(const Op& op, Arguments& a) {
  for (uint64_t bits = op.tensor_parameters; bits; bits &= bits - 1) {
    const Value& v = a.values()[std::countr_zero(bits)];
    if (v.tag() != Tag::TensorList) continue;
    for (const Tensor& t : v.tensors())
      if (t.defined()) a.keep(t);
  }
}

static void call_released(const Op& op, Arguments& a, Results& results, const Tensor* out, bool inplace) {
  keep_lists(op, a);
  GilRelease released;
  call_boxed(op, a.values(), results, out, inplace);
}

// Writes the tensors of a list result into those of out=.
static void store_list(const Op& op, const std::vector<Tensor>& results, PyObject* targets) {
  const Items items(targets);
  const auto n = static_cast<size_t>(items.size());
  RL_CHECK(n == results.size(), op.name(), "_out(): Expected out= to hold ", results.size(),
           " tensors, but it holds ", n);
  for (size_t i = 0; i < n; ++i) {
    const Tensor target = tensor_of(items[static_cast<Py_ssize_t>(i)]);
    target.check_writable(op.name());
    RL_CHECK(target.device() == results[i].device(), op.name(), "_out(): Expected out= on ",
             results[i].device(), ", but a tensor of it is on ", target.device());
    prepare_output(op, target, results[i].sizes(), results[i].dtype(), false);
    copy_result(target, results[i], false);
    target.bump_version(&op.schema.name);
  }
}

// Whether the first argument, which the operator writes to, is its result: a program's operator says so.
static bool answers_written(const Op& op) {
  return !op.made_in_python || (op.schema.returns.size() == 1 && op.schema.returns[0].mutated);
}

static PyObject* run(const SignatureSpec& spec, Arguments& a) {
  const Op& op = spec.op;
  Results results;
  const Tensor* out = nullptr;
  if (spec.inplace)
    out = &a.values()[0].tensor();
  else if (a.out_count)
    out = reinterpret_cast<const Tensor*>(a.outs);
  if (is_large(op, a)) [[unlikely]]
    call_released(op, a, results, out, spec.inplace);
  else
    call_boxed(op, a.values(), results, out, spec.inplace);
  if (spec.inplace || ((op.mutated & 1) && answers_written(op))) return wrap(a.values()[0].tensor());
  if (a.out_object) {
    if (op.schema.returns[0].type == Tag::TensorList) {
      store_list(op, results.list, a.out_object);
      Py_RETURN_NONE;
    }
    if (a.out_count == 1) return Py_NewRef(a.out_object);
    for (int i = 0; i < a.out_count; ++i) results.tensors[i] = out[i];
    results.count = a.out_count;
  }
  if (a.requires_grad) {
    RL_CHECK(is_differentiable(results.tensors[0].dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
    set_requires_grad(results.tensors[0], true);
  }
  return wrap_results(op, results, a.out_count > 1);
}

PyObject* run_operator(const SignatureSpec& spec, Arguments& a) {
  try {
    return run(spec, a);
  } catch (const Error& e) {
    throw ErrorInCall(e, describe_call(spec.op, a.values(), spec.inplace));
  }
}

// --- overloads

// Where another overload has a Number in a Tensor's place, numbers go there.
static Numbers takes_numbers(const OverloadSet& set, const Op& op) {
  if (op.traits.numbers != Numbers::Mixed) return op.traits.numbers;
  for (const Op* other : set.ops) {
    if (other == &op) continue;
    for (const Parameter& p : other->schema.parameters)
      if (p.type == Tag::Scalar && !p.keyword_only) return Numbers::None;
  }
  return Numbers::Mixed;
}

static bool is_number_list(const SignatureSpec& spec, size_t i) {
  const Tag type = i < spec.parameters.size() ? spec.parameters[i].type : Tag::Tensor;
  return type == Tag::FloatList || type == Tag::IntList || type == Tag::ScalarList;
}

// Elements that are no tensors are an error at once, unless another overload takes a list of numbers there.
static void mark_other_lists(std::vector<SignatureSpec*>& specs) {
  for (SignatureSpec* spec : specs)
    for (size_t i = 0; i < spec->parameters.size(); ++i)
      for (const SignatureSpec* other : specs)
        spec->parameters[i].other_list |=
            spec->parameters[i].type == Tag::TensorList && is_number_list(*other, i);
}

// An integer tensor of one element is a number only where no overload has something else to do with it.
static void mark_integer_tensors(std::vector<SignatureSpec*>& specs) {
  const auto takes_more = [](const SignatureSpec* spec, size_t i) {
    return i < spec->parameters.size() && !spec->parameters[i].keyword_only &&
           spec->parameters[i].type != Tag::Int;
  };
  for (SignatureSpec* spec : specs)
    for (size_t i = 0; i < spec->parameters.size(); ++i)
      spec->parameters[i].integer_tensors =
          std::none_of(specs.begin(), specs.end(), [&](auto* other) { return takes_more(other, i); });
}

// PyTorch's Python functions reduce nothing unless they are told to, whatever the operator's schema says:
// they read its default by a name that their parser doesn't know. `torch.nn.functional` always tells.
static void default_to_no_reduction(SignatureSpec& spec) {
  const int i = spec.op.schema.index_of("reduction");
  if (i >= 0 && spec.parameters[i].type == Tag::Int && spec.parameters[i].has_default)
    spec.defaults[static_cast<size_t>(i)] = Value(int64_t{0});
}

// Two threads may both build them; one result is kept.
static void build_specs(OpFunction* f) {
  std::vector<SignatureSpec*> specs;
  for (const Op* op : f->set->ops) {
    if (f->method ? !op->is_method : !op->is_function) continue;
    if (f->inplace && !op->has_inplace) continue;
    specs.push_back(new SignatureSpec(*op, f->method, f->inplace, takes_numbers(*f->set, *op)));
    default_to_no_reduction(*specs.back());
  }
  mark_other_lists(specs);
  mark_integer_tensors(specs);
  auto made = std::make_unique<const std::vector<const SignatureSpec*>>(specs.begin(), specs.end());
  const std::vector<const SignatureSpec*>* found = nullptr;
  if (f->specs.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
    (void)made.release();
  else
    for (SignatureSpec* spec : specs) delete spec;
}

const std::vector<const SignatureSpec*>& specs_of(OpFunction* f) {
  if (!f->specs.load(std::memory_order_acquire)) build_specs(f);
  return *f->specs.load(std::memory_order_acquire);
}

static PyObject* shown(OpFunction* f) { return f->shown ? f->shown : reinterpret_cast<PyObject*>(f); }

static PyObject* no_match(OpFunction* f, const CallArgs& call) {
  if (PyObject* result = dispatch_torch_function(shown(f), call)) return result;
  if (PyErr_Occurred()) throw PythonError();
  throw_no_match(specs_of(f), call, f->text_name);
}

static PyObject* run_or_dispatch(OpFunction* f, const SignatureSpec& spec, const CallArgs& call,
                                 Arguments& a) {
  if (a.overloaded && function_state.subclasses_enabled) [[unlikely]] {
    if (PyObject* result = dispatch_torch_function(shown(f), call)) return result;
    if (PyErr_Occurred()) throw PythonError();
  }
  return run_operator(spec, a);
}

// What writes to a list of tensors (`_foreach_add_`) gives that list back.
static bool writes_list(const Op& op) {
  return op.schema.returns.empty() && !op.schema.parameters.empty() &&
         op.schema.parameters[0].type == Tag::TensorList && op.schema.name.starts_with("_foreach_");
}
static PyObject* same_list(PyObject* none, PyObject* list) {
  Py_DECREF(none);
  return Py_NewRef(list);
}

static PyObject* invoke(OpFunction* f, const CallArgs& call) {
  if (f->method && (call.count == 0 || !is_tensor(call.args[0]))) [[unlikely]] {
    if (call.count == 0)
      throw_python(PyExc_TypeError, str("unbound method TensorBase.", f->text_name, "() needs an argument"));
    throw_python(PyExc_TypeError,
                 str("descriptor '", f->text_name, "' for 'torch._C.TensorBase' objects doesn't apply to a '",
                     type_name(call.args[0]), "' object"));
  }
  const std::vector<const SignatureSpec*>& specs = specs_of(f);
  if (function_state.mode_active()) [[unlikely]] {
    if (PyObject* result = dispatch_torch_function(shown(f), call)) return result;
    if (PyErr_Occurred()) throw PythonError();
  }
  Arguments a;
  bool first = true;
  for (const SignatureSpec* spec : specs) {
    if (!first) a.reset();
    first = false;
    if (!parse(*spec, call, a, f->text_name, false)) continue;
    PyObject* result = run_or_dispatch(f, *spec, call, a);
    return result == Py_None && writes_list(spec->op) && call.count > 0 ? same_list(result, call.args[0])
                                                                        : result;
  }
  return no_match(f, call);
}

PyObject* call_operator(OpFunction* f, PyObject* const* args, size_t count, PyObject* kwnames) {
  return invoke(f, CallArgs{args, static_cast<Py_ssize_t>(count), kwnames});
}

static PyObject* vectorcall(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    return invoke(reinterpret_cast<OpFunction*>(callable),
                  CallArgs{args, PyVectorcall_NARGS(nargsf), kwnames});
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

// --- the callable types

static OpFunction* as_function(PyObject* o) { return reinterpret_cast<OpFunction*>(o); }

static PyObject* get_name(PyObject* self, void*) { return Py_NewRef(as_function(self)->name); }
static PyObject* get_qualname(PyObject* self, void*) {
  return as_function(self)->method ? PyUnicode_FromFormat("TensorBase.%U", as_function(self)->name)
                                   : Py_NewRef(as_function(self)->name);
}
// The public module that shows the function: pickle looks it up there.
static std::string module_of(OpFunction* f) {
  const std::string_view space = f->set->space;
  if (f->method) return package_name() + "._C";
  if (space.empty()) return package_name();
  return str(package_name(), ".", space == "nn" ? "nn.functional" : space);
}
static PyObject* get_module(PyObject* self, void*) {
  return guard([&] { return to_python(module_of(as_function(self))); });
}
static PyObject* get_doc(PyObject* self, void*) {
  return guard([&] { return describe(as_function(self), "document"); });
}
static PyObject* get_signature(PyObject* self, void*) {
  return guard([&] { return describe(as_function(self), "signature"); });
}
static PyObject* get_overloads(PyObject* self, void*) {
  return guard([&] { return overloads_of(as_function(self)); });
}
// What `inspect` and `isinstance` take it for: the type that PyTorch's operators have.
static PyObject* get_class(PyObject* self, void*) {
  return Py_NewRef(as_function(self)->method ? reinterpret_cast<PyObject*>(&PyMethodDescr_Type)
                                             : reinterpret_cast<PyObject*>(&PyCFunction_Type));
}
static PyObject* get_objclass(PyObject* self, void*) {
  if (as_function(self)->method) return Py_NewRef(reinterpret_cast<PyObject*>(&TensorBaseType));
  PyErr_SetString(PyExc_AttributeError, "__objclass__");
  return nullptr;
}
static PyGetSetDef properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, "What calls may look like, for inspect.", nullptr},
    {"__class__", get_class, nullptr, nullptr, nullptr},
    {"__objclass__", get_objclass, nullptr, nullptr, nullptr},
    {"_overloads", get_overloads, nullptr, "What each overload accepts and returns.", nullptr},
    {}};

static PyObject* function_repr(PyObject* self) {
  return PyUnicode_FromFormat(
      as_function(self)->method ? "<method '%U' of 'torch._C.TensorBase' objects>" : "<built-in function %U>",
      as_function(self)->name);
}
static PyObject* function_reduce(PyObject* self, PyObject*) {
  if (!as_function(self)->method) return Py_NewRef(as_function(self)->name);
  PyRef builtins(PyImport_ImportModule("builtins"));
  PyRef getattr(builtins ? PyObject_GetAttrString(builtins.get(), "getattr") : nullptr);
  return getattr ? Py_BuildValue("O(OO)", getattr.get(), tensor_type, as_function(self)->name) : nullptr;
}
static PyMethodDef function_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr}, {}};

static PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

// Functions, unlike methods, take attributes: PyTorch's of nn.functional are written in Python, and libraries
// note things on them.
struct AttributedFunction {
  OpFunction function;
  PyObject* attributes;
};

// Its name stays: it is interned, and texts point into it.
static void function_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<AttributedFunction*>(self)->attributes);
  PyObject_Free(self);
}

PyTypeObject OpFunctionType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "builtin_function_or_method",
    .tp_basicsize = sizeof(AttributedFunction),
    .tp_dealloc = function_dealloc,
    .tp_vectorcall_offset = offsetof(OpFunction, vectorcall),
    .tp_repr = function_repr,
    .tp_call = PyVectorcall_Call,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_methods = function_methods,
    .tp_getset = properties,
    .tp_dictoffset = offsetof(AttributedFunction, attributes),
};
PyTypeObject OpMethodType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "method_descriptor",
    .tp_basicsize = sizeof(OpFunction),
    .tp_vectorcall_offset = offsetof(OpFunction, vectorcall),
    .tp_repr = function_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = function_methods,
    .tp_getset = properties,
    .tp_descr_get = bind_method,
};

// --- the table becomes modules and methods

static std::deque<OverloadSet> overload_sets;
static std::unordered_map<std::string, OpFunction*> functions_by_name, methods_by_name;

OpFunction* find_function(std::string_view space, std::string_view name) {
  auto found = functions_by_name.find(str(space, "::", name));
  return found == functions_by_name.end() ? nullptr : found->second;
}
OpFunction* find_method(std::string_view name) {
  auto found = methods_by_name.find(std::string(name));
  return found == methods_by_name.end() ? nullptr : found->second;
}

// PyTorch's errors call torch.linalg.svd linalg_svd; those of nn.functional have bare names.
static const char* name_in_errors(std::string_view space, PyObject* name) {
  if (space.empty() || space == "nn") return PyUnicode_AsUTF8(name);
  const std::string full = str(space, "_", PyUnicode_AsUTF8(name));
  return PyUnicode_AsUTF8(PyUnicode_InternFromString(full.c_str()));  // interned: kept for good by the caller
}

static OpFunction* make_function(const OverloadSet& set, bool method, bool inplace) {
  OpFunction* f = PyObject_New(OpFunction, method ? &OpMethodType : &OpFunctionType);
  if (!f) throw PythonError();
  const std::string name = inplace ? str(set.name, "_") : std::string(set.name);
  f->vectorcall = vectorcall;
  f->set = &set;
  new (&f->specs) std::atomic<const std::vector<const SignatureSpec*>*>(nullptr);
  f->name = PyUnicode_InternFromString(name.c_str());
  f->text_name = method ? PyUnicode_AsUTF8(f->name) : name_in_errors(set.space, f->name);
  f->method = method;
  f->inplace = inplace;
  f->shown = nullptr;
  if (!method) reinterpret_cast<AttributedFunction*>(f)->attributes = nullptr;
  return f;
}

static const SignatureSpec* schema_spec(const Op& op, bool inplace) {
  // PyTorch takes numbers for tensors in operators of its own alone.
  const bool defined_elsewhere = op.made_in_python || is_extension(op);
  auto* spec = new SignatureSpec(op, false, inplace, defined_elsewhere ? Numbers::None : Numbers::All);
  for (size_t i = 0; i < op.schema.parameters.size(); ++i)
    spec->parameters[i].name = PyUnicode_InternFromString(std::string(op.schema.parameters[i].name).c_str());
  spec->varargs_ints = spec->varargs_tensors = false;
  return spec;
}

OpFunction* make_overload(std::vector<const Op*> ops, bool inplace) {
  struct Made {
    OverloadSet set;
    std::vector<const SignatureSpec*> specs;
  };
  // For good, as the operators are: programs may define, forget and define again.
  static std::map<std::pair<std::vector<const Op*>, bool>, Made> all;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Made& made = all[{ops, inplace}];
  if (made.specs.empty()) {
    made.set = {ops[0]->schema.space, ops[0]->schema.name, std::move(ops)};
    for (const Op* op : made.set.ops) made.specs.push_back(schema_spec(*op, inplace));
  }
  OpFunction* f = make_function(made.set, false, inplace);
  f->specs = &made.specs;
  return f;
}

// `torch.add_` does not exist in PyTorch, `torch.abs_` does: functions of one tensor have in-place functions.
// Those of `torch.special`, `torch.linalg` and `torch.fft` have none.
static bool has_inplace_function(const OverloadSet& set) {
  if (!set.space.empty()) return false;
  for (const Op* op : set.ops)
    if (op->traits.inplace_function) return true;
  return std::popcount(set.ops[0]->tensor_parameters) == 1;
}

static void group_overloads() {
  std::unordered_map<std::string, OverloadSet*> sets;
  for (const Op& op : operator_table().ops()) {
    if (!op.is_function && !op.is_method) continue;
    OverloadSet*& set = sets[str(op.schema.space, "::", op.schema.name)];
    if (!set) set = &overload_sets.emplace_back(OverloadSet{op.schema.space, op.schema.name, {}});
    set->ops.push_back(&op);
  }
}

static void publish_function(PyObject* dict, const OverloadSet& set, bool inplace) {
  OpFunction* f = make_function(set, false, inplace);
  check(PyDict_SetItem(dict, f->name, reinterpret_cast<PyObject*>(f)));
  functions_by_name[str(set.space, "::", PyUnicode_AsUTF8(f->name))] = f;
}
static void publish_method(const OverloadSet& set, bool inplace) {
  OpFunction* f = make_function(set, true, inplace);
  check(PyDict_SetItem(TensorBaseType.tp_dict, f->name, reinterpret_cast<PyObject*>(f)));
  methods_by_name[f->text_name] = f;
}

static void publish(PyObject* dict, const OverloadSet& set) {
  bool function = false, inplace_function = false, method = false, inplace_method = false;
  for (const Op* op : set.ops) {
    function |= op->is_function;
    inplace_function |= op->is_function && op->has_inplace;
    method |= op->is_method && set.space.empty();
    inplace_method |= op->is_method && op->has_inplace && set.space.empty();
  }
  if (function) publish_function(dict, set, false);
  if (inplace_function && (set.space == "nn" || has_inplace_function(set))) publish_function(dict, set, true);
  if (method) publish_method(set, false);
  if (inplace_method) publish_method(set, true);
}

static PyObject* namespace_dict(PyObject* module, std::string_view space,
                                std::unordered_map<std::string_view, PyObject*>& dicts) {
  PyObject*& dict = dicts[space];
  if (dict) return dict;
  const std::string name = space.empty() ? "_VariableFunctions" : str("_", space);
  PyObject* m = check(PyModule_New(str("rushlight._C.", name).c_str()));
  check(PyModule_AddObjectRef(module, name.c_str(), m));
  return dict = PyModule_GetDict(m);
}

void init_operators(PyObject* module) {
  check(PyType_Ready(&OpFunctionType));
  check(PyType_Ready(&OpMethodType));
  group_overloads();
  std::unordered_map<std::string_view, PyObject*> dicts;
  for (const char* space : {"", "nn", "linalg", "special", "fft"}) namespace_dict(module, space, dicts);
  for (const OverloadSet& set : overload_sets) publish(namespace_dict(module, set.space, dicts), set);
  PyType_Modified(&TensorBaseType);
  static PyMethodDef functions[] = {
      {"_return_type", return_type, METH_O, "The named tuple type of an operator's results."},
      {"_make_return_type", make_return_type, METH_VARARGS, "Such a type, of a name and fields."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
