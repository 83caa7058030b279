#include "python/profiled_calls.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/profiler.h"
#include "python/types.h"
// After Python.h. Python 3.10 has PyFrame_GetBack there.
#include <frameobject.h>

namespace rushlight::python {

namespace {

using Kind = ProfilerEvent::Kind;

PyRef code_of(PyFrameObject* frame) { return PyRef(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame))); }

PyRef back_of(PyFrameObject* frame) { return PyRef(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame))); }

PyRef reference(PyFrameObject* frame) { return PyRef::borrow(reinterpret_cast<PyObject*>(frame)); }

PyFrameObject* frame_in(const PyRef& ref) { return reinterpret_cast<PyFrameObject*>(ref.get()); }

// The calls that are open on a thread, and how deep it is in a function that is left out.
struct Calls {
  struct Open {
    ProfilerScope scope;
    bool is_builtin;
  };
  // What tells a function from others, should another get its address, and its name, which lasts as long as
  // the session.
  struct Named {
    std::array<const void*, 3> is{};
    int line = 0;
    std::string_view name;
  };
  static constexpr size_t kNames = 512;
  uint64_t session = 0;
  std::vector<Open> open;
  std::vector<Named> names;  // by address
  int silence = 0;

  void reset(uint64_t number) {
    while (!open.empty()) open.pop_back();  // the innermost ends first
    names.assign(number ? kNames : 0, {});
    silence = 0;
    session = number;
  }
  template <class Make>
  std::string_view name_of(ProfilerSession& recording, const std::array<const void*, 3>& is, int line,
                           Make make) {
    Named& entry = names[(reinterpret_cast<uintptr_t>(is[0]) >> 4) % kNames];
    if (entry.is != is || entry.line != line) entry = {is, line, recording.keep(make())};
    return entry.name;
  }
  // Calls that were running when the interpreter began to tell of calls may return without having begun.
  void close(bool is_builtin) {
    while (!is_builtin && !open.empty() && open.back().is_builtin) open.pop_back();
    if (!open.empty() && open.back().is_builtin == is_builtin) open.pop_back();
  }
};
// Made when it is first needed: modules that are loaded later share the room of what threads hold by value.
Calls& calls_of_thread() {
  static thread_local std::unique_ptr<Calls> calls;
  if (!calls) calls = std::make_unique<Calls>();
  return *calls;
}

// What repr() says of a function in C.
std::string builtin_name(PyObject* function) {
  if (!PyCFunction_Check(function)) return str("<built-in function of ", Py_TYPE(function)->tp_name, ">");
  const auto* f = reinterpret_cast<PyCFunctionObject*>(function);
  const char* name = f->m_ml->ml_name;
  if (!f->m_self || PyModule_Check(f->m_self)) return str("<built-in function ", name, ">");
  const PyRef text(check(PyUnicode_FromFormat("<built-in method %s of %s object at %p>", name,
                                              Py_TYPE(f->m_self)->tp_name, f->m_self)));
  return std::string(string_view(text.get()));
}

std::array<const void*, 3> builtin_key(PyObject* function) {
  if (!PyCFunction_Check(function)) return {Py_TYPE(function), nullptr, nullptr};
  const auto* f = reinterpret_cast<PyCFunctionObject*>(function);
  return {f->m_ml, f->m_self, f->m_self ? Py_TYPE(f->m_self) : nullptr};
}

void open_event(Calls& calls, Kind kind, std::string_view name, PyFrameObject* caller) {
  ProfilerScope scope = ProfilerScope::lasting(kind, name);
  if (scope.event() && caller) scope.event()->line = PyFrame_GetLineNumber(caller);
  calls.open.push_back({std::move(scope), kind == Kind::Builtin});
}

void open_builtin(Calls& calls, ProfilerSession& session, PyFrameObject* frame, PyObject* function) {
  const std::string_view name =
      calls.name_of(session, builtin_key(function), 0, [&] { return builtin_name(function); });
  open_event(calls, Kind::Builtin, name, frame);
}

// "file.py(12): function", with the line where the function begins.
void open_call(Calls& calls, ProfilerSession& session, PyFrameObject* frame) {
  const PyRef code = code_of(frame), back = back_of(frame);
  const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
  const std::string_view name =
      calls.name_of(session, {c, c->co_filename, c->co_name}, c->co_firstlineno, [&] {
        return str(string_view(c->co_filename), "(", c->co_firstlineno, "): ", string_view(c->co_name));
      });
  open_event(calls, Kind::Call, name, frame_in(back));
}

// Opens the calls that were running when the thread began to be recorded, the outermost first.
void open_running(Calls& calls, ProfilerSession& session, PyRef frame) {
  std::vector<PyRef> frames;
  for (; frame; frame = back_of(frame_in(frames.back()))) frames.push_back(std::move(frame));
  for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
    open_call(calls, session, frame_in(*f));
    calls.open.back().scope.begin_with_session();
  }
}

bool is_silent(PyObject* silent, PyFrameObject* frame) {
  const PyRef code = code_of(frame);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(silent); ++i)
    if (PyTuple_GET_ITEM(silent, i) == code.get()) return true;
  return false;
}

void follow(Calls& calls, ProfilerSession& session, PyObject* silent, PyFrameObject* frame, int what,
            PyObject* argument) {
  const bool begins = what == PyTrace_CALL || what == PyTrace_C_CALL;
  if (calls.silence > 0 || (what == PyTrace_CALL && is_silent(silent, frame)))
    calls.silence += begins ? 1 : -1;
  else if (what == PyTrace_CALL)
    open_call(calls, session, frame);
  else if (what == PyTrace_C_CALL)
    open_builtin(calls, session, frame, argument);
  else
    calls.close(what != PyTrace_RETURN);
}

void end_on_this_thread() {
  calls_of_thread().reset(0);
  PyEval_SetProfile(nullptr, nullptr);
}

// The hook for profilers of Python.
int hook(PyObject* silent, PyFrameObject* frame, int what, PyObject* argument) {
  if (what == PyTrace_EXCEPTION || what == PyTrace_LINE || what == PyTrace_OPCODE) return 0;
  return guard_status([&] {
    const std::shared_ptr<ProfilerSession> session = running_profiler();
    Calls& calls = calls_of_thread();
    if (!session || !session->options.stack) return end_on_this_thread();
    if (calls.session != session->number) {
      calls.reset(session->number);
      if (session->options.threads) join_profiler(session->number);
      open_running(calls, *session, what == PyTrace_CALL ? back_of(frame) : reference(frame));
    }
    follow(calls, *session, silent, frame, what, argument);
  });
}

}  // namespace

void record_calls(PyObject* silent) {
  PyThreadState* own = PyThreadState_Get();
  const std::shared_ptr<ProfilerSession> session = running_profiler();
  if (!session || (own->c_profilefunc && own->c_profilefunc != hook)) return;
  calls_of_thread().reset(session->number);
  open_running(calls_of_thread(), *session, reference(PyEval_GetFrame()));
  PyEval_SetProfile(hook, silent);
}

#if PY_VERSION_HEX >= 0x030C0000
void hook_other_threads(Py_tracefunc hook, PyObject* argument) {
  PyThreadState* own = PyThreadState_Get();
  const Py_tracefunc before = own->c_profilefunc;
  const PyRef before_argument = PyRef::borrow(own->c_profileobj);
  PyEval_SetProfileAllThreads(hook, argument);
  PyEval_SetProfile(before, before_argument.get());
}
#else
void hook_other_threads(Py_tracefunc hook, PyObject* argument) {
  PyThreadState* own = PyThreadState_Get();
  PyThreadState* thread = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own));
  for (; thread; thread = PyThreadState_Next(thread))
    if (thread != own && !thread->c_profilefunc && _PyEval_SetProfile(thread, hook, argument) < 0)
      throw PythonError();
}
#endif

void record_calls_of_threads(PyObject* silent) { hook_other_threads(hook, silent); }

void end_calls() {
  if (PyThreadState_Get()->c_profilefunc == hook) end_on_this_thread();
}

}  // namespace rushlight::python
