// What saving needs: all about a tensor in one call.
#include <algorithm>

#include "autograd/meta.h"
#include "python/op_function.h"
#include "python/storage.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

// Nothing but numbers in memory: no class, attributes or hooks of its own, no tensor that it stands for.
bool is_plain(PyObject* o) {
  if (Py_TYPE(o) != tensor_type || function_state.mode_active()) return false;
  const Tensor& t = tensor_of(o);
  PyObject* attributes = reinterpret_cast<PyTensor*>(o)->dict;
  if ((attributes && PyDict_GET_SIZE(attributes)) || !t.has_data()) return false;
  if (t->autograd && t->autograd->extra && t->autograd->extra->python_hooks) return false;
  return !(t->flags & kDispatchBits & ~kAutograd) && !t->wrapping;
}

PyObject* tuple_of(IntList numbers) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(numbers.size()))));
  for (size_t i = 0; i < numbers.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), check(PyLong_FromLongLong(numbers[i])));
  return tuple.release();
}

// First and one-past-last byte of the storage that the tensor looks at.
std::pair<int64_t, int64_t> extent(const Tensor& t) {
  int64_t low = t->offset, high = t->offset;
  if (t.numel() == 0) return {0, 0};
  for (size_t i = 0; i < t->sizes.size(); ++i)
    (t->strides[i] < 0 ? low : high) += (t->sizes[i] - 1) * t->strides[i];
  const auto item = static_cast<int64_t>(t.itemsize());
  return {low * item, (high + 1) * item};
}

// _plain_parts(object) -> (storage, (address, bytes), dtype, first and last byte, offset, sizes, strides,
// requires_grad), or None for what is no plain tensor.
PyObject* plain_parts(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!is_plain(o)) Py_RETURN_NONE;
    const Tensor& t = tensor_of(o);
    PyRef storage(wrap_storage(t->storage));  // first: it may change where the data lies
    const auto [low, high] = extent(t);
    PyRef identity(check(Py_BuildValue("(KK)", reinterpret_cast<unsigned long long>(t->storage->data()),
                                       static_cast<unsigned long long>(t->storage->nbytes()))));
    return check(Py_BuildValue("(NNNLLLNNN)", storage.release(), identity.release(), wrap(t.dtype()),
                               static_cast<long long>(low), static_cast<long long>(high),
                               static_cast<long long>(t->offset), tuple_of(t.sizes()), tuple_of(t.strides()),
                               PyBool_FromLong(t->flags & kAutograd)));
  });
}

}  // namespace

void init_pickling(PyObject* module) {
  static PyMethodDef functions[] = {
      {"_plain_parts", plain_parts, METH_O, "What saving needs to know of a tensor."}, {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
