// What Python's standard library lacks about processes: signals at a parent's death, thread names.
#include "core/host/process.h"

#include "core/host/thread.h"
#include "python/parse.h"

namespace rushlight::python {

static PyObject* f_set_pdeathsig(PyObject*, PyObject* signal) {
  return guard([&] {
    const int64_t number = to_int(signal);
    RL_CHECK(number >= 0 && number < 65, "prctl: invalid signal number ", number);
    const std::error_code error = host::signal_at_parents_end(static_cast<int>(number));
    RL_CHECK(!error, "prctl: error ", error.value());
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_is_dumpable(PyObject*, PyObject*) { return PyBool_FromLong(host::others_may_look()); }

static PyObject* f_set_thread_name(PyObject*, PyObject* name) {
  return guard([&] {
    PyRef text(check(PyObject_Str(name)));
    host::set_thread_name(std::string(string_view(text.get())));
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_get_thread_name(PyObject*, PyObject*) {
  const std::string name = host::thread_name();
  return PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace");
}

static PyMethodDef functions[] = {
    {"_set_pdeathsig", f_set_pdeathsig, METH_O, "Which signal to get when the parent thread dies; 0: none."},
    {"_is_dumpable", f_is_dumpable, METH_NOARGS, "Whether others of this user may look at /proc/PID/fd."},
    {"_set_thread_name", f_set_thread_name, METH_O, "Names the calling thread, in 15 characters."},
    {"_get_thread_name", f_get_thread_name, METH_NOARGS, "The name of the calling thread."},
    {}};

void init_process(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
