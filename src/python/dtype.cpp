// torch.dtype, torch.layout, torch.memory_format, torch.finfo and torch.iinfo.
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/quantizer.h"
#include "python/package_name.h"
#include "python/types.h"

namespace rushlight::python {

static PyBox<DType>* dtypes[kAllDTypeCount];

PyObject* wrap(DType t) { return Py_NewRef(reinterpret_cast<PyObject*>(dtypes[static_cast<int>(t)])); }

bool is_dtype_like(PyObject* o) {
  if (is_dtype(o)) return true;
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  return t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type || t == &PyComplex_Type;
}

DType parse_dtype(PyObject* o) {
  const DType t = parse_any_dtype(o);
  if (is_special(t)) refuse_special_dtype(t);
  return t;
}

void refuse_special_dtype(DType t) {
  RL_NOT_IMPLEMENTED("torch.", dtype_name(t), ": nothing computes in this type",
                     is_quantized(t) ? "; torch.quantize_per_tensor makes tensors of it" : "");
}

DType parse_any_dtype(PyObject* o) {
  if (is_dtype(o)) return dtype_of_object(o);
  auto* t = reinterpret_cast<PyTypeObject*>(o);
  if (t == &PyFloat_Type) return DType::Float64;
  if (t == &PyLong_Type) return DType::Int64;
  if (t == &PyBool_Type) return DType::Bool;
  if (t == &PyComplex_Type) return DType::Complex128;
  throw_python(PyExc_TypeError, "expected torch.dtype, not " + type_name(o));
}

static DType self_of(PyObject* self) { return dtype_of_object(self); }
static std::string name_of(PyObject* self) { return std::string(dtype_name(self_of(self))); }
static PyObject* repr(PyObject* self) {
  return guard([&] { return to_python(str("torch.", name_of(self))); });
}
static PyObject* reduce(PyObject* self, PyObject*) {
  return guard([&] { return to_python(name_of(self)); });
}
static PyObject* get_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating(self_of(self)) || self_of(self) == DType::Float4_e2m1fn_x2);
}
static PyObject* get_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(self_of(self))); }
static PyObject* get_signed(PyObject* self, void*) {
  return guard([&] {
    RL_CHECK(!is_quantized(self_of(self)), "isSignedType not supported for quantized types, got torch.",
             name_of(self));
    return PyBool_FromLong(is_signed(self_of(self)));
  });
}
static PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(element_size(self_of(self)));
}
static PyObject* get_module(PyObject*, void*) { return PyUnicode_InternFromString(package_name().c_str()); }
static PyObject* to_real(PyObject* self, PyObject*) {
  return guard([&] { return wrap(real_dtype(parse_dtype(self))); });
}
static PyObject* to_complex(PyObject* self, PyObject*) {
  return guard([&] {
    const DType from = parse_dtype(self);
    RL_CHECK(is_floating(from) || is_complex(from), "to_complex: ", from, " has no complex type");
    return wrap(complex_dtype(from));
  });
}

static PyGetSetDef dtype_getset[] = {
    {"is_floating_point", get_floating, nullptr, "Whether this is a floating point type.", nullptr},
    {"is_complex", get_complex, nullptr, "Whether this is a complex type.", nullptr},
    {"is_signed", get_signed, nullptr, "Whether this type holds negative numbers.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {}};
static PyMethodDef dtype_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"to_real", to_real, METH_NOARGS, "The type of the real part."},
    {"to_complex", to_complex, METH_NOARGS, "The complex type whose parts have this type."},
    {}};

static void dealloc(PyObject* self) { PyObject_Free(self); }

PyTypeObject DTypeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.dtype",
    .tp_basicsize = sizeof(PyBox<DType>),
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The type of a tensor's elements."
        "\n\nExample:\n    >>> torch.float16.itemsize, torch.float16.is_floating_point\n    (2, True)",
    .tp_methods = dtype_methods,
    .tp_getset = dtype_getset,
};

// --- layout and memory format

static PyObject *layouts[7], *formats[4];
static const char* const layout_names[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                           "sparse_bsr", "sparse_bsc", "jagged"};
static const char* const format_names[] = {"contiguous_format", "preserve_format", "channels_last",
                                           "channels_last_3d"};

PyObject* wrap(Layout l) { return Py_NewRef(layouts[static_cast<int>(l)]); }
PyObject* wrap(MemoryFormat f) { return Py_NewRef(formats[static_cast<int>(f)]); }

static const char* layout_name(PyObject* self) {
  return layout_names[static_cast<int>(layout_of_object(self))];
}
static const char* format_name(PyObject* self) {
  return format_names[static_cast<int>(memory_format_of_object(self))];
}
static PyObject* layout_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", layout_name(self)); }
static PyObject* format_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", format_name(self)); }
// As PyTorch pickles it, so that either library reads the other's files.
static PyObject* layout_reduce(PyObject* self, PyObject*) {
  PyRef module(PyImport_ImportModule("rushlight.serialization"));
  PyRef getter(module ? PyObject_GetAttrString(module.get(), "_get_layout") : nullptr);
  return getter ? Py_BuildValue("O(N)", getter.get(), layout_repr(self)) : nullptr;
}
static PyObject* format_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(format_name(self)); }
static PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr}, {}};
static PyMethodDef format_methods[] = {{"__reduce__", format_reduce, METH_NOARGS, nullptr}, {}};
static PyObject* qschemes[5];
static const char* const qscheme_names[] = {"per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
                                            "per_channel_symmetric", "per_channel_affine_float_qparams"};
PyObject* wrap(QScheme s) { return Py_NewRef(qschemes[static_cast<int>(s)]); }
static const char* qscheme_name(PyObject* self) {
  return qscheme_names[static_cast<int>(reinterpret_cast<PyBox<QScheme>*>(self)->value)];
}
static PyObject* qscheme_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", qscheme_name(self)); }
static PyObject* qscheme_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(qscheme_name(self));
}
static PyMethodDef qscheme_methods[] = {{"__reduce__", qscheme_reduce, METH_NOARGS, nullptr}, {}};
static PyGetSetDef named_getset[] = {{"__module__", get_module, nullptr, nullptr, nullptr}, {}};

PyTypeObject LayoutType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.layout",
    .tp_basicsize = sizeof(PyBox<Layout>),
    .tp_dealloc = dealloc,
    .tp_repr = layout_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "How a tensor's elements are laid out in memory.",
    .tp_methods = layout_methods,
    .tp_getset = named_getset,
};
PyTypeObject MemoryFormatType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.memory_format",
    .tp_basicsize = sizeof(PyBox<MemoryFormat>),
    .tp_dealloc = dealloc,
    .tp_repr = format_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The order of dimensions in memory.",
    .tp_methods = format_methods,
    .tp_getset = named_getset,
};

PyTypeObject QSchemeType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.qscheme",
    .tp_basicsize = sizeof(PyBox<QScheme>),
    .tp_dealloc = dealloc,
    .tp_repr = qscheme_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "How the integers of a quantised tensor stand for numbers.",
    .tp_methods = qscheme_methods,
    .tp_getset = named_getset,
};

// --- finfo and iinfo

struct FloatFacts {
  int bits;
  double eps, max, smallest_normal, resolution;
  double min() const { return bits == 8 && eps == 1 ? smallest_normal : -max; }  // powers of two have no sign
};

static FloatFacts float_facts(DType t) {
  switch (t) {
    case DType::Float16:
      return {16, 0x1p-10, 65504.0, 0x1p-14, 1e-3};
    case DType::BFloat16:
      return {16, 0x1p-7, 0x1.FEp127, 0x1p-126, 1e-2};
    case DType::Float32:
      return {32, FLT_EPSILON, FLT_MAX, FLT_MIN, 1e-6};
    case DType::Float64:
      return {64, DBL_EPSILON, DBL_MAX, DBL_MIN, 1e-15};
    case DType::Float8_e5m2:
      return {8, 0.25, 57344.0, 0x1p-14, 1.0};
    case DType::Float8_e4m3fn:
      return {8, 0.125, 448.0, 0x1p-6, 1.0};
    case DType::Float8_e5m2fnuz:
      return {8, 0.125, 57344.0, 0x1p-15, 1.0};
    case DType::Float8_e4m3fnuz:
      return {8, 0.125, 240.0, 0x1p-7, 1.0};
    case DType::Float8_e8m0fnu:
      return {8, 1.0, 0x1p127, 0x1p-127, 1.0};
    default:
      return {};
  }
}

static const char* const finfo_format =
    "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)";

static PyObject* finfo_get(PyObject* self, void* field) {
  const DType t = self_of(self);
  const FloatFacts f = float_facts(t);
  switch (reinterpret_cast<intptr_t>(field)) {
    case 0:
      return PyLong_FromLong(f.bits);
    case 1:
      return PyFloat_FromDouble(f.eps);
    case 2:
      return PyFloat_FromDouble(f.max);
    case 3:
      return PyFloat_FromDouble(f.min());
    case 4:
      return PyFloat_FromDouble(f.smallest_normal);
    case 5:
      return PyFloat_FromDouble(f.resolution);
    default:
      return guard([&] { return to_python(dtype_name(t)); });
  }
}
static void* field(intptr_t i) { return reinterpret_cast<void*>(i); }
static PyGetSetDef finfo_getset[] = {
    {"bits", finfo_get, nullptr, "Bits of one number.", field(0)},
    {"eps", finfo_get, nullptr,
     "The difference between 1.0 and the next number."
     "\n\nExample:\n    >>> torch.finfo(torch.float16).eps\n    0.0009765625",
     field(1)},
    {"max", finfo_get, nullptr,
     "The largest number."
     "\n\nExample:\n    >>> torch.finfo(torch.float16).max\n    65504.0",
     field(2)},
    {"min", finfo_get, nullptr,
     "The smallest number: the negative of max, where numbers have signs."
     "\n\nExample:\n    >>> torch.finfo(torch.float16).min\n    -65504.0",
     field(3)},
    {"tiny", finfo_get, nullptr, "The smallest positive normal number.", field(4)},
    {"smallest_normal", finfo_get, nullptr, "The smallest positive normal number.", field(4)},
    {"resolution", finfo_get, nullptr, "The approximate decimal resolution.", field(5)},
    {"dtype", finfo_get, nullptr, "The name of the type.", field(6)},
    {}};

static PyObject* finfo_repr(PyObject* self) {
  const FloatFacts f = float_facts(self_of(self));
  char text[256];
  std::snprintf(text, sizeof text, finfo_format, f.resolution, f.min(), f.max, f.eps, f.smallest_normal,
                f.smallest_normal, dtype_name(self_of(self)).data());
  return PyUnicode_FromString(text);
}

static PyObject* new_info(PyTypeObject* type, PyObject* args, PyObject* kwargs, bool floating) {
  static const char* names[] = {"type", nullptr};
  PyObject* dtype = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &dtype)) return nullptr;
  return guard([&]() -> PyObject* {
    const char* kind = floating ? "finfo" : "iinfo";
    if (dtype && !is_dtype_like(dtype))
      throw_python(PyExc_TypeError,
                   str(kind, "(): argument 'type' (position 1) must be torch.dtype, not ", type_name(dtype)));
    if (!dtype && !floating)
      throw_python(PyExc_TypeError, "iinfo() missing 1 required positional arguments: \"type\"");
    DType t = dtype ? parse_any_dtype(dtype) : get_default_dtype();
    if (!floating && is_quantized(t)) t = integer_dtype(t);
    if (is_special(t)) refuse_special_dtype(t);
    if (floating && is_complex(t)) t = real_dtype(t);
    if (floating && !is_floating(t))
      throw_python(
          PyExc_TypeError,
          str("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.",
              dtype_name(t), "'"));
    if (!floating && !is_integral(t))
      throw_python(PyExc_TypeError,
                   str("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.",
                       dtype_name(t), "'"));
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<PyBox<DType>*>(self)->value = t;
    return self;
  });
}
static PyObject* finfo_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return new_info(type, args, kwargs, true);
}
static PyObject* iinfo_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return new_info(type, args, kwargs, false);
}

static PyObject* iinfo_get(PyObject* self, void* field) {
  const DType t = self_of(self);
  const int bits = static_cast<int>(8 * element_size(t));
  switch (reinterpret_cast<intptr_t>(field)) {
    case 0:
      return PyLong_FromLong(bits);
    case 1:
      return is_signed(t) ? PyLong_FromLongLong((1ull << (bits - 1)) - 1)
                          : PyLong_FromUnsignedLongLong(bits == 64 ? ~0ull : (1ull << bits) - 1);
    case 2:
      return is_signed(t) ? PyLong_FromLongLong(static_cast<long long>(~0ull << (bits - 1)))
                          : PyLong_FromLong(0);
    default:
      return guard([&] { return to_python(dtype_name(t)); });
  }
}
static PyGetSetDef iinfo_getset[] = {{"bits", iinfo_get, nullptr, "Bits of one number.", field(0)},
                                     {"max", iinfo_get, nullptr, "The largest number.", field(1)},
                                     {"min", iinfo_get, nullptr, "The smallest number.", field(2)},
                                     {"dtype", iinfo_get, nullptr, "The name of the type.", field(3)},
                                     {}};
static PyObject* iinfo_repr(PyObject* self) {
  return guard([&] {
    auto get = [&](intptr_t i) { return PyRef(check(iinfo_get(self, field(i)))); };
    return PyUnicode_FromFormat("iinfo(min=%S, max=%S, dtype=%U)", get(2).get(), get(1).get(), get(3).get());
  });
}
static PyObject* info_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((self_of(a) == self_of(b)) == (op == Py_EQ));
}

static PyTypeObject FInfoType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.finfo",
    .tp_basicsize = sizeof(PyBox<DType>),
    .tp_dealloc = dealloc,
    .tp_repr = finfo_repr,
    .tp_str = finfo_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "finfo(type=None): the numerical limits of a floating point dtype."
        "\n\nArgs:\n    type (dtype or None): the dtype; None is the default one.\n\nExample:\n    >>> "
        "torch.finfo(torch.float32).bits\n    32",
    .tp_richcompare = info_compare,
    .tp_getset = finfo_getset,
    .tp_new = finfo_new,
    .tp_free = PyObject_Free,
};
static PyTypeObject IInfoType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.iinfo",
    .tp_basicsize = sizeof(PyBox<DType>),
    .tp_dealloc = dealloc,
    .tp_repr = iinfo_repr,
    .tp_str = iinfo_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "iinfo(type): the numerical limits of an integer dtype.",
    .tp_richcompare = info_compare,
    .tp_getset = iinfo_getset,
    .tp_new = iinfo_new,
    .tp_free = PyObject_Free,
};

static PyObject* py_get_default_dtype(PyObject*, PyObject*) { return wrap(get_default_dtype()); }
static PyObject* py_set_default_dtype(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!is_dtype_like(o))
      throw_python(PyExc_TypeError,
                   "invalid dtype object: only floating-point types are supported as the default type");
    const DType t = parse_dtype(o);
    if (!is_floating(t))
      throw_python(PyExc_TypeError, str("only floating-point types are supported as the default type"));
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}
static PyObject* py_promote_types(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 2) throw_python(PyExc_TypeError, "promote_types(): expected two torch.dtype arguments");
    for (int i = 0; i < 2; ++i)
      if (!is_dtype_like(args[i]))
        throw_python(PyExc_TypeError, str("promote_types(): argument 'type", i + 1, "' (position ", i + 1,
                                          ") must be torch.dtype, not ", type_name(args[i])));
    return wrap(promote_types(parse_any_dtype(args[0]), parse_any_dtype(args[1])));
  });
}
static PyObject* py_can_cast(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 2 || !is_dtype_like(args[0]) || !is_dtype_like(args[1]))
      throw_python(PyExc_TypeError, "can_cast(): expected two torch.dtype arguments");
    return PyBool_FromLong(can_cast(parse_any_dtype(args[0]), parse_any_dtype(args[1])));
  });
}
static PyMethodDef functions[] = {
    {"get_default_dtype", py_get_default_dtype, METH_NOARGS,
     "The dtype of tensors made from Python floats."
     "\n\nExample:\n    >>> torch.get_default_dtype()\n    torch.float32"},
    {"set_default_dtype", py_set_default_dtype, METH_O,
     "set_default_dtype($module, d, /)\n--\n\nSets the dtype of tensors made from Python floats."},
    {"promote_types", reinterpret_cast<PyCFunction>(py_promote_types), METH_FASTCALL,
     "promote_types(type1, type2): the smallest dtype that both fit in."
     "\n\nArgs:\n    type1 (dtype): one dtype.\n    type2 (dtype): the other.\n\nExample:\n    >>> "
     "torch.promote_types(torch.int32, torch.float16)\n    torch.float16"},
    {"_can_cast_dtypes", reinterpret_cast<PyCFunction>(py_can_cast), METH_FASTCALL, nullptr},
    {}};

template <class T>
static PyObject* make(PyTypeObject* type, T value) {
  auto* box = PyObject_New(PyBox<T>, type);
  if (!box) throw PythonError();
  box->value = value;
  return reinterpret_cast<PyObject*>(box);
}

void init_dtypes(PyObject* module) {
  add_type(module, "dtype", &DTypeType);
  add_type(module, "layout", &LayoutType);
  add_type(module, "memory_format", &MemoryFormatType);
  add_type(module, "finfo", &FInfoType);
  add_type(module, "iinfo", &IInfoType);
  for (int i = 0; i < kAllDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    PyObject* o = make(&DTypeType, t);
    dtypes[i] = reinterpret_cast<PyBox<DType>*>(o);
    check(PyModule_AddObjectRef(module, std::string(dtype_name(t)).c_str(), o));
  }
  check(PyModule_AddObjectRef(module, "bit", PyRef(wrap(DType::UInt1)).get()));
  for (auto [alias, t] : {std::pair{"float", DType::Float32},
                          {"double", DType::Float64},
                          {"half", DType::Float16},
                          {"short", DType::Int16},
                          {"int", DType::Int32},
                          {"long", DType::Int64},
                          {"chalf", DType::Complex32},
                          {"cfloat", DType::Complex64},
                          {"cdouble", DType::Complex128}})
    check(PyModule_AddObjectRef(module, alias, PyRef(wrap(t)).get()));
  for (int i = 0; i < 7; ++i) {  // the last one is known to Python alone
    layouts[i] = make(&LayoutType, static_cast<Layout>(i));
    check(PyModule_AddObjectRef(module, layout_names[i], layouts[i]));
  }
  add_type(module, "qscheme", &QSchemeType);
  for (int i = 0; i < 5; ++i) {
    qschemes[i] = make(&QSchemeType, static_cast<QScheme>(i));
    check(PyModule_AddObjectRef(module, qscheme_names[i], qschemes[i]));
  }
  for (int i = 0; i < 4; ++i) {
    formats[i] = make(&MemoryFormatType, static_cast<MemoryFormat>(i));
    check(PyModule_AddObjectRef(module, format_names[i], formats[i]));
  }
  add_functions(module, functions);
}

}  // namespace rushlight::python
