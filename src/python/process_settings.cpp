// Threads, memory statistics and what the build contains.
#include "core/cpu_allocator.h"
#include "core/deferred_layout.h"
#include "core/host/processor.h"
#include "core/parallel.h"
#include "core/prepared_weight.h"
#include "python/parse.h"
#include "python/types.h"

#ifdef __SSE2__
#include <pmmintrin.h>
#endif

namespace rushlight::python {

static PyObject* f_get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(get_num_threads()); }
static PyObject* f_set_num_threads(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!is_int(o)) throw_python(PyExc_TypeError, "set_num_threads expects an int, but got " + type_name(o));
    const int64_t n = to_int(o);
    RL_CHECK(n > 0 && n <= 4096, "set_num_threads expects a positive integer, but got ", n);
    set_num_threads(static_cast<int>(n));
    Py_RETURN_NONE;
  });
}

static PyObject* f_cpu_capability(PyObject*, PyObject*) {
  constexpr const char* names[] = {"DEFAULT", "NEON", "AVX2", "AVX512"};  // by host::Isa
  return PyUnicode_FromString(names[static_cast<int>(host::isa())]);
}

static PyObject* f_avx10_version(PyObject*, PyObject*) { return PyLong_FromLong(host::avx10_version()); }

// Of the calling thread, as in PyTorch; threads that it starts afterwards inherit it.
static PyObject* f_set_flush_denormal(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (!PyBool_Check(o))
      throw_python(PyExc_TypeError, "flush_denormal expects a bool, but got " + type_name(o));
#ifdef __SSE2__
    const bool on = o == Py_True;
    _MM_SET_FLUSH_ZERO_MODE(on ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
    _MM_SET_DENORMALS_ZERO_MODE(on ? _MM_DENORMALS_ZERO_ON : _MM_DENORMALS_ZERO_OFF);
    Py_RETURN_TRUE;
#elif defined(__aarch64__)
    constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR.FZ
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    control = o == Py_True ? control | kFlush : control & ~kFlush;
    asm volatile("msr fpcr, %0" : : "r"(control));
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
  });
}

static PyObject* f_empty_cache(PyObject*, PyObject*) { return PyLong_FromSize_t(cpu_empty_cache()); }
static PyObject* f_memory_stats(PyObject*, PyObject*) {
  return guard([&] {
    const CpuMemoryStats s = cpu_memory_stats();
    const auto& bytes = s.blocks.allocated_bytes[AllocatorStats::kAll];
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L}", "allocated_bytes.current",
                         static_cast<long long>(bytes.current + s.tiny_allocated_bytes),
                         "allocated_bytes.peak", static_cast<long long>(bytes.peak), "reserved_bytes.current",
                         static_cast<long long>(s.blocks.reserved_bytes[AllocatorStats::kAll].current),
                         "tiny_bytes.current", static_cast<long long>(s.tiny_allocated_bytes),
                         "tiny_bytes.cached", static_cast<long long>(s.tiny_cached_bytes));
  });
}

static PyObject* f_materialized_layouts(PyObject*, PyObject*) {
  return PyLong_FromLongLong(materialized_layouts());
}

static PyObject* f_prepared_bytes(PyObject*, PyObject*) { return PyLong_FromSize_t(prepared_bytes()); }

static PyObject* f_result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&] {
    Promotion promotion;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (is_tensor(args[i]))
        promotion.add(tensor_of(args[i]));
      else
        promotion.add(to_scalar(args[i]));
    }
    return wrap(promotion.result());
  });
}

static PyMethodDef functions[] = {
    {"get_num_threads", f_get_num_threads, METH_NOARGS, "The number of threads that operators use."},
    {"set_num_threads", f_set_num_threads, METH_O,
     "set_num_threads($module, int, /)\n--\n\nSets the number of threads that operators use."},
    {"_avx10_version", f_avx10_version, METH_NOARGS, "The version of AVX10; 0 without."},
    {"_cpu_capability", f_cpu_capability, METH_NOARGS, "The instruction set of the kernels that run here."},
    {"_set_flush_denormal", f_set_flush_denormal, METH_O,
     "Whether results too small for a normal number become zero; returns whether the processor can."},
    {"_cpu_empty_cache", f_empty_cache, METH_NOARGS,
     "Gives idle memory back to the system; returns the bytes."},
    {"_cpu_memory_stats", f_memory_stats, METH_NOARGS, "What the CPU allocator holds."},
    {"_materialized_layouts", f_materialized_layouts, METH_NOARGS,
     "How many deferred layout conversions took place."},
    {"_prepared_bytes", f_prepared_bytes, METH_NOARGS,
     "How much memory holds weights in the orders that kernels want."},
    {"_result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f_result_type)), METH_FASTCALL,
     nullptr},
    {}};

void init_process_settings(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
