// Tells a Python function of every operator call on its thread: what `torch.jit._get_trace_graph` writes
// down. In contrast to a dispatch mode it sees composites, and changes nothing of how a call is recorded.
#include <utility>

#include "dispatch/profiler.h"
#include "python/torch_dispatch.h"
#include "transform/profiler.h"

namespace rushlight::python {

namespace {

thread_local CallObserver* observer_of_thread = nullptr;

PyRef boxed_arguments(const Frame& frame) {
  PyRef list(check(PyList_New(frame.arg_count())));
  for (int i = 0; i < frame.arg_count(); ++i)
    PyList_SET_ITEM(list.get(), i, box_value(frame.args[i]).release());
  return list;
}

// The result; a tuple of several.
PyRef boxed_results(const Frame& frame) {
  const auto& returns = frame.op.schema.returns;
  if (returns.size() == 1 && returns[0].type == Tag::TensorList)
    return box_value(Value(TensorList(frame.results.list)));
  if (frame.results.count == 0)
    return returns.empty() ? PyRef::borrow(Py_None) : box_value(frame.results.plain);
  if (returns.size() == 1) return box_value(Value(frame.results.tensors[0]));
  PyRef tuple(check(PyTuple_New(frame.results.count)));
  for (int i = 0; i < frame.results.count; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, box_value(Value(frame.results.tensors[i])).release());
  return tuple;
}

// Calls function(operator, arguments, result, depth): at depth 1 and more a composite is still running, which
// is told of after what it called.
class PythonObserver final : public CallObserver {
 public:
  explicit PythonObserver(PyObject* function) : function_(PyRef::borrow(function)) {}

  void enter() override { ++depth_; }
  void leave() noexcept override { --depth_; }
  void ran(const Frame& frame) override {
    GilAcquire gil;
    const Form form = frame.inplace ? Form::Inplace : frame.out ? Form::Out : Form::Functional;
    const PyRef args = boxed_arguments(frame), result = boxed_results(frame);
    const PyRef depth(check(PyLong_FromLong(depth_ - 1)));
    CallObserver* self = std::exchange(observer_of_thread, nullptr);
    PyRef answer(PyObject_CallFunctionObjArgs(function_.get(), overload_object(frame.op, form), args.get(),
                                              result.get(), depth.get(), nullptr));
    observer_of_thread = self;
    check(answer.get());
  }

 private:
  PyRef function_;
  long depth_ = 0;
};

// _observe_calls(function, program): the result of program(), whose calls of operators the function is told.
PyObject* observe_calls(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "_observe_calls takes a function and a program");
    return nullptr;
  }
  PythonObserver observer(args[0]);
  const bool profiled = is_profiled();
  CallObserver* outer = std::exchange(observer_of_thread, &observer);
  set_thread_profiled(true);
  PyObject* result = PyObject_CallNoArgs(args[1]);
  set_thread_profiled(profiled);
  observer_of_thread = outer;
  return result;
}

}  // namespace

void init_call_observer(PyObject* module) {
  call_observer = [] { return observer_of_thread; };
  static PyMethodDef functions[] = {
      {"_observe_calls", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(observe_calls)), METH_FASTCALL,
       "Run a program; a function is told of each operator that it calls."},
      {}};
  add_functions(module, functions);
}

}  // namespace rushlight::python
