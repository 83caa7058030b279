// An operator's traits as Python reads them: a named tuple of words, numbers and truth values.
#include "python/traits.h"

#include "autograd/node_names.h"
#include "dispatch/table.h"
#include "python/types.h"
#include "transform/vmap.h"

namespace rushlight::python {
namespace {

const char* word(Tangent rule) {
  static constexpr const char* kWords[] = {"by family", "none",        "zero",      "linear",
                                           "product",   "elementwise", "double vjp"};
  return kWords[static_cast<int>(rule)];
}
const char* word(Aliasing aliasing) {
  static constexpr const char* kWords[] = {"by family", "fresh", "view", "may return input"};
  return kWords[static_cast<int>(aliasing)];
}
const char* word(Cast cast) {
  static constexpr const char* kWords[] = {"none", "half", "float", "widest", "refused"};
  return kWords[static_cast<int>(cast)];
}
const char* word(Numbers numbers) {
  static constexpr const char* kWords[] = {"none", "later", "all", "mixed"};
  return kWords[static_cast<int>(numbers)];
}
const char* word(const Op& op, OnQuantized rule) {
  static constexpr const char* kWords[] = {"by family", "refused", "integers", "numbers", "requantized"};
  return op.quantized_kernel ? "rule" : kWords[static_cast<int>(rule)];
}
const char* word(OutRule out) {
  static constexpr const char* kWords[] = {"castable", "same category", "same type", "disjoint"};
  return kWords[static_cast<int>(out)];
}
const char* word(Reshaping what) {
  static constexpr const char* kWords[] = {"by family", "none", "geometry", "storage"};
  return kWords[static_cast<int>(what)];
}

const char* word(Spelling spelling) {
  static constexpr const char* kWords[] = {"operator", "python", "deprecated"};
  return kWords[static_cast<int>(spelling)];
}

PyStructSequence_Field fields[] = {
    {"family", "what kind of operator it is"},
    {"tangent", "how tangents of results follow from those of operands"},
    {"batching", "what vmap does with the dimension of examples"},
    {"aliasing", "whether results may share memory with operands"},
    {"autocast_cpu", "what autocasting does to operands on the CPU"},
    {"autocast_cuda", "the same on CUDA"},
    {"numbers", "which tensor parameters take Python numbers"},
    {"out", "what out= must be like"},
    {"out_apart", "operands that out= must not partly overlap, as bits"},
    {"out_strict", "whether it must not be one of them either"},
    {"out_accumulates", "whether the kernel starts from what out= holds"},
    {"writes_unmarked", "parameters that it writes to although the schema does not mark them, as bits"},
    {"writes_where", "the bool parameter under which it writes to those, or -1: always"},
    {"random", "whether equal calls may differ: it draws numbers or updates statistics"},
    {"uninitialized", "whether it gives memory as it was found"},
    {"elementwise", "whether each element of the results comes from those at its place"},
    {"same_elements", "whether the result has the first operand's elements in their order"},
    {"examples", "parameters whose first dimension counts examples that are computed alone, as bits"},
    {"data_dependent_shape", "whether shapes depend on values"},
    {"one_node", "a composite that is one step for autograd's names"},
    {"inplace_function", "whether torch.name_ exists"},
    {"any_device", "parameters that may lie on another device, as bits"},
    {"node", "the name of its backward node"},
    {"number_nodes", "the same where a parameter is a number: ((parameter, name), ...)"},
    {"devices", "whether CUDA has a kernel"},
    {"on_quantized", "what becomes of a call with quantised operands"},
    {"reshaping", "what an in-place operator does to how its operand lies"},
    {"layer", "parameters of a layer: (input, weight, bias or -1, whether the weight is [in, out]), or None"},
    {"overlapping", "whether elements of a view may be one in memory"},
    {"gives_bool", "whether elements are truth values whatever the operands are"},
    {"reads_values", "whether it gives a number or a truth value that depends on values"},
    {"kept_whole", "a composite that graphs do not take apart"},
    {"limits", "whether each element of the result is the operand's or a limit"},
    {"absent_in_pytorch", "whether PyTorch has no operator of this name with these parameters"},
    {"spelling", "whether PyTorch has it as an operator, or its parser of arguments alone"},
    {"overloads", "names of the overload, of the in-place and of the out= one, where they follow no rule"},
    {"number_overloads", "overloads where parameters, as bits, are numbers: ((parameters, names), ...)"},
    {"variadic", "whether the tensors of its list may be given one by one"},
    {nullptr, nullptr},
};
PyStructSequence_Desc description = {"rushlight._C._OperatorTraits",
                                     "What the library knows of an operator besides its schema and kernels.",
                                     fields, std::size(fields) - 1};
PyTypeObject* traits_type = nullptr;

PyObject* number_nodes(const Traits& traits) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(traits.number_nodes.size()))));
  for (size_t i = 0; i < traits.number_nodes.size(); ++i) {
    const NumberNode& n = traits.number_nodes[i];
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     check(Py_BuildValue("(is)", n.parameter, n.name)));
  }
  return tuple.release();
}

PyObject* overload_names(const OverloadNames& names) {
  return Py_BuildValue("(zzz)", names.own, names.inplace, names.out);
}

PyObject* number_overloads(const Traits& traits) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(traits.number_overloads.size()))));
  for (size_t i = 0; i < traits.number_overloads.size(); ++i) {
    const auto& [numbers, names] = traits.number_overloads[i];
    PyTuple_SET_ITEM(
        tuple.get(), static_cast<Py_ssize_t>(i),
        check(Py_BuildValue("(KN)", static_cast<unsigned long long>(numbers), overload_names(names))));
  }
  return tuple.release();
}

PyObject* layer_operands(const LayerOperands& layer) {
  if (layer.weight < 0) return Py_NewRef(Py_None);
  return Py_BuildValue("(iiiN)", layer.input(), layer.weight, layer.bias, PyBool_FromLong(layer.turned));
}

const Op& op_by_id(PyObject* id) {
  const size_t i = PyLong_AsSize_t(id);
  if (i == static_cast<size_t>(-1) && PyErr_Occurred()) throw PythonError();
  RL_CHECK_INDEX(i < operator_table().ops().size(), "there is no operator ", i);
  return operator_table().ops()[i];
}

PyObject* operator_traits(PyObject*, PyObject* id) {
  return guard([&] { return wrap_traits(op_by_id(id)); });
}

PyMethodDef functions[] = {
    {"_operator_traits", operator_traits, METH_O, "The traits of the operator of this number."}, {}};

}  // namespace

PyObject* wrap_traits(const Op& op) {
  const Traits& t = op.traits;
  PyRef made(check(PyStructSequence_New(traits_type)));
  Py_ssize_t at = 0;
  auto put = [&](PyObject* owned) { PyStructSequence_SET_ITEM(made.get(), at++, check(owned)); };
  put(to_python(family_name(op.family)));
  put(to_python(op.family == Family::Composite ? "composite" : word(t.tangent)));
  put(to_python(batch_entry(op).kind));
  put(to_python(word(t.aliasing)));
  put(to_python(word(t.autocast_cpu)));
  put(to_python(word(t.autocast_cuda)));
  put(to_python(word(t.numbers)));
  put(to_python(word(t.out)));
  put(PyLong_FromUnsignedLongLong(t.out_overlap.apart & op.tensor_parameters));
  put(PyBool_FromLong(t.out_overlap.strict));
  put(PyBool_FromLong(t.out_overlap.accumulates));
  put(PyLong_FromUnsignedLongLong(t.unmarked_writes.parameters));
  put(PyLong_FromLong(t.unmarked_writes.where));
  put(PyBool_FromLong(t.random));
  put(PyBool_FromLong(t.uninitialized));
  put(PyBool_FromLong(t.elementwise));
  put(PyBool_FromLong(t.same_elements));
  put(PyLong_FromUnsignedLongLong(t.examples));
  put(PyBool_FromLong(t.data_dependent_shape));
  put(PyBool_FromLong(t.one_node));
  put(PyBool_FromLong(t.inplace_function));
  put(PyLong_FromUnsignedLongLong(t.any_device & op.tensor_parameters));
  put(to_python(backward_name(op)));
  put(number_nodes(t));
  put(PyBool_FromLong(op.kernel[static_cast<int>(DeviceType::CUDA)] != nullptr));
  put(to_python(word(op, t.on_quantized)));
  put(to_python(word(t.reshaping)));
  put(layer_operands(t.layer));
  put(PyBool_FromLong(t.overlapping));
  put(PyBool_FromLong(t.gives_bool));
  put(PyBool_FromLong(t.reads_values));
  put(PyBool_FromLong(t.kept_whole));
  put(PyBool_FromLong(t.limits));
  put(PyBool_FromLong(t.absent_in_pytorch));
  put(to_python(word(t.spelling)));
  put(overload_names(t.overloads));
  put(number_overloads(t));
  put(PyBool_FromLong(op.is_variadic));
  return made.release();
}

void init_traits(PyObject* module) {
  traits_type = PyStructSequence_NewType(&description);
  check(reinterpret_cast<PyObject*>(traits_type));
  check(PyModule_AddObjectRef(module, "_OperatorTraits", reinterpret_cast<PyObject*>(traits_type)));
  add_functions(module, functions);
}

}  // namespace rushlight::python
