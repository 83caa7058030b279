#include "python/mode_stack.h"

#include <utility>

#include "dispatch/pre_dispatch.h"
#include "python/replaced_kernel.h"

namespace rushlight::python {
namespace {

thread_local bool modes_disabled = false;

void set_watched(uint32_t bit, bool on) {
  dispatch_state.always = on ? dispatch_state.always | bit : dispatch_state.always & ~bit;
}

// --- from Python

using Stack = ModeStack& (*)();

template <Stack stack>
PyObject* push_mode(PyObject*, PyObject* mode) {
  return guard([&]() -> PyObject* {
    PyRef held = PyRef::borrow(mode);
    stack().push(held.get());
    held.release();
    Py_RETURN_NONE;
  });
}
template <Stack stack>
PyObject* pop_mode(PyObject*, PyObject*) {
  if (!stack().size()) {
    PyErr_SetString(PyExc_RuntimeError, "no dispatch mode is active");
    return nullptr;
  }
  return stack().pop();
}
template <Stack stack>
PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(stack().size());
}
template <Stack stack>
PyObject* mode_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyLong_AsSsize_t(index);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  if (i < 0 || i >= static_cast<Py_ssize_t>(stack().size())) {
    PyErr_SetString(PyExc_IndexError, "no dispatch mode at this place");
    return nullptr;
  }
  return Py_NewRef(stack().at(static_cast<size_t>(i)));
}

PyMethodDef functions[] = {{"_push_on_torch_dispatch_stack", push_mode<dispatch_modes>, METH_O, nullptr},
                           {"_pop_torch_dispatch_stack", pop_mode<dispatch_modes>, METH_VARARGS, nullptr},
                           {"_len_torch_dispatch_stack", mode_count<dispatch_modes>, METH_NOARGS, nullptr},
                           {"_get_dispatch_stack_at", mode_at<dispatch_modes>, METH_O, nullptr},
                           {"_push_on_pre_dispatch_stack", push_mode<pre_dispatch_modes>, METH_O, nullptr},
                           {"_pop_pre_dispatch_stack", pop_mode<pre_dispatch_modes>, METH_VARARGS, nullptr},
                           {"_len_pre_dispatch_stack", mode_count<pre_dispatch_modes>, METH_NOARGS, nullptr},
                           {"_get_pre_dispatch_stack_at", mode_at<pre_dispatch_modes>, METH_O, nullptr},
                           {}};

}  // namespace

bool ModeStack::active() const { return !modes_.empty() && !modes_disabled; }
void ModeStack::push(PyObject* owned) {
  modes_.push_back(owned);
  watch_python_dispatch();
}
PyObject* ModeStack::pop() {
  PyObject* mode = modes_.back();
  modes_.pop_back();
  watch_python_dispatch();
  return mode;
}

struct Stacks {
  ModeStack dispatch, before_dispatch;
};
static Stacks& stacks_of_thread() {
  static thread_local Stacks stacks;
  return stacks;
}
ModeStack& dispatch_modes() { return stacks_of_thread().dispatch; }
ModeStack& pre_dispatch_modes() { return stacks_of_thread().before_dispatch; }

bool disable_modes(bool disabled) {
  const bool before = std::exchange(modes_disabled, disabled);
  watch_python_dispatch();
  return before;
}
bool modes_are_disabled() { return modes_disabled; }

void watch_python_dispatch() {
  set_watched(kPythonDispatch, dispatch_modes().active() || (kernels_are_replaced() && !modes_disabled));
  set_watched(kPreDispatch, pre_dispatch_modes().active());
}

void init_mode_stacks(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
