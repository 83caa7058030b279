// Memory of CUDA devices and page-locked memory of the host, as torch.cuda.memory reports it.
#include <cstdlib>

#include "core/foreign_allocator.h"
#include "ops/copy.h"
#include "python/cuda.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

static void set_item(PyObject* dict, const char* key, PyObject* value) {
  PyRef owned(check(value));
  if (PyDict_SetItemString(dict, key, owned.get()) < 0) throw PythonError();
}

static PyObject* stat_dict(const AllocatorStat& s) {
  return Py_BuildValue("{s:L,s:L,s:L,s:L}", "current", static_cast<long long>(s.current), "peak",
                       static_cast<long long>(s.peak), "allocated", static_cast<long long>(s.allocated),
                       "freed", static_cast<long long>(s.freed));
}

// PyTorch's nested form: {"allocation": {"all": {"current": ...}, "small_pool": ..., "large_pool": ...},
// ...}.
static PyObject* stats_dict(const AllocatorStats& s) {
  PyRef out(check(PyDict_New()));
  auto group = [&](const char* name, const AllocatorStats::Grouped& stats) {
    PyRef grouped(check(PyDict_New()));
    set_item(grouped.get(), "all", stat_dict(stats[AllocatorStats::kAll]));
    set_item(grouped.get(), "small_pool", stat_dict(stats[AllocatorStats::kSmall]));
    set_item(grouped.get(), "large_pool", stat_dict(stats[AllocatorStats::kLarge]));
    set_item(out.get(), name, grouped.release());
  };
  group("allocation", s.allocation), group("segment", s.segment), group("active", s.active);
  group("inactive_split", s.inactive_split), group("allocated_bytes", s.allocated_bytes);
  group("reserved_bytes", s.reserved_bytes), group("active_bytes", s.active_bytes);
  group("inactive_split_bytes", s.inactive_split_bytes), group("requested_bytes", s.requested_bytes);
  auto number = [&](const char* name, int64_t n) { set_item(out.get(), name, PyLong_FromLongLong(n)); };
  number("num_alloc_retries", s.num_alloc_retries), number("num_ooms", s.num_ooms);
  number("num_device_alloc", s.num_source_allocations), number("num_device_free", s.num_source_frees);
  return out.release();
}

static PyObject* f_stats(PyObject*, PyObject* o) {
  return guard([&] { return stats_dict(cuda().memory(device_number(to_int(o))).stats()); });
}
static PyObject* f_host_stats(PyObject*, PyObject*) {
  return guard([] { return stats_dict(cuda().pinned_memory().stats()); });
}
static CachingAllocator& allocator_of(PyObject* o) {
  return o == Py_None ? cuda().pinned_memory() : cuda().memory(device_number(to_int(o)));
}
static PyObject* f_reset_peak(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    allocator_of(o).reset_peak_stats();
    Py_RETURN_NONE;
  });
}
static PyObject* f_reset_accumulated(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    allocator_of(o).reset_accumulated_stats();
    Py_RETURN_NONE;
  });
}
static PyObject* f_empty_cache(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    {
      GilRelease released;
      for (int i = 0; i < cuda().device_count(); ++i) cuda().memory(i).empty_cache();
    }
    Py_RETURN_NONE;
  });
}
static PyObject* f_mem_get_info(PyObject*, PyObject* o) {
  return guard([&] {
    const DeviceScope scope(cuda().driver(), device_number(to_int(o)));
    const auto [free, total] = cuda().driver().memory_info();
    return check(Py_BuildValue("(nn)", static_cast<Py_ssize_t>(free), static_cast<Py_ssize_t>(total)));
  });
}
static PyObject* f_set_fraction(PyObject*, PyObject* args) {
  double fraction = 1;
  int device = -1;
  if (!PyArg_ParseTuple(args, "di", &fraction, &device)) return nullptr;
  return guard([&]() -> PyObject* {
    cuda().set_memory_fraction(device_number(device), fraction);
    Py_RETURN_NONE;
  });
}
static PyObject* f_get_fraction(PyObject*, PyObject* o) {
  return guard([&] { return PyFloat_FromDouble(cuda().memory_fraction(device_number(to_int(o)))); });
}
static PyObject* f_allocate(PyObject*, PyObject* args) {
  Py_ssize_t bytes = 0;
  int device = -1;
  if (!PyArg_ParseTuple(args, "ni", &bytes, &device)) return nullptr;
  return guard([&] {
    RL_CHECK(bytes >= 0, "Invalid size: ", static_cast<int64_t>(bytes));
    return PyLong_FromVoidPtr(cuda().allocate(static_cast<size_t>(bytes), device_number(device)));
  });
}
static PyObject* f_deallocate(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    void* address = PyLong_AsVoidPtr(o);
    if (!address && PyErr_Occurred()) throw PythonError();
    for (int i = 0; i < cuda().device_count(); ++i)
      if (cuda().memory(i).base_of(address) == address) {
        cuda().deallocate(address, 0, i);
        Py_RETURN_NONE;
      }
    RL_FAIL("invalid device pointer: ", reinterpret_cast<uint64_t>(address));
  });
}

// --- snapshots, in the form that PyTorch's viewer reads

// The number of the place in the program that allocates, newest call first; rushlight.cuda.memory.py keeps
// them.
static uint64_t program_place() {
  if (!Py_IsInitialized()) return 0;
  GilAcquire gil;
  PyRef module(PyImport_ImportModule("rushlight.cuda.memory"));
  PyRef number(module ? PyObject_CallMethod(module.get(), "place", nullptr) : nullptr);
  if (number) return PyLong_AsUnsignedLongLong(number.get());
  PyErr_Clear();
  return 0;
}
static PyObject* frames_of(uint64_t place) { return PyLong_FromUnsignedLongLong(place); }
static PyObject* address(const void* a) { return PyLong_FromVoidPtr(const_cast<void*>(a)); }

static PyObject* block_dict(const BlockInfo& b) {
  static constexpr const char* states[] = {"inactive", "active_allocated", "active_pending_free"};
  PyRef out(
      check(Py_BuildValue("{s:n,s:n,s:s,s:s#}", "size", static_cast<Py_ssize_t>(b.size), "requested_size",
                          static_cast<Py_ssize_t>(b.requested), "state", states[b.state], "operator",
                          b.label.data() ? b.label.data() : "", static_cast<Py_ssize_t>(b.label.size()))));
  set_item(out.get(), "address", address(b.address));
  set_item(out.get(), "frames", frames_of(b.context));
  return out.release();
}

static PyObject* segment_dict(const SegmentInfo& s, int device) {
  PyRef blocks(check(PyList_New(0)));
  size_t allocated = 0, active = 0, requested = 0;
  for (const BlockInfo& b : s.blocks) {
    if (b.state == BlockInfo::kAllocated) allocated += b.size, requested += b.requested;
    if (b.state != BlockInfo::kFree) active += b.size;
    PyRef block(block_dict(b));
    if (PyList_Append(blocks.get(), block.get()) < 0) throw PythonError();
  }
  const auto handle = reinterpret_cast<unsigned long long>(cuda().stream(s.stream).handle);
  PyRef out(check(Py_BuildValue(
      "{s:i,s:n,s:n,s:n,s:n,s:K,s:s,s:(KK),s:O}", "device", device, "total_size",
      static_cast<Py_ssize_t>(s.size), "allocated_size", static_cast<Py_ssize_t>(allocated), "active_size",
      static_cast<Py_ssize_t>(active), "requested_size", static_cast<Py_ssize_t>(requested), "stream", handle,
      "segment_type", s.large ? "large" : "small", "segment_pool_id", static_cast<unsigned long long>(s.pool),
      0ULL, "is_expandable", s.expandable ? Py_True : Py_False)));
  set_item(out.get(), "address", address(s.address));
  set_item(out.get(), "frames", PyList_New(0));
  set_item(out.get(), "blocks", blocks.release());
  return out.release();
}

static PyObject* event_dict(const AllocatorEvent& e) {
  static constexpr const char* actions[] = {"alloc",         "free_requested", "free_completed",
                                            "segment_alloc", "segment_free",   "oom"};
  PyRef out(check(Py_BuildValue("{s:s,s:n,s:K,s:L}", "action", actions[e.action], "size",
                                static_cast<Py_ssize_t>(e.size), "stream",
                                reinterpret_cast<unsigned long long>(cuda().stream(e.stream).handle),
                                "time_us", static_cast<long long>(e.microseconds))));
  set_item(out.get(), e.action == AllocatorEvent::kOutOfMemory ? "device_free" : "addr", address(e.address));
  set_item(out.get(), "frames", frames_of(e.context));
  return out.release();
}

static PyObject* f_snapshot(PyObject*, PyObject*) {
  return guard([] {
    PyRef segments(check(PyList_New(0))), traces(check(PyList_New(0)));
    for (int i = 0; i < cuda().device_count(); ++i) {
      for (const SegmentInfo& s : cuda().memory(i).snapshot()) {
        PyRef segment(segment_dict(s, i));
        if (PyList_Append(segments.get(), segment.get()) < 0) throw PythonError();
      }
      PyRef trace(check(PyList_New(0)));
      for (const AllocatorEvent& e : cuda().memory(i).history()) {
        PyRef entry(event_dict(e));
        if (PyList_Append(trace.get(), entry.get()) < 0) throw PythonError();
      }
      if (PyList_Append(traces.get(), trace.get()) < 0) throw PythonError();
    }
    return check(Py_BuildValue("{s:O,s:O}", "segments", segments.get(), "device_traces", traces.get()));
  });
}
static PyObject* f_record_history(PyObject*, PyObject* args) {
  unsigned long long events = 0;
  int frames = 0;
  if (!PyArg_ParseTuple(args, "Kp", &events, &frames)) return nullptr;
  return guard([&]() -> PyObject* {
    for (int i = 0; i < cuda().device_count(); ++i)
      cuda().memory(i).record_history(events, frames ? program_place : nullptr);
    Py_RETURN_NONE;
  });
}

// --- tensors

static void release_pinned(void*, void* data, size_t) {
  find_device_backend(DeviceType::CUDA)->deallocate_pinned(data);
}
static PyObject* f_pin(PyObject*, PyObject* o) {
  return guard([&] {
    const Tensor t = tensor_of(o);
    RL_CHECK(t.is_cpu(), "cannot pin '", legacy_name(t.dtype()), "' only dense CPU tensors can be pinned");
    if (t.numel() == 0) return Py_NewRef(o);
    void* memory = cuda().allocate_pinned(t.nbytes());
    Storage storage = StorageImpl::wrap(memory, t.nbytes(), Device{}, release_pinned, nullptr);
    auto impl = make_ref<TensorImpl>(std::move(storage), 0, t.dtype(), Device{});
    impl->set_contiguous(t.sizes());
    Tensor pinned(std::move(impl));
    copy_result(pinned, t, false);
    return wrap(std::move(pinned));
  });
}
static PyObject* f_record_stream(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long stream = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &stream)) return nullptr;
  return guard([&]() -> PyObject* {
    const Tensor& t = tensor_of(tensor);
    RL_CHECK(t.device().is_cuda(), "record_stream: expected a tensor on a CUDA device, got ", describe(t));
    if (t.has_data()) cuda().record_stream(t->storage->data(), t.device().index(), stream);
    Py_RETURN_NONE;
  });
}

// Addresses of functions, from ctypes. A pool of 0: for all memory.
static PyObject* f_set_allocator(PyObject*, PyObject* args) {
  unsigned long long pool = 0, allocate = 0, release = 0;
  if (!PyArg_ParseTuple(args, "KKK", &pool, &allocate, &release)) return nullptr;
  return guard([&]() -> PyObject* {
    ForeignAllocator by;
    by.allocate = reinterpret_cast<decltype(by.allocate)>(static_cast<uintptr_t>(allocate));
    by.release = reinterpret_cast<decltype(by.release)>(static_cast<uintptr_t>(release));
    RL_CHECK(by.allocate && by.release, "CUDAPluggableAllocator: a function is null");
    pool ? foreign::give_pool(pool, by) : foreign::give_all(by);
    Py_RETURN_NONE;
  });
}

static PyMethodDef functions[] = {
    {"_cuda_memoryStats", f_stats, METH_O, "What a device's allocator counts."},
    {"_cuda_hostMemoryStats", f_host_stats, METH_NOARGS, "What the allocator of pinned memory counts."},
    {"_cuda_resetPeakMemoryStats", f_reset_peak, METH_O, "Peaks begin anew; None: of pinned memory."},
    {"_cuda_resetAccumulatedMemoryStats", f_reset_accumulated, METH_O, "Totals begin anew."},
    {"_cuda_emptyCache", f_empty_cache, METH_NOARGS, "Gives unused memory back to the driver."},
    {"_cuda_memGetInfo", f_mem_get_info, METH_O, "Free and total bytes of a device."},
    {"_cuda_setMemoryFraction", f_set_fraction, METH_VARARGS,
     "Bounds this process's share of a device's memory."},
    {"_cuda_getMemoryFraction", f_get_fraction, METH_O, "That share."},
    {"_cuda_caching_allocate", f_allocate, METH_VARARGS, "Memory for others, on the current stream."},
    {"_cuda_caching_delete", f_deallocate, METH_O, "Gives such memory back."},
    {"_cuda_setAllocator", f_set_allocator, METH_VARARGS,
     "Lets functions of others give memory: to a private pool, or for pool 0 all of it."},
    {"_cuda_memorySnapshot", f_snapshot, METH_NOARGS, "All segments, and the history where it is recorded."},
    {"_cuda_recordMemoryHistory", f_record_history, METH_VARARGS, "Keeps the last events of the allocators."},
    {"_cuda_pinMemory", f_pin, METH_O, "A copy of a tensor in page-locked memory."},
    {"_cuda_recordStream", f_record_stream, METH_VARARGS, "States that a stream uses a tensor's memory."},
    {},
};

void init_cuda_memory(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
