// What Python's standard library lacks about processes: signals at a parent's death, thread names.
#include <pthread.h>
#include <sys/prctl.h>

#include <cerrno>

#include "python/parse.h"

namespace rushlight::python {

static PyObject* f_set_pdeathsig(PyObject*, PyObject* signal) {
  return guard([&] {
    const int64_t number = to_int(signal);
    RL_CHECK(number >= 0 && number < 65, "prctl: invalid signal number ", number);
    RL_CHECK(prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(number)) == 0, "prctl: error ", errno);
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_is_dumpable(PyObject*, PyObject*) {
  return PyBool_FromLong(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1);
}

static PyObject* f_set_thread_name(PyObject*, PyObject* name) {
  return guard([&] {
    PyRef text(check(PyObject_Str(name)));
    const std::string cut(string_view(text.get()).substr(0, 15));  // all that the system keeps
    pthread_setname_np(pthread_self(), cut.c_str());
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_get_thread_name(PyObject*, PyObject*) {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(std::char_traits<char>::length(name)), "replace");
}

static PyMethodDef functions[] = {
    {"_set_pdeathsig", f_set_pdeathsig, METH_O, "Which signal to get when the parent thread dies; 0: none."},
    {"_is_dumpable", f_is_dumpable, METH_NOARGS, "Whether others of this user may look at /proc/PID/fd."},
    {"_set_thread_name", f_set_thread_name, METH_O, "Names the calling thread, in 15 characters."},
    {"_get_thread_name", f_get_thread_name, METH_NOARGS, "The name of the calling thread."},
    {}};

void init_process(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
