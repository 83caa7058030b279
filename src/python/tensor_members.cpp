// What a tensor says of itself: sizes, dtype, device and the like; its elements as Python numbers.
#include <cstring>

#include "autograd/meta.h"
#include "core/device_backend.h"
#include "core/lazy_clone.h"
#include "core/long_work.h"
#include "core/pending.h"
#include "core/quantizer.h"
#include "core/sparse.h"
#include "core/write_watch.h"
#include "ops/copy.h"
#include "ops/view.h"
#include "python/answered_facts.h"
#include "python/op_function.h"
#include "python/seen_through.h"
#include "python/types.h"
#include "transform/level.h"

namespace rushlight::python {

PyObject* wrap_scalar(const Scalar& s);

// --- facts

// A fact that the tensor's class may answer; `own` gives the tensor's.
template <class F>
static PyObject* asked(PyObject* self, uint32_t which, const char* fact, F own) {
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (t->flags & which) [[unlikely]]
      if (PyRef answer = answer_of_class(t, which, fact)) return answer.release();
    return own(t);
  });
}
// Of several numbers, all or one of them.
static PyObject* answered_sizes(const Tensor& t, uint32_t which, const char* fact, PyObject* dim,
                                PyTypeObject* type) {
  PyRef answer = answer_of_class(t, which, fact);
  if (!answer) return nullptr;
  PyRef all(check(PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), answer.get())));
  return dim ? check(PySequence_GetItem(all.get(), to_int(dim))) : all.release();
}

static PyObject* get_shape(PyObject* self, void*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    if (t->flags & kAnswersSizes) [[unlikely]]
      if (PyObject* sizes = answered_sizes(t, kAnswersSizes, "sym_size", nullptr, &SizeType)) return sizes;
    return wrap_size(t.sizes());
  });
}
static PyObject* get_dtype(PyObject* self, void*) { return wrap(tensor_of(self).dtype()); }
static PyObject* get_device(PyObject* self, void*) {
  return asked(self, kAnswersDevice, "device", [](const Tensor& t) { return wrap(t.device()); });
}
static PyObject* get_layout(PyObject* self, void*) {
  return asked(self, kAnswersLayout, "layout", [](const Tensor& t) { return wrap(layout_of(t)); });
}
static PyObject* get_is_quantized(PyObject* self, void*) {
  return PyBool_FromLong(is_quantized(tensor_of(self)));
}
static PyObject* get_is_sparse(PyObject* self, void*) {
  return PyBool_FromLong(layout_of(tensor_of(self)) == Layout::SparseCoo);
}
static PyObject* get_is_sparse_csr(PyObject* self, void*) {
  return PyBool_FromLong(layout_of(tensor_of(self)) == Layout::SparseCsr);
}
static PyObject* get_ndim(PyObject* self, void*) {
  return asked(self, kAnswersSizes, "dim", [](const Tensor& t) { return PyLong_FromLongLong(t.dim()); });
}
static PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromSize_t(tensor_of(self).itemsize()); }
static PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(tensor_of(self).nbytes()); }
static PyObject* get_is_cpu(PyObject* self, void*) { return PyBool_FromLong(tensor_of(self).is_cpu()); }
static PyObject* get_is_cuda(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).device().type() == DeviceType::CUDA);
}
static PyObject* get_is_meta(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).device().is_meta());
}
static PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
static PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }

static PyObject* by_operator(PyObject* self, void* name) {
  return guard([&]() -> PyObject* {
    OpFunction* f = find_method(static_cast<const char*>(name));
    if (!f) f = find_function("", static_cast<const char*>(name));
    if (!f)
      throw_python(PyExc_NotImplementedError,
                   str("no operator '", static_cast<const char*>(name), "' is registered"));
    return call_operator(f, &self, 1);
  });
}
static void* op_name(const char* name) { return const_cast<char*>(name); }

static int set_part(PyObject* self, PyObject* value, void* name) {
  PyRef part(by_operator(self, name));
  if (!part) return -1;
  PyRef result(PyObject_CallMethod(part.get(), "copy_", "O", value));
  return result ? 0 : -1;
}

static PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr,
     "The sizes of the dimensions."
     "\n\nExample:\n    >>> torch.ones(2, 3).shape\n    torch.Size([2, 3])",
     nullptr},
    {"dtype", get_dtype, nullptr,
     "The type of the elements."
     "\n\nExample:\n    >>> torch.ones(2).dtype\n    torch.float32",
     nullptr},
    {"device", get_device, nullptr,
     "Where the elements live."
     "\n\nExample:\n    >>> torch.ones(2).device\n    device(type='cpu')",
     nullptr},
    {"layout", get_layout, nullptr, "How the elements are laid out.", nullptr},
    {"ndim", get_ndim, nullptr,
     "The number of dimensions."
     "\n\nExample:\n    >>> torch.ones(2, 3).ndim\n    2",
     nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"is_cpu", get_is_cpu, nullptr, nullptr, nullptr},
    {"is_cuda", get_is_cuda, nullptr, nullptr, nullptr},
    {"is_meta", get_is_meta, nullptr, nullptr, nullptr},
    {"is_mps", get_false, nullptr, nullptr, nullptr},
    {"is_xpu", get_false, nullptr, nullptr, nullptr},
    {"is_xla", get_false, nullptr, nullptr, nullptr},
    {"is_hpu", get_false, nullptr, nullptr, nullptr},
    {"is_ipu", get_false, nullptr, nullptr, nullptr},
    {"is_maia", get_false, nullptr, nullptr, nullptr},
    {"is_mtia", get_false, nullptr, nullptr, nullptr},
    {"is_vulkan", get_false, nullptr, nullptr, nullptr},
    {"is_mkldnn", get_false, nullptr, nullptr, nullptr},
    {"is_quantized", get_is_quantized, nullptr, "Whether the elements are integers that stand for numbers.",
     nullptr},
    {"is_sparse", get_is_sparse, nullptr, "Whether the layout is sparse_coo.", nullptr},
    {"is_sparse_csr", get_is_sparse_csr, nullptr, "Whether the layout is sparse_csr.", nullptr},
    {"is_nested", get_false, nullptr, nullptr, nullptr},
    {"name", get_none, nullptr, nullptr, nullptr},
    {"T", by_operator, nullptr,
     "All dimensions reversed."
     "\n\nExample:\n    >>> torch.ones(2, 3).T.shape\n    torch.Size([3, 2])",
     op_name("numpy_T")},
    {"mT", by_operator, nullptr, "The last two dimensions swapped.", op_name("mT")},
    {"H", by_operator, nullptr, "The conjugate transpose of a matrix.", op_name("matrix_H")},
    {"mH", by_operator, nullptr, "The last two dimensions swapped, conjugated.", op_name("mH")},
    {"real", by_operator, set_part, "The real parts.", op_name("real")},
    {"imag", by_operator, set_part, "The imaginary parts.", op_name("imag")},
    {}};

static PyObject* m_dim(PyObject* self, PyObject*) { return get_ndim(self, nullptr); }
static PyObject* m_numel(PyObject* self, PyObject*) {
  return asked(self, kAnswersSizes, "sym_numel",
               [](const Tensor& t) { return PyLong_FromLongLong(t.numel()); });
}
static PyObject* m_element_size(PyObject* self, PyObject*) { return get_itemsize(self, nullptr); }
static PyObject* m_storage_offset(PyObject* self, PyObject*) {
  return asked(self, kAnswersSizes, "sym_storage_offset",
               [](const Tensor& t) { return PyLong_FromLongLong(t.storage_offset()); });
}
static PyObject* m_data_ptr(PyObject* self, PyObject*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    check_memory(t);
    RL_CHECK(!is_sparse(t), "Cannot access data pointer of Tensor that doesn't have storage");
    if (t->storage) expose_contents(*t->storage);
    if (t->storage && !t->storage->read_only()) note_write(*t->storage);
    return PyLong_FromVoidPtr(t.numel() && !t.device().is_meta() && t->storage->nbytes() ? t.data_ptr()
                                                                                         : nullptr);
  });
}
static PyObject* m_is_floating_point(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_floating(tensor_of(self).dtype()));
}
static PyObject* m_is_complex(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_complex(tensor_of(self).dtype()));
}
static PyObject* m_is_signed(PyObject* self, PyObject*) {
  return PyBool_FromLong(is_signed(tensor_of(self).dtype()));
}
static PyObject* m_is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->flags & kInference) != 0);
}
static PyObject* m_is_conj(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->flags & kPendingConj) != 0);
}
static PyObject* m_is_neg(PyObject* self, PyObject*) {
  return PyBool_FromLong((tensor_of(self)->flags & kPendingNeg) != 0);
}
template <uint32_t flag>
static PyObject* m_resolve(PyObject* self, PyObject*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    return t->flags & flag ? wrap(ops::clone(t)) : Py_NewRef(self);
  });
}
static PyObject* m_get_device(PyObject* self, PyObject*) {
  return PyLong_FromLong(tensor_of(self).is_cpu() ? -1 : std::max<int>(tensor_of(self).device().index(), 0));
}

static PyObject* m_is_same_size(PyObject* self, PyObject* other) {
  return guard([&]() -> PyObject* {
    if (is_tensor(other) && may_be_overridden(tensor_of(other))) [[unlikely]] {
      PyRef method(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "is_same_size")));
      PyObject* args[] = {self, other};
      PyObject* result = dispatch_torch_function(method.get(), CallArgs{args, 2, nullptr});
      if (result || PyErr_Occurred()) return result;
    }
    return PyBool_FromLong(tensor_of(self).sizes() ==
                           expect_tensor(other, "is_same_size(): argument 'other' (position 1)").sizes());
  });
}

// The one optional argument of size() and stride().
static PyObject* optional_dim(const char* method, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (total > 1)
    throw_python(PyExc_TypeError, str(method, "() takes from 0 to 1 positional arguments but ",
                                      static_cast<int64_t>(total), " were given"));
  if (total == 0) return nullptr;
  if (n == 0 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "dim") != 0)
    throw_python(PyExc_TypeError, str(method, "() got an unexpected keyword argument '",
                                      string_view(PyTuple_GET_ITEM(kwnames, 0)), "'"));
  if (args[0] == Py_None) return nullptr;
  if (!is_index(args[0]))
    throw_python(PyExc_TypeError,
                 str(method, "(): argument 'dim' (position 1) must be int, not ", type_name(args[0])));
  return args[0];
}
static PyObject* m_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    PyObject* dim = optional_dim("size", args, n, kwnames);
    if (t->flags & kAnswersSizes) [[unlikely]]
      if (PyObject* sizes = answered_sizes(t, kAnswersSizes, "sym_size", dim, &SizeType)) return sizes;
    return dim ? PyLong_FromLongLong(t.size(to_int(dim))) : wrap_size(t.sizes());
  });
}
static PyObject* m_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (t->flags & kAnswersStrides) [[unlikely]] {
      PyObject* dim = optional_dim("stride", args, n, kwnames);
      if (PyObject* steps = answered_sizes(t, kAnswersStrides, "sym_stride", dim, &PyTuple_Type))
        return steps;
    }
    RL_CHECK(layout_of(t) <= Layout::SparseCoo, "Sparse CSR tensors do not have strides");
    if (is_sparse(t)) {  // COO: zeros, as in PyTorch
      if (PyObject* dim = optional_dim("stride", args, n, kwnames))
        return wrap_dim(to_int(dim), t.dim(), false), PyLong_FromLong(0);
      PyObject* zeros = check(PyTuple_New(t.dim()));
      for (int64_t i = 0; i < t.dim(); ++i) PyTuple_SET_ITEM(zeros, i, PyLong_FromLong(0));
      return zeros;
    }
    if (PyObject* dim = optional_dim("stride", args, n, kwnames))
      return PyLong_FromLongLong(t.stride(to_int(dim)));
    PyObject* tuple = check(PyTuple_New(t.dim()));
    for (int64_t i = 0; i < t.dim(); ++i)
      PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(t->strides[static_cast<size_t>(i)]));
    return tuple;
  });
}

static PyObject* m_is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guard([&] {
    const auto format = format_argument("is_contiguous", args, n, kwnames);
    const Tensor& t = tensor_of(self);
    if (t->flags & kAnswersStrides) [[unlikely]]
      return PyBool_FromLong(answered_contiguous(t, format.value_or(MemoryFormat::Contiguous)));
    return PyBool_FromLong(format ? t.is_contiguous(*format) : t.is_contiguous());
  });
}

// --- elements as Python objects

template <class T>
static PyObject* element_object(const T& v) {
  if constexpr (std::is_same_v<T, bool>)
    return PyBool_FromLong(v);
  else if constexpr (is_complex_v<T>)
    return PyComplex_FromDoubles(convert<double>(v.real()), convert<double>(v.imag()));
  else if constexpr (is_floating_v<T>)
    return PyFloat_FromDouble(convert<double>(v));
  else if constexpr (std::is_unsigned_v<T>)
    return PyLong_FromUnsignedLongLong(v);
  else
    return PyLong_FromLongLong(v);
}

template <class T>
static PyObject* nested_list(const Tensor& t, size_t dim, const T* at) {
  if (dim == t.sizes().size()) return check(element_object(*at));
  const int64_t n = t->sizes[dim], stride = t->strides[dim];
  PyRef list(check(PyList_New(n)));
  if (dim + 1 == t.sizes().size()) {
    for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, check(element_object(at[i * stride])));
    return list.release();
  }
  for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, nested_list(t, dim + 1, at + i * stride));
  return list.release();
}

PyRef seen_through(PyObject* self) {
  Tensor t = tensor_of(self);
  if (!t->wrapping) return PyRef();
  for (; t->wrapping; t = Tensor(t->wrapping->inner))
    if (t->wrapping->batch_dim >= 0) return PyRef();
  if (!(t->flags & kPythonDispatch)) return PyRef();
  return PyRef(check(wrap(t)));
}

static PyObject* m_tolist(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* {
    if (const PyRef inner = seen_through(self))
      return check(PyObject_CallMethod(inner.get(), "tolist", nullptr));
    const Tensor& given = tensor_of(self);
    RL_CHECK(!(given->flags & kPythonDispatch) || given.has_data() || is_sparse(given),
             ".tolist() is not supported for tensor subclasses, got ", type_name(self));
    RL_CHECK_AS(NotImplemented, !given.device().is_meta(), "Cannot copy out of meta tensor; no data!");
    check_memory(given);
    check_memory_for(given.numel(),
                     sizeof(PyObject*));  // an expanded tensor may have more elements than memory
    const Tensor t = is_pending(given) ? ops::clone(ops::detach(given))
                     : given.is_cpu()  ? given
                                       : ops::to(ops::detach(given), std::nullopt, Device{});
    PyObject* out = nullptr;
    visit_dtype(StorageTypes{}, t.dtype(), "tolist", [&](auto tag) {
      using T = decltype(tag);
      out = nested_list<T>(t, 0, static_cast<const T*>(t.data_ptr()));
    });
    return out;
  });
}

static PyObject* m_qscheme(PyObject* self, PyObject*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    if (!t->quantizer)
      RL_NOT_IMPLEMENTED(
          "Could not run 'aten::qscheme' with arguments from the 'CPU' backend: the tensor is "
          "not quantized (",
          describe(t), ")");
    return wrap(t->quantizer->scheme);
  });
}

static PyObject* m_item(PyObject* self, PyObject*) {
  return guard([&]() -> PyObject* {
    if (const PyRef inner = seen_through(self))
      return check(PyObject_CallMethod(inner.get(), "item", nullptr));
    const Tensor& t = tensor_of(self);
    RL_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
    return wrap_scalar(read_item(t));
  });
}

static PyObject* m_is_pinned(PyObject* self, PyObject*, PyObject*) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    const bool may_be = device_in_use() && !in_bad_fork() && t.is_cpu() && t.has_data();
    return PyBool_FromLong(may_be && device_backend(DeviceType::CUDA).is_pinned(t.data_ptr()));
  });
}

// --- wrappers of other types

static PyTypeObject* expect_class(PyObject* cls) {
  if (!PyType_Check(cls)) throw_python(PyExc_TypeError, "cls must be a type (got " + type_name(cls) + ")");
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorBaseType))
    throw_python(PyExc_TypeError,
                 "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. "
                 "Make sure your class inherits from Tensor.");
  return reinterpret_cast<PyTypeObject*>(cls);
}

static PyObject* m_as_subclass(PyObject* self, PyObject* cls) {
  return guard([&] {
    PyTypeObject* type = expect_class(cls);
    return wrap_as(type, ops::alias(tensor_of(self)));
  });
}

// _make_subclass(cls, data, require_grad=False)
static PyObject* m_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "cls",  "data", "require_grad", "dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout",
      nullptr};
  PyObject *cls, *data, *policy = nullptr;
  int require_grad = 0, device = 0, layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pOpp", const_cast<char**>(names), &cls, &data,
                                   &require_grad, &policy, &device, &layout))
    return nullptr;
  return guard([&] {
    PyTypeObject* type = expect_class(cls);
    const Tensor& t = expect_tensor(data, "_make_subclass(): argument 'data' (position 2)");
    // Shares memory, stands outside the graph, counts its own versions.
    Tensor own = make_view(t, t.sizes(), t.strides(), t.storage_offset(), false);
    own->flags &= ~kAutograd;
    PyRef self(wrap_as(type, own));
    own->flags |= answered_flags(policy, device, layout);
    if (require_grad) set_requires_grad(own, true);
    return self.release();
  });
}

template <class F>
static PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

static PyMethodDef methods[] = {
    {"size", method(m_size), kFast,
     "size(dim=None): all sizes, or one."
     "\n\nArgs:\n    dim (int or None): the dimension; None gives all sizes.\n\nExample:\n    >>> "
     "torch.ones(2, 3).size(), torch.ones(2, 3).size(-1)\n    (torch.Size([2, 3]), 3)"},
    {"stride", method(m_stride), kFast, "stride(dim=None): the steps between elements, in elements."},
    {"dim", m_dim, METH_NOARGS,
     "The number of dimensions."
     "\n\nExample:\n    >>> torch.ones(2, 3).dim()\n    2"},
    {"ndimension", m_dim, METH_NOARGS,
     "The number of dimensions."
     "\n\nExample:\n    >>> torch.ones(2, 3).ndimension()\n    2"},
    {"numel", m_numel, METH_NOARGS,
     "The number of elements."
     "\n\nExample:\n    >>> torch.ones(2, 3).numel()\n    6"},
    {"nelement", m_numel, METH_NOARGS, "The number of elements."},
    {"element_size", m_element_size, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", m_storage_offset, METH_NOARGS, "Where the tensor begins in its storage, in elements."},
    {"data_ptr", m_data_ptr, METH_NOARGS,
     "The address of the first element."
     "\n\nExample:\n    >>> x = torch.ones(2)\n    >>> x.data_ptr() == x.view(2, 1).data_ptr()\n    True"},
    {"is_contiguous", method(m_is_contiguous), kFast, "is_contiguous(memory_format=torch.contiguous_format)"},
    {"is_floating_point", m_is_floating_point, METH_NOARGS,
     "Whether the dtype is a floating one.\n\nExample:\n    >>> torch.ones(1).is_floating_point()\n    True"},
    {"is_complex", m_is_complex, METH_NOARGS, nullptr},
    {"is_signed", m_is_signed, METH_NOARGS, nullptr},
    {"is_inference", m_is_inference, METH_NOARGS, nullptr},
    {"is_same_size", m_is_same_size, METH_O, nullptr},
    {"is_conj", m_is_conj, METH_NOARGS, nullptr},
    {"is_neg", m_is_neg, METH_NOARGS, nullptr},
    {"is_pinned", method(m_is_pinned), METH_VARARGS | METH_KEYWORDS, "Whether the memory is page-locked."},
    {"resolve_conj", m_resolve<kPendingConj>, METH_NOARGS, nullptr},
    {"resolve_neg", m_resolve<kPendingNeg>, METH_NOARGS, nullptr},
    {"get_device", m_get_device, METH_NOARGS, "The index of the device, -1 on the CPU."},
    {"qscheme", m_qscheme, METH_NOARGS, "The scheme of a quantised tensor: torch.per_tensor_affine, ..."},
    {"item", m_item, METH_NOARGS,
     "The only element as a Python number."
     "\n\nExample:\n    >>> torch.tensor([2.5]).item()\n    2.5"},
    {"tolist", m_tolist, METH_NOARGS,
     "The elements as nested lists."
     "\n\nExample:\n    >>> torch.ones(2, 1).tolist()\n    [[1.0], [1.0]]"},
    {"_make_subclass", method(m_make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {}};

// No __torch_function__ sees it: a class's own would convert the result back.
static PyMethodDef as_subclass = {"as_subclass", m_as_subclass, METH_O,
                                  "as_subclass(cls): the same data as another tensor type."};

void init_tensor_members() {
  add_tensor_members(methods, properties);
  add_tensor_member(as_subclass.ml_name,
                    PyRef(check(PyDescr_NewMethod(&TensorBaseType, &as_subclass))).get());
}

}  // namespace rushlight::python
