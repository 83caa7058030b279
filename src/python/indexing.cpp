// x[index] and x[index] = value: basic indices become one view, tensors and lists go to the index operators.
#include "core/sparse.h"
#include "ops/copy.h"
#include "ops/view.h"
#include "python/call_note.h"
#include "python/factory.h"
#include "python/types.h"

namespace rushlight::python {

constexpr const char* kScalarIndex =
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
    "a 0-dim tensor to a number";

// A slice with plain ints in place of sizes of a traced program.
static PyRef of_ints(PyObject* slice) {
  auto* s = reinterpret_cast<PySliceObject*>(slice);
  if (!is_traced_size(s->start) && !is_traced_size(s->stop)) return PyRef::borrow(slice);
  auto plain = [](PyObject* o) { return is_traced_size(o) ? traced_size_value(o) : PyRef::borrow(o); };
  return PyRef(check(PySlice_New(plain(s->start).get(), plain(s->stop).get(), s->step)));
}

// --- a view under construction

// Collects basic indices. Outside of autograd and other interceptors only sizes and strides change and one
// view is made at the end; else every step is an operator, so that each is recorded under its own name.
class ViewBuilder {
 public:
  explicit ViewBuilder(const Tensor& t)
      : tensor_(t), recorded_(dispatch_state.always != 0 || (all_flags(t) & kDispatchBits & ~kNotCpu) != 0) {
    if (recorded_) return;
    sizes_ = t->sizes;
    strides_ = t->strides;
    offset_ = t->offset;
  }
  int64_t dim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t size(int64_t d) const { return sizes()[static_cast<size_t>(d)]; }

  void select(int64_t d, int64_t index) {
    RL_CHECK_INDEX(dim() > 0, kScalarIndex);
    const int64_t n = size(d);
    RL_CHECK_INDEX(index >= -n && index < n, "index ", index, " is out of bounds for dimension ",
                   reported_dim_ < 0 ? d : reported_dim_, " with size ", n);
    if (index < 0) index += n;
    if (recorded_) {
      tensor_ = ops::select(tensor_, d, index);
      return;
    }
    const auto i = static_cast<size_t>(d);
    offset_ += index * strides_[i];
    sizes_.erase(i);
    strides_.erase(i);
  }
  void slice(int64_t d, PyObject* object) {
    RL_CHECK_INDEX(dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
    Py_ssize_t start, stop, step;
    check(PySlice_Unpack(of_ints(object).get(), &start, &stop, &step));
    const Py_ssize_t length = PySlice_AdjustIndices(size(d), &start, &stop, step);
    if (step == 1 && length == size(d)) return;
    if (recorded_) {
      tensor_ = record_slice(d, start, stop, step);
      return;
    }
    const auto i = static_cast<size_t>(d);
    if (length > 0) offset_ += start * strides_[i];
    sizes_[i] = length;
    strides_[i] *= step;
  }
  void unsqueeze(int64_t d) {
    if (recorded_) {
      tensor_ = ops::unsqueeze(tensor_, d);
      return;
    }
    const auto i = static_cast<size_t>(d);
    strides_.insert(i, i < sizes_.size() ? sizes_[i] * strides_[i] : 1);
    sizes_.insert(i, 1);
  }
  void report_dim(int64_t d) { reported_dim_ = d; }
  // The finished view; a fresh one even when nothing was asked.
  Tensor finish() {
    if (!recorded_) return make_view(tensor_, sizes_, strides_, offset_);
    return tensor_;
  }
  bool recorded() const { return recorded_; }

 private:
  static uint32_t all_flags(const Tensor& t) { return t->flags | (t->view_base ? t->view_base->flags : 0); }
  IntList sizes() const { return recorded_ ? tensor_.sizes() : IntList(sizes_); }
  Tensor record_slice(int64_t d, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t step) const {
    // Before the front, a negative step ends at None: -1 would mean the last element.
    const OptInt end = stop < 0 ? OptInt() : OptInt(stop);
    return ops::slice(tensor_, d, start, end, step);
  }

  Tensor tensor_;
  bool recorded_;
  Dims sizes_, strides_;
  int64_t offset_ = 0, reported_dim_ = -1;
};

// --- reading an index

struct Index {
  ViewBuilder view;
  std::vector<Tensor> tensors;  // per dimension of the view; undefined for whole dimensions
  bool any_tensor = false;
  int64_t covered = 0;  // dimensions that `tensors` stand for; a mask stands for several
};

static Tensor sequence_tensor(PyObject* o) {
  if (is_ndarray(o)) return tensor_from_data(o, std::nullopt);
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) PyErr_Clear();
  if (n == 0) return empty_tensor({0}, DType::Int64);
  return tensor_from_data(o, std::nullopt);
}

static bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

static int64_t dims_consumed(PyObject* o) {
  if (is_tensor(o)) return is_mask(tensor_of(o)) ? tensor_of(o).dim() : 1;
  return o == Py_None || o == Py_Ellipsis || PyBool_Check(o) ? 0 : 1;
}

static void add_tensor(Index& index, int64_t& dim, Tensor t) {
  for (; index.covered < dim; ++index.covered) index.tensors.emplace_back();
  const int64_t consumed = is_mask(t) ? t.dim() : 1;
  RL_CHECK_INDEX(dim + consumed <= index.view.dim(), "too many indices for tensor of dimension ",
                 index.view.dim());
  if (is_mask(t))
    for (int64_t i = 0; i < consumed; ++i)
      RL_CHECK_INDEX(t->sizes[static_cast<size_t>(i)] == index.view.size(dim + i), "The shape of the mask ",
                     t.sizes(), " at index ", i, " does not match the shape of the indexed tensor ",
                     index.view.finish().sizes(), " at index ", dim + i);
  index.tensors.push_back(std::move(t));
  index.any_tensor = true;
  index.covered += consumed;
  dim += consumed;
}

// True or False adds a dimension of size 1 or 0.
static void add_bool(Index& index, int64_t& dim, bool value) {
  index.view.unsqueeze(dim);
  Tensor positions = empty_tensor({value ? 1 : 0}, DType::Int64);
  if (value) *positions.data<int64_t>() = 0;
  add_tensor(index, dim, std::move(positions));
}

static void add_tensor_index(Index& index, int64_t& dim, const Tensor& t) {
  if (t.dim() > 0 || !is_integral_or_bool(t.dtype())) {
    RL_CHECK_INDEX(is_integral_or_bool(t.dtype()),
                   "tensors used as indices must be long, int, byte or bool tensors");
    return add_tensor(index, dim, t);
  }
  // Inside a function transform a number may differ from example to example.
  if (t->wrapping && !is_mask(t)) return add_tensor(index, dim, t);
  if (is_mask(t)) return add_bool(index, dim, read_scalar(t).to<bool>());
  index.view.select(dim, read_scalar(t).to_int());
}

[[noreturn]] static void throw_bad_index(PyObject* o) {
  throw_python(PyExc_IndexError,
               "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
               "indices (got " +
                   type_name(o) + ")");
}

static void add_index(Index& index, int64_t& dim, PyObject* o, int64_t position, int64_t specified) {
  const int64_t n = index.view.dim();
  if (PyLong_CheckExact(o)) {
    index.view.report_dim(position);
    index.view.select(dim, to_int(o));
  } else if (PySlice_Check(o)) {
    index.view.slice(dim++, o);
  } else if (o == Py_None) {
    index.view.unsqueeze(dim++);
  } else if (o == Py_Ellipsis) {
    dim += n - specified;
  } else if (is_tensor(o)) {
    add_tensor_index(index, dim, tensor_of(o));
  } else if (PyBool_Check(o) || is_numpy_bool(o)) {
    add_bool(index, dim, to_bool(o));
  } else if (is_int(o)) {
    index.view.select(dim, to_int(o));
  } else if (PySequence_Check(o) && !PyDict_Check(o)) {
    add_tensor_index(index, dim, sequence_tensor(o));
  } else if (is_index(o)) {
    index.view.select(dim, to_int(o));
  } else {
    throw_bad_index(o);
  }
}

// A list that holds slices, sequences or tensors is read as a tuple, with PyTorch's warning.
static bool list_means_tuple(PyObject* o) {
  if (!PyList_CheckExact(o) || PyList_GET_SIZE(o) >= 32) return false;
  for (PyObject* item : Items(o)) {
    if (is_tensor(item) || PyList_Check(item) || PyTuple_Check(item) || PySlice_Check(item) ||
        item == Py_Ellipsis || item == Py_None) {
      show_warning(
          "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead "
          "of x[seq]");
      return true;
    }
  }
  return false;
}

static Index read_index(const Tensor& t, PyObject* o) {
  Index index{ViewBuilder(t), {}};
  PyObject* const* items = &o;
  Py_ssize_t n = 1;
  std::optional<Items> given;
  const bool as_list = !PyTuple_Check(o) && list_means_tuple(o);
  if (PyTuple_Check(o) || as_list) {
    items = given.emplace(o).data();
    n = given->size();
  }
  int64_t specified = 0, dim = 0;
  for (Py_ssize_t i = 0; i < n; ++i) specified += dims_consumed(items[i]);
  RL_CHECK_INDEX(t.dim() > 0 || specified == 0 || n > 1 || PySlice_Check(items[0]), kScalarIndex);
  RL_CHECK_INDEX(specified <= t.dim() || t.dim() == 0, "too many indices for tensor of dimension ", t.dim());
  // What an ellipsis stands for is counted on the tensor as it was.
  int64_t original = 0, added = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const int64_t before = index.view.dim();
    if (items[i] == Py_Ellipsis) {
      const int64_t whole = t.dim() - specified;
      dim += whole;
      original += whole;
      specified = t.dim();  // a second ellipsis stands for nothing
      continue;
    }
    add_index(index, dim, items[i], original, specified);
    original += dims_consumed(items[i]);
    added += index.view.dim() - before;
  }
  return index;
}

static const Op& index_operator(const char* name) {
  const auto found = operator_table().find("", name);
  if (found.empty()) RL_NOT_IMPLEMENTED("no operator '", name, "' is registered");
  return *found[0];
}

static Tensor gather(const Tensor& source, const std::vector<Tensor>& tensors) {
  static const Op& op = index_operator("index");
  const Value values[] = {Value(source), Value(TensorList(tensors))};
  Results results;
  if (source.numel() > (1 << 15)) {
    GilRelease released;
    call_boxed(op, values, results);
  } else {
    call_boxed(op, values, results);
  }
  return std::move(results.tensors[0]);
}

static void scatter(const Tensor& target, const std::vector<Tensor>& tensors, const Tensor& value) {
  static const Op& op = index_operator("index_put_");
  std::vector<Value> values = {Value(target), Value(TensorList(tensors)), Value(value), Value(false)};
  for (size_t i = 4; i < op.schema.parameters.size(); ++i)
    values.push_back(op.schema.parameters[i].default_value);
  Results results;
  call_boxed(op, values.data(), results);
}

// --- x[index]

// Never `t` itself, also where all of it is asked for.
static Tensor view_of(const Tensor& t, ViewBuilder& view) {
  Tensor result = view.finish();
  return view.recorded() && result.is_same(t) ? ops::alias(t) : result;
}

static Tensor get_item(const Tensor& t, PyObject* o) {
  if (PyLong_CheckExact(o) || PySlice_Check(o)) {
    ViewBuilder view(t);
    if (PySlice_Check(o))
      view.slice(0, o);
    else
      view.select(0, to_int(o));
    return view_of(t, view);
  }
  Index index = read_index(t, o);
  if (!index.any_tensor) return view_of(t, index.view);
  return gather(index.view.finish(), index.tensors);
}

// Whether an index, or a value that is assigned, has a __torch_function__ of its own.
static bool has_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || type == &PyLong_Type || type == &PySlice_Type || type == &PyFloat_Type ||
      type == &PyBool_Type || type == &PyList_Type || o == Py_None || o == Py_Ellipsis)
    return false;
  if (is_tensor(o)) return (tensor_of(o)->flags & kPythonSubclass) && function_state.subclasses_enabled;
  if (!PyTuple_Check(o)) return type_has_torch_function(type);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
    if (PyObject* item = PyTuple_GET_ITEM(o, i); !PyTuple_Check(item) && has_override(item)) return true;
  return false;
}
// What __torch_function__ of an index or a value answers; null when there is none.
static PyObject* override_by_operand(const char* name, PyObject* self, PyObject* o, PyObject* value) {
  if (!has_override(o) && !(value && has_override(value))) [[likely]]
    return nullptr;
  PyRef callable(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  PyObject* args[] = {self, o, value};
  PyObject* result = dispatch_torch_function(callable.get(), CallArgs{args, value ? 3 : 2, nullptr});
  if (!result && PyErr_Occurred()) throw PythonError();
  return result;
}

static PyObject* mp_subscript(PyObject* self, PyObject* o) {
  try {
    const Tensor& t = tensor_of(self);
    if (PyObject* result = override_slot("__getitem__", self, o)) return result;
    if (!PyLong_CheckExact(o) && !PySlice_Check(o))
      if (PyObject* result = override_by_operand("__getitem__", self, o, nullptr)) return result;
    return wrap(get_item(t, o));
  } catch (...) {
    set_error_from_exception();
    return nullptr;
  }
}

static PyObject* sq_item(PyObject* self, Py_ssize_t i) {
  return guard([&] {
    ViewBuilder view(tensor_of(self));
    view.select(0, i);
    return wrap(view.finish());
  });
}

// --- x[index] = value

static Tensor value_tensor(const Tensor& t, PyObject* value) {
  if (is_tensor(value)) return tensor_of(value);
  if (is_number(value)) {
    Tensor number = empty_tensor({}, is_quantized(t.dtype()) ? DType::Float32 : t.dtype());
    store_number(number, 0, value);
    return number;
  }
  throw_python(PyExc_TypeError,
               str("can't assign a ", type_name(value), " to a torch.", legacy_name(t.dtype()), "Tensor"));
}

// NumPy and PyTorch let a value have extra leading dimensions of size 1: those beyond `rank` go.
static Tensor drop_leading_ones(const Tensor& value, int64_t rank) {
  if (value.dim() <= rank) return value;
  const auto sizes = value.sizes();
  size_t first = 0;
  while (first < sizes.size() && static_cast<int64_t>(sizes.size() - first) > rank && sizes[first] == 1)
    ++first;
  return first ? ops::view(value, sizes.slice(first)) : value;
}

static void assign(const Tensor& view, const Tensor& value) {
  Tensor source = drop_leading_ones(value, view.dim());
  // Repeated values may lie in the tensor itself: x[:2] = x[1].
  if (source->storage && source->storage == view->storage && source.sizes() != view.sizes())
    source = ops::expand(source, view.sizes(), false);
  if (source.dim() == 0 && view.is_cpu() && source.is_cpu())
    ops::fill_(view, source);
  else
    ops::copy_(view, source, false);
}

static void set_item(const Tensor& t, PyObject* o, PyObject* value) {
  Tensor source = value_tensor(t, value);
  if (PyLong_CheckExact(o) || PySlice_Check(o)) {
    ViewBuilder view(t);
    if (PySlice_Check(o))
      view.slice(0, o);
    else
      view.select(0, to_int(o));
    return assign(view.finish(), source);
  }
  if (o == Py_Ellipsis) return assign(t, source);
  Index index = read_index(t, o);
  Tensor view = index.view.finish();
  if (!index.any_tensor) return assign(view, source);
  scatter(view, index.tensors, drop_leading_ones(source, 0));
}

static int mp_assign(PyObject* self, PyObject* o, PyObject* value) {
  return guard_status([&] {
    const Tensor& t = tensor_of(self);
    if (!value) throw_python(PyExc_TypeError, "Tensor does not support deleting items");
    if (PyRef result{override_slot("__setitem__", self, o, value)}; result) return;
    if (PyRef result{override_by_operand("__setitem__", self, o, value)}; result) return;
    if (is_sparse(t)) throw_python(PyExc_TypeError, "Cannot assign to a sparse tensor");
    set_item(t, o, value);
  });
}

// --- len and iteration

static Py_ssize_t tensor_length(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (may_be_overridden(t)) [[unlikely]] {
    PyRef result(guard([&] { return override_slot("__len__", self); }));
    if (result) return PyLong_AsSsize_t(result.get());
    if (PyErr_Occurred()) return -1;
  }
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    add_notes({});
    return -1;
  }
  return t->sizes[0];
}

PyObject* tensor_iter(PyObject* self) {
  return guard([&] {
    const Tensor& t = tensor_of(self);
    if (t.dim() == 0) throw_python(PyExc_TypeError, "iteration over a 0-d tensor");
    // Rows of a subclass are what its __torch_function__ makes of unbind's; a trace warns of the loop.
    PyRef rows(may_be_overridden(t) ? check(PyObject_CallMethod(self, "_iterated_rows", nullptr))
                                    : wrap_tuple(ops::unbind(t, 0)));
    return check(PyObject_GetIter(rows.get()));
  });
}

PyMappingMethods tensor_mapping = {
    .mp_length = tensor_length, .mp_subscript = mp_subscript, .mp_ass_subscript = mp_assign};
PySequenceMethods tensor_sequence = {.sq_length = tensor_length, .sq_item = sq_item};

void init_indexing(PyObject*) {}

}  // namespace rushlight::python
