// The recorder's interface: start, stop, ranges that the program opens, and the events as tuples.
#include "dispatch/profiler.h"

#include "python/op_function.h"
#include "python/parse.h"
#include "python/profiled_calls.h"
#include "python/tensor_type.h"
#include "python/types.h"
// After Python.h. Python 3.10 has PyFrame_GetBack there.
#include <frameobject.h>

namespace rushlight::python {

namespace {

constexpr const char* kRange = "rushlight.profiler_range";

PyRef owned(PyObject* o) { return PyRef(check(o)); }

template <class List, class F>
PyRef list_of(const List& list, F&& item) {
  PyRef out = owned(PyList_New(0));
  for (const auto& element : list) check(PyList_Append(out.get(), item(element).get()));
  return out;
}

PyRef numbers(const std::vector<int64_t>& list) {
  return list_of(list, [](int64_t n) { return owned(PyLong_FromLongLong(n)); });
}

PyRef shape_object(const ProfiledOperand::Shape& shape) {
  const PyRef dtype = owned(wrap(shape.dtype)), device = owned(wrap(shape.device));
  const PyRef sizes = numbers(shape.sizes), strides = numbers(shape.strides);
  return owned(Py_BuildValue(
      "(OOOKKLO)", dtype.get(), sizes.get(), strides.get(), static_cast<unsigned long long>(shape.tensor),
      static_cast<unsigned long long>(shape.storage), static_cast<long long>(shape.offset), device.get()));
}

PyRef value_object(const Value& value) {
  if (value.tag() == Tag::FloatList)
    return list_of(value.floats(), [](double x) { return owned(PyFloat_FromDouble(x)); });
  if (value.tag() == Tag::BoolList)
    return list_of(value.bools(), [](bool x) { return owned(PyBool_FromLong(x)); });
  return owned(wrap_value(value));
}

// (Operand's fields) of a tensor, a list of those, or a tuple of the one value.
PyRef operand_object(const ProfiledOperand& operand) {
  if (operand.is_list) return list_of(operand.tensors, shape_object);
  if (!operand.tensors.empty()) return shape_object(operand.tensors[0]);
  return owned(PyTuple_Pack(1, value_object(operand.value.get()).get()));
}

// Of an event that was still open only what no thread writes to any more.
PyRef event_object(const ProfilerEvent& e, int64_t thread) {
  static const std::vector<ProfiledOperand> unknown;
  const bool open = e.end < 0;
  const PyRef inputs = list_of(open ? unknown : e.inputs, operand_object);
  const PyRef outputs = list_of(open ? unknown : e.outputs, operand_object);
  const PyRef stack = list_of(e.stack, [](const std::string& s) { return owned(to_python(s)); });
  const std::string_view schema = e.op ? e.op->schema.text : std::string_view("");
  return owned(Py_BuildValue(
      "(s#iLLLLLLLOOOs#s#i)", e.name.data(), static_cast<Py_ssize_t>(e.name.size()), static_cast<int>(e.kind),
      static_cast<long long>(thread), static_cast<long long>(e.start), static_cast<long long>(e.end),
      static_cast<long long>(e.parent), static_cast<long long>(open ? -1 : e.sequence),
      static_cast<long long>(open ? thread : e.forward_thread), static_cast<long long>(open ? 0 : e.bytes),
      inputs.get(), outputs.get(), stack.get(), schema.data(), static_cast<Py_ssize_t>(schema.size()),
      open ? "" : e.keywords.data(), open ? Py_ssize_t{0} : static_cast<Py_ssize_t>(e.keywords.size()),
      e.line));
}

PyRef memory_object(const MemoryEvent& e) {
  return owned(Py_BuildValue("(LLKL)", static_cast<long long>(e.time), static_cast<long long>(e.thread),
                             static_cast<unsigned long long>(e.address), static_cast<long long>(e.bytes)));
}

PyRef activity_object(const DeviceActivity& a) {
  return owned(Py_BuildValue("(s#iiKLLLK)", a.name.data(), static_cast<Py_ssize_t>(a.name.size()),
                             static_cast<int>(a.kind), a.device, static_cast<unsigned long long>(a.stream),
                             static_cast<long long>(a.start), static_cast<long long>(a.end),
                             static_cast<long long>(a.bytes), static_cast<unsigned long long>(a.cause)));
}

PyObject* start(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    int shapes = 0, memory = 0, stack = 0, devices = 0, threads = 0;
    if (!PyArg_ParseTuple(args, "ppp|pp:_profiler_start", &shapes, &memory, &stack, &devices, &threads))
      return nullptr;
    start_profiler({shapes != 0, memory != 0, stack != 0, devices != 0, threads != 0});
    return Py_NewRef(Py_None);
  });
}

PyObject* stop(PyObject*, PyObject*) {
  return guard([] {
    end_calls();
    const std::shared_ptr<ProfilerSession> session = stop_profiler();
    PyRef logs = list_of(session->logs(), [](const ProfilerSession::Log& log) {
      return list_of(log.events, [&](const ProfilerEvent& e) { return event_object(e, log.thread); });
    });
    PyRef memory = list_of(session->memory(), memory_object);
    PyRef activities = list_of(session->activities, activity_object);
    return check(Py_BuildValue("(OLLOLO)", logs.get(), static_cast<long long>(session->started),
                               static_cast<long long>(session->wall_offset), memory.get(),
                               static_cast<long long>(session->allocated_before), activities.get()));
  });
}

PyObject* record_python(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject* silent = nullptr;
    int all_threads = 0;
    if (!PyArg_ParseTuple(args, "O!p:_profiler_record_calls", &PyTuple_Type, &silent, &all_threads))
      return nullptr;
    if (all_threads) record_calls_of_threads(silent);
    record_calls(silent);
    return Py_NewRef(Py_None);
  });
}

PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(is_profiled()); }

PyObject* set_thread(PyObject*, PyObject* on) {
  return guard([&] {
    set_thread_profiled(to_bool(on));
    return Py_NewRef(Py_None);
  });
}

// Each thread joins at its next Python event; the hook then takes itself away. Threads with a hook of their
// own keep it, and are not recorded.
int join_by_hook(PyObject* session, PyFrameObject*, int, PyObject*) {
  join_profiler(PyLong_AsUnsignedLongLong(session));
  PyEval_SetProfile(nullptr, nullptr);
  return 0;
}

PyObject* join(PyObject*, PyObject* session) {
  return guard([&] {
    join_profiler(PyLong_AsUnsignedLongLong(session));
    return Py_NewRef(Py_None);
  });
}

// The session's number, with which threads that begin later can join.
PyObject* invite_threads(PyObject*, PyObject*) {
  return guard([] {
    const std::shared_ptr<ProfilerSession> session = running_profiler();
    RL_CHECK(session, "profiler: no profiler is running");
    PyRef number = owned(PyLong_FromUnsignedLongLong(session->number));
    hook_other_threads(join_by_hook, number.get());
    return number.release();
  });
}

// All objects of some types that Python's collector knows. No bytecode runs while the list of all objects
// exists: another thread would find its unfinished tuples in somebody else's hands, and could not resize
// them.
PyObject* live_objects(PyObject*, PyObject* types) {
  return guard([&] {
    const PyRef gc = owned(PyImport_ImportModule("gc"));
    const PyRef all = owned(PyObject_CallMethod(gc.get(), "get_objects", nullptr));
    PyRef out = owned(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
      PyObject* object = PyList_GET_ITEM(all.get(), i);
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(types); ++k)
        if (PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(types, k)))) {
          check(PyList_Append(out.get(), object));
          break;
        }
    }
    return out.release();
  });
}

void free_range(PyObject* capsule) {
  delete static_cast<ProfilerScope*>(PyCapsule_GetPointer(capsule, kRange));
}

// What a program says of a range: tensors, lists of them, numbers and text; of anything else nothing.
ProfiledOperand operand_of(PyObject* object) {
  if (is_tensor(object)) return profiled_operand(tensor_of(object));
  if (PyBool_Check(object)) return profiled_operand(Value(object == Py_True));
  if (PyFloat_Check(object)) return profiled_operand(Value(PyFloat_AS_DOUBLE(object)));
  if (PyUnicode_Check(object)) return profiled_operand(Value(string_view(object)));
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow ? ProfiledOperand() : profiled_operand(Value(static_cast<int64_t>(number)));
  }
  if (!PyList_Check(object) && !PyTuple_Check(object)) return {};
  const PyRef items = owned(PySequence_Tuple(object));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (!is_tensor(item)) return {};
    tensors.push_back(tensor_of(item));
  }
  return profiled_operand(TensorList(tensors));
}

// None when this thread is not recorded; such a range costs next to nothing.
template <ProfilerEvent::Kind kind>
PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (!is_profiled()) return Py_NewRef(Py_None);
    if (count < 1 || !PyUnicode_Check(args[0]))
      throw_python(PyExc_TypeError, "record_function: the name must be a string");
    auto scope = std::make_unique<ProfilerScope>(kind, string_view(args[0]));
    if (count == 2 && scope->event()) scope->event()->sequence = to_int(args[1]);
    if (count > 2 && scope->wants_shapes()) {
      const PyRef values = owned(PySequence_Tuple(args[1]));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values.get()); ++i)
        scope->event()->inputs.push_back(operand_of(PyTuple_GET_ITEM(values.get(), i)));
      scope->event()->keywords = string_view(args[2]);
    }
    PyObject* capsule = check(PyCapsule_New(scope.get(), kRange, free_range));
    (void)scope.release();  // it is the capsule's now
    return capsule;
  });
}

PyObject* leave(PyObject*, PyObject* range) {
  return guard([&] {
    if (range != Py_None) {
      void* scope = PyCapsule_GetPointer(range, kRange);
      if (!scope) throw PythonError();
      static_cast<ProfilerScope*>(scope)->close();
    }
    return Py_NewRef(Py_None);
  });
}

// "file.py(12): function"
void read_frames(std::vector<std::string>& frames) {
  const GilAcquire gil;
  PyRef frame = PyRef::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    const PyRef code(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
    frames.push_back(
        str(string_view(c->co_filename), "(", PyFrame_GetLineNumber(f), "): ", string_view(c->co_name)));
    frame = PyRef(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef functions[] = {
    {"_profiler_start", start, METH_VARARGS,
     "_profiler_start(shapes, memory, stack, devices=False, threads=False): records this thread."},
    {"_profiler_stop", stop, METH_NOARGS,
     "Ends the recording: (events by thread, start, wall clock offset, memory events, bytes before, work of "
     "devices)."},
    {"_profiler_record_calls", record_python, METH_VARARGS,
     "_profiler_record_calls(silent, all_threads): calls of Python functions are events, too, but for what "
     "runs "
     "inside of the code objects given."},
    {"_profiler_enabled", is_enabled, METH_NOARGS, "Whether this thread is recorded."},
    {"_profiler_set_thread", set_thread, METH_O, "Records this thread too, or no longer."},
    {"_profiler_invite_threads", invite_threads, METH_NOARGS,
     "Lets all threads that run join the recording; its number, for `_profiler_join`."},
    {"_profiler_join", join, METH_O, "Records this thread too until the recording of that number ends."},
    {"_profiler_enter", fast(enter<ProfilerEvent::Kind::Range>), METH_FASTCALL,
     "_profiler_enter(name[, values, keywords as JSON]): opens a named range."},
    {"_profiler_enter_module", fast(enter<ProfilerEvent::Kind::Module>), METH_FASTCALL,
     "_profiler_enter_module(name, number): opens a module's range."},
    {"_profiler_exit", leave, METH_O, "Closes a range."},
    {"_live_objects", live_objects, METH_VARARGS, "_live_objects(*types): what the collector knows of them."},
    {}};

}  // namespace

void init_profiler(PyObject* module) {
  add_functions(module, functions);
  read_python_stack = read_frames;
}

}  // namespace rushlight::python
