// torch.Size: a tuple of ints that knows its product.
#include <algorithm>

#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

static PyTupleObject* allocate(Py_ssize_t n) {
  auto* self = reinterpret_cast<PyTupleObject*>(check(SizeType.tp_alloc(&SizeType, n)));
  PyObject_GC_UnTrack(self);  // holds ints alone: no cycle passes through it
#if PY_VERSION_HEX >= 0x030E0000
  self->ob_hash = -1;
#endif
  return self;
}

static PyObject* new_size(IntList sizes) {
  PyTupleObject* self = allocate(static_cast<Py_ssize_t>(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) self->ob_item[i] = PyLong_FromLongLong(sizes[i]);
  return reinterpret_cast<PyObject*>(self);
}

#ifdef Py_GIL_DISABLED
PyObject* wrap_size(IntList sizes) { return new_size(sizes); }
#else
// Programs ask for the same few shapes again and again; a Size is immutable, so the last ones made are handed
// out again. Guarded by the interpreter lock.
struct RecentSize {
  static constexpr size_t kDims = 4;
  int64_t values[kDims];
  size_t count;
  PyObject* size;
};
static RecentSize recent_sizes[128];

PyObject* wrap_size(IntList sizes) {
  const size_t n = sizes.size();
  if (n > RecentSize::kDims) return new_size(sizes);
  uint64_t hash = n;
  for (int64_t s : sizes) hash = (hash ^ static_cast<uint64_t>(s)) * 0x9e3779b97f4a7c15u;
  RecentSize& slot = recent_sizes[hash >> 57];
  bool same = slot.count == n && slot.size;
  for (size_t i = 0; i < n; ++i) same &= slot.values[i] == sizes[i];  // few: not worth a call of memcmp
  if (same) return Py_NewRef(slot.size);
  PyObject* size = new_size(sizes);
  std::copy(sizes.begin(), sizes.end(), slot.values);
  slot.count = n;
  Py_XDECREF(std::exchange(slot.size, Py_NewRef(size)));
  return size;
}
#endif

static PyTypeObject* ragged_size_type = nullptr;  // of the jagged dimension of nested tensors: no one number

static bool is_symbolic(PyObject* o) {
  return is_traced_size(o) || (ragged_size_type && Py_TYPE(o) == ragged_size_type);
}

static PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyRef self(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if ((PyLong_Check(item) && !PyBool_Check(item)) || is_symbolic(item)) continue;
    if (!PyBool_Check(item) && !is_index(item)) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   type_name(item).c_str());
      return nullptr;
    }
    PyObject* number = PyNumber_Index(item);
    if (!number) return nullptr;
    PyTuple_SET_ITEM(self.get(), i, number);
    Py_DECREF(item);
  }
  return self.release();
}

// What tuple's own slots return, as a Size again.
static PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  PyRef owner(tuple);
  return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&SizeType), tuple, nullptr);
}
static PyObject* size_concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", Py_TYPE(b)->tp_name);
    return nullptr;
  }
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
static PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  PyRef left(PySequence_Tuple(a));
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
static PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
static PyObject* size_subscript(PyObject* self, PyObject* index) {
  PyObject* item = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? as_size(item) : item;
}

static PyObject* size_repr(PyObject* self) {
  return guard([&] {
    std::string text = "torch.Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      PyRef item(check(PyObject_Repr(PyTuple_GET_ITEM(self, i))));
      text += str(i ? ", " : "", string_view(item.get()));
    }
    return to_python(text + "])");
  });
}
static PyObject* size_numel(PyObject* self, PyObject*) {
  return guard([&] {
    PyRef product(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      product = PyRef(check(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i))));
    return product.release();
  });
}
static PyObject* size_reduce(PyObject* self, PyObject*) {
  PyRef tuple(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  PyRef plain(PyTuple_New(PyTuple_GET_SIZE(self)));
  if (!plain) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    PyTuple_SET_ITEM(plain.get(), i, Py_NewRef(PyTuple_GET_ITEM(self, i)));
  return Py_BuildValue("O(O)", &SizeType, plain.get());
}

static PySequenceMethods sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
static PyNumberMethods number = {.nb_add = size_add};
static PyMappingMethods mapping = {.mp_subscript = size_subscript};
static PyMethodDef methods[] = {{"numel", size_numel, METH_NOARGS,
                                 "The number of elements of a tensor of this size."
                                 "\n\nExample:\n    >>> torch.Size([2, 3]).numel()\n    6"},
                                {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                                {}};

PyTypeObject SizeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.Size",
    .tp_repr = size_repr,
    .tp_as_number = &number,
    .tp_as_sequence = &sequence,
    .tp_as_mapping = &mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The sizes of a tensor's dimensions, a tuple."
        "\n\nArgs:\n    iterable (iterable of int): the sizes.\n\nExample:\n    >>> torch.Size([2, 3])[-1]\n "
        "   3",
    .tp_methods = methods,
    .tp_base = &PyTuple_Type,
    .tp_new = size_new,
};

// --- sizes of a traced program

static PyTypeObject* traced_size_type = nullptr;

bool is_traced_size(PyObject* o) { return traced_size_type && Py_TYPE(o) == traced_size_type; }

PyRef traced_size_value(PyObject* o) { return PyRef(check(PyObject_GetAttrString(o, "value"))); }

static PyObject* keep_class(PyTypeObject*& kept, PyObject* type, const char* name) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "%s() expects a class", name);
  Py_XSETREF(kept, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
  Py_RETURN_NONE;
}

// _set_traced_size(class): its instances are numbers to operators, which read their `value`.
static PyObject* set_traced_size(PyObject*, PyObject* type) {
  return keep_class(traced_size_type, type, "_set_traced_size");
}

// _set_ragged_size(class): its instances are parts of shapes, and no numbers to operators.
static PyObject* set_ragged_size(PyObject*, PyObject* type) {
  return keep_class(ragged_size_type, type, "_set_ragged_size");
}

void init_size(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_set_traced_size", set_traced_size, METH_O, "The class of sizes of a traced program."},
      {"_set_ragged_size", set_ragged_size, METH_O, "The class of ragged sizes of nested tensors."},
      {}};
  add_functions(module, functions);
  add_type(module, "Size", &SizeType);
}

}  // namespace rushlight::python
