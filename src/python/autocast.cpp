// This thread's region of autocasting, for rushlight.amp.
#include "transform/autocast.h"

#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

// _autocast_region(cuda) -> enabled, dtype
static PyObject* region(PyObject*, PyObject* o) {
  return guard([&] {
    const auto& r = autocast_state.on(to_bool(o) ? DeviceType::CUDA : DeviceType::CPU);
    return check(Py_BuildValue("(NN)", PyBool_FromLong(r.enabled), wrap(r.dtype)));
  });
}
static PyObject* is_cache_enabled(PyObject*, PyObject*) { return PyBool_FromLong(autocast_state.cache); }
static PyObject* set_cache_enabled(PyObject*, PyObject* o) {
  return guard([&] {
    autocast_state.cache = to_bool(o);
    return Py_NewRef(Py_None);
  });
}
static PyObject* clear_cache(PyObject*, PyObject*) {
  clear_autocast_cache();
  Py_RETURN_NONE;
}
static PyObject* enter(PyObject*, PyObject*) { return PyLong_FromLong(++autocast_state.nesting); }
static PyObject* leave(PyObject*, PyObject*) { return PyLong_FromLong(--autocast_state.nesting); }

// _autocast_switch(enabled, dtype, cache, cuda=False) -> the three as they were before
static PyObject* switch_to(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 3 && n != 4)
      throw_python(PyExc_TypeError, "_autocast_switch takes whether, a dtype, and whether to cache");
    const bool enabled = to_bool(args[0]), cache = to_bool(args[2]);
    const DType half = parse_dtype(args[1]);
    const DeviceType type = n == 4 && to_bool(args[3]) ? DeviceType::CUDA : DeviceType::CPU;
    auto& region = autocast_state.on(type);
    PyRef before(check(Py_BuildValue("(NNN)", PyBool_FromLong(region.enabled), wrap(region.dtype),
                                     PyBool_FromLong(autocast_state.cache))));
    set_autocast_enabled(type, enabled);
    region.dtype = half;
    autocast_state.cache = cache;
    return before.release();
  });
}

static PyMethodDef functions[] = {
    {"_autocast_switch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(switch_to)), METH_FASTCALL,
     "Sets whether, the dtype and whether to cache; returns what was before."},
    {"_autocast_region", region, METH_O,
     "Whether operators on the CPU, or on CUDA, cast; and the half type."},
    {"_autocast_cache_enabled", is_cache_enabled, METH_NOARGS, "Whether casts of leaves are kept."},
    {"_set_autocast_cache_enabled", set_cache_enabled, METH_O, nullptr},
    {"_clear_autocast_cache", clear_cache, METH_NOARGS, "Forgets the casts of leaves."},
    {"_autocast_enter", enter, METH_NOARGS, "Enters a region; returns the depth."},
    {"_autocast_exit", leave, METH_NOARGS, "Leaves a region; returns the depth."},
    {}};

void init_autocast(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
