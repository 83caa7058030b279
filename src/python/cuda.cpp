// What torch.cuda asks of devices: their facts, streams, events and graphs. Memory is in cuda_memory.cpp.
// Streams and pools are known by their numbers, events and graphs by their handles; a device of -1 is the
// current one. rushlight/cuda gives them faces.
#include "python/cuda.h"

#include "core/device_backend.h"
#include "core/device_math.h"
#include "device/layers.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

DeviceBackend& cuda() { return device_backend(DeviceType::CUDA); }

int device_number(long index) {
  RL_CHECK(index < 128, "CUDA error: invalid device ordinal (device ", index, ")");
  return numbered(Device{DeviceType::CUDA, static_cast<int8_t>(index < 0 ? -1 : index)}).index();
}

static int device_number(PyObject* o) {
  if (!is_int(o)) throw_python(PyExc_TypeError, "a device number is an int, not " + type_name(o));
  return device_number(static_cast<long>(to_int(o)));
}

template <class F>
static PyObject* done(F&& f) {
  return guard([&]() -> PyObject* {
    f();
    Py_RETURN_NONE;
  });
}
template <class F>
static void waiting(F&& f) {
  GilRelease released;
  f();
}

// --- devices

static PyObject* f_device_count(PyObject*, PyObject*) {
  return guard([] {
    DeviceBackend* backend = find_device_backend(DeviceType::CUDA);
    return PyLong_FromLong(backend ? backend->device_count() : 0);
  });
}
static PyObject* f_current_device(PyObject*, PyObject*) {
  return guard([] { return PyLong_FromLong(cuda().current_device()); });
}
static PyObject* f_set_device(PyObject*, PyObject* o) {
  return done([&] { cuda().set_device(device_number(o)); });
}
static PyObject* f_synchronize(PyObject*, PyObject* o) {
  return done([&] {
    const int device = device_number(o);
    waiting([&] { cuda().synchronize(device); });
  });
}
static PyObject* f_is_in_use(PyObject*, PyObject*) { return PyBool_FromLong(device_in_use()); }
static PyObject* f_is_in_bad_fork(PyObject*, PyObject*) { return PyBool_FromLong(in_bad_fork()); }
static PyObject* f_properties(PyObject*, PyObject* o) {
  return guard([&] {
    const DeviceProperties& p = cuda().properties(device_number(o));
    return check(Py_BuildValue(
        "{s:s,s:s,s:i,s:i,s:n,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:n,s:n,s:n,s:n,s:i,s:i,s:i,s:O,s:O}", "name",
        p.name.c_str(), "uuid", p.uuid.c_str(), "major", p.major, "minor", p.minor, "total_memory",
        static_cast<Py_ssize_t>(p.total_memory), "multi_processor_count", p.multi_processor_count,
        "warp_size", p.warp_size, "max_threads_per_block", p.max_threads_per_block,
        "max_threads_per_multi_processor", p.max_threads_per_multi_processor, "regs_per_multiprocessor",
        p.regs_per_multiprocessor, "clock_rate", p.clock_rate, "memory_clock_rate", p.memory_clock_rate,
        "memory_bus_width", p.memory_bus_width, "shared_memory_per_block",
        static_cast<Py_ssize_t>(p.shared_memory_per_block), "shared_memory_per_block_optin",
        static_cast<Py_ssize_t>(p.shared_memory_per_block_optin), "shared_memory_per_multiprocessor",
        static_cast<Py_ssize_t>(p.shared_memory_per_multiprocessor), "L2_cache_size",
        static_cast<Py_ssize_t>(p.l2_cache_size), "pci_bus_id", p.pci_bus, "pci_device_id", p.pci_device,
        "pci_domain_id", p.pci_domain, "is_integrated", p.integrated ? Py_True : Py_False,
        "is_multi_gpu_board", p.multi_gpu_board ? Py_True : Py_False));
  });
}
static PyObject* f_architectures(PyObject*, PyObject*) {
  return guard([] { return to_python(cuda().driver().architectures()); });
}
static PyObject* f_can_access_peer(PyObject*, PyObject* args) {
  int device = 0, peer = 0;
  if (!PyArg_ParseTuple(args, "ii", &device, &peer)) return nullptr;
  return guard([&] {
    return PyBool_FromLong(cuda().driver().can_access_peer(device_number(device), device_number(peer)));
  });
}

// --- streams

static PyObject* f_current_stream(PyObject*, PyObject* o) {
  return guard([&] { return PyLong_FromLongLong(cuda().current_stream(device_number(o))); });
}
static PyObject* f_default_stream(PyObject*, PyObject* o) {
  return guard([&] { return PyLong_FromLongLong(cuda().default_stream(device_number(o))); });
}
static PyObject* f_set_stream(PyObject*, PyObject* o) {
  return done([&] { cuda().set_current_stream(to_int(o)); });
}
static PyObject* f_make_stream(PyObject*, PyObject* args) {
  int device = 0, priority = 0;
  if (!PyArg_ParseTuple(args, "ii", &device, &priority)) return nullptr;
  return guard([&] { return PyLong_FromLongLong(cuda().pooled_stream(device_number(device), priority)); });
}
static PyObject* f_external_stream(PyObject*, PyObject* args) {
  int device = 0;
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(args, "iK", &device, &handle)) return nullptr;
  return guard([&] {
    return PyLong_FromLongLong(
        cuda().external_stream(device_number(device), reinterpret_cast<void*>(handle)));
  });
}
static PyObject* f_stream_info(PyObject*, PyObject* o) {
  return guard([&] {
    const StreamInfo info = cuda().stream(to_int(o));
    return check(Py_BuildValue("(iiK)", info.device, info.priority,
                               reinterpret_cast<unsigned long long>(info.handle)));
  });
}
static PyObject* f_priority_range(PyObject*, PyObject*) {
  return guard([] {
    const auto [least, greatest] = cuda().driver().priority_range();
    return check(Py_BuildValue("(ii)", least, greatest));
  });
}
StreamId stream_of_protocol(int device, int64_t number) {
  if (number == 1) return cuda().default_stream(device);
  return cuda().external_stream(device, reinterpret_cast<void*>(static_cast<uintptr_t>(number)));
}
int64_t protocol_of_stream(StreamId id) {
  const auto handle = reinterpret_cast<uintptr_t>(cuda().stream(id).handle);
  return handle ? static_cast<int64_t>(handle) : 1;
}
// Calls f(driver, handle) while the stream's device is the current one.
template <class F>
static auto on_stream(StreamId id, F&& f) {
  const StreamInfo info = cuda().stream(id);
  const DeviceScope scope(cuda().driver(), info.device);
  return f(cuda().driver(), info.handle);
}

static PyObject* f_stream_query(PyObject*, PyObject* o) {
  return guard([&] {
    return on_stream(to_int(o), [&](DeviceDriver& driver, auto handle) {
      return PyBool_FromLong(driver.query_stream(handle));
    });
  });
}
static PyObject* f_stream_synchronize(PyObject*, PyObject* o) {
  return done([&] {
    const StreamId id = to_int(o);
    waiting([&] { cuda().synchronize_stream(id); });
  });
}

// --- events

static DeviceDriver::Event event_of(PyObject* o) {
  auto* event = PyLong_AsVoidPtr(o);
  if (!event) throw_python(PyExc_ValueError, "not a CUDA event");
  return event;
}
static PyObject* f_make_event(PyObject*, PyObject* args) {
  int device = 0, timing = 0, blocking = 0;
  if (!PyArg_ParseTuple(args, "ipp", &device, &timing, &blocking)) return nullptr;
  return guard([&] {
    const DeviceScope scope(cuda().driver(), device_number(device));
    return PyLong_FromVoidPtr(cuda().driver().make_event(timing, blocking));
  });
}
static PyObject* f_make_shared_event(PyObject*, PyObject* args) {
  int device = 0, blocking = 0;
  if (!PyArg_ParseTuple(args, "ip", &device, &blocking)) return nullptr;
  return guard([&] {
    const DeviceScope scope(cuda().driver(), device_number(device));
    return PyLong_FromVoidPtr(cuda().driver().make_shared_event(blocking));
  });
}
static PyObject* f_event_handle(PyObject*, PyObject* o) {
  return guard([&] {
    const std::string handle = cuda().driver().event_handle(event_of(o));
    return check(PyBytes_FromStringAndSize(handle.data(), static_cast<Py_ssize_t>(handle.size())));
  });
}
static PyObject* f_open_event(PyObject*, PyObject* args) {
  int device = 0;
  const char* handle = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "iy#", &device, &handle, &size)) return nullptr;
  return guard([&] {
    const DeviceScope scope(cuda().driver(), device_number(device));
    return PyLong_FromVoidPtr(cuda().driver().open_event({handle, static_cast<size_t>(size)}));
  });
}
static PyObject* f_release_event(PyObject*, PyObject* o) {
  return done([&] {
    if (!in_bad_fork()) cuda().driver().release_event(event_of(o));
  });
}
static PyObject* f_record_event(PyObject*, PyObject* args) {
  PyObject* event = nullptr;
  long long stream = 0;
  if (!PyArg_ParseTuple(args, "OL", &event, &stream)) return nullptr;
  return done([&] {
    on_stream(stream,
              [&](DeviceDriver& driver, auto handle) { driver.record_event(event_of(event), handle); });
  });
}
static PyObject* f_wait_event(PyObject*, PyObject* args) {
  PyObject* event = nullptr;
  long long stream = 0;
  if (!PyArg_ParseTuple(args, "OL", &event, &stream)) return nullptr;
  return done([&] {
    on_stream(stream, [&](DeviceDriver& driver, auto handle) { driver.wait_event(handle, event_of(event)); });
  });
}
static PyObject* f_event_query(PyObject*, PyObject* o) {
  return guard([&] { return PyBool_FromLong(cuda().driver().query_event(event_of(o))); });
}
static PyObject* f_event_synchronize(PyObject*, PyObject* o) {
  return done([&] {
    const DeviceDriver::Event event = event_of(o);
    waiting([&] { cuda().driver().synchronize_event(event); });
  });
}
static PyObject* f_elapsed_time(PyObject*, PyObject* args) {
  PyObject *from = nullptr, *to = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &from, &to)) return nullptr;
  return guard([&] {
    const float time = cuda().driver().elapsed_milliseconds(event_of(from), event_of(to));
    return PyFloat_FromDouble(static_cast<double>(time));
  });
}

// --- graphs

static PyObject* f_new_pool(PyObject*, PyObject*) {
  return guard([] { return PyLong_FromUnsignedLongLong(cuda().new_pool()); });
}
static PyObject* f_begin_pool(PyObject*, PyObject* args) {
  int device = 0;
  unsigned long long pool = 0;
  if (!PyArg_ParseTuple(args, "iK", &device, &pool)) return nullptr;
  return done([&] { cuda().begin_private_pool(device_number(device), pool); });
}
static PyObject* f_end_pool(PyObject*, PyObject* o) {
  return done([&] { cuda().end_private_pool(device_number(o)); });
}
static PyObject* f_release_pool(PyObject*, PyObject* args) {
  int device = 0;
  unsigned long long pool = 0;
  if (!PyArg_ParseTuple(args, "iK", &device, &pool)) return nullptr;
  return done([&] {
    if (!in_bad_fork()) cuda().release_private_pool(device_number(device), pool);
  });
}
static PyObject* f_begin_capture(PyObject*, PyObject* args) {
  long long stream = 0;
  int mode = 0;
  if (!PyArg_ParseTuple(args, "Li", &stream, &mode)) return nullptr;
  return done([&] {
    on_stream(stream, [&](DeviceDriver& driver, auto handle) { driver.begin_capture(handle, mode); });
  });
}
static PyObject* f_end_capture(PyObject*, PyObject* o) {
  return guard([&] {
    return on_stream(to_int(o), [&](DeviceDriver& driver, auto handle) {
      return PyLong_FromVoidPtr(driver.end_capture(handle));
    });
  });
}
static PyObject* f_is_capturing(PyObject*, PyObject* o) {
  return guard([&] {
    return on_stream(to_int(o), [&](DeviceDriver& driver, auto handle) {
      return PyBool_FromLong(driver.is_capturing(handle));
    });
  });
}
static PyObject* f_launch_graph(PyObject*, PyObject* args) {
  PyObject* graph = nullptr;
  long long stream = 0;
  if (!PyArg_ParseTuple(args, "OL", &graph, &stream)) return nullptr;
  return done([&] {
    const StreamInfo info = cuda().stream(stream);
    {
      const DeviceScope scope(cuda().driver(), info.device);
      cuda().driver().launch_graph(event_of(graph), info.handle);
    }
    cuda().launched(info.device, "graph");
  });
}
static PyObject* f_release_graph(PyObject*, PyObject* o) {
  return done([&] {
    if (!in_bad_fork()) cuda().driver().release_graph(event_of(o));
  });
}

// _device_switch(name[, value]) -> what it was before
static PyObject* f_switch(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    const char* name = n == 1 || n == 2 ? PyUnicode_AsUTF8(args[0]) : nullptr;
    if (!name) throw_python(PyExc_TypeError, "_device_switch takes a name, and a bool to set it");
    std::atomic<bool>* found = device_switch(name);
    RL_CHECK_VALUE(found, "no switch of devices' libraries is called ", name);
    return PyBool_FromLong(n == 2 ? found->exchange(to_bool(args[1])) : found->load());
  });
}
static PyObject* f_cudnn_version(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    const DeviceLayers* layers =
        find_device_backend(DeviceType::CUDA) ? device_layers(DeviceType::CUDA) : nullptr;
    const int64_t version = layers && layers->cudnn_version ? layers->cudnn_version() : 0;
    return version ? PyLong_FromLongLong(version) : Py_NewRef(Py_None);
  });
}

static PyMethodDef functions[] = {
    {"_device_switch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f_switch)), METH_FASTCALL,
     "What devices' libraries may do: reads or sets one of the switches of torch.backends."},
    {"_cudnn_version", f_cudnn_version, METH_NOARGS, "The version of cuDNN; None where there is none."},
    {"_cuda_getDeviceCount", f_device_count, METH_NOARGS, "The number of CUDA devices; 0 without a driver."},
    {"_cuda_getDevice", f_current_device, METH_NOARGS, "The current device."},
    {"_cuda_setDevice", f_set_device, METH_O, "Makes a device the current one of this thread."},
    {"_cuda_synchronize", f_synchronize, METH_O, "Waits for the work of a device; -1: the current one."},
    {"_cuda_isInUse", f_is_in_use, METH_NOARGS, "Whether this process has used a device."},
    {"_cuda_isInBadFork", f_is_in_bad_fork, METH_NOARGS,
     "Whether this is a fork of a process that used one."},
    {"_cuda_getDeviceProperties", f_properties, METH_O, "The facts of a device, as a dict."},
    {"_cuda_architectures", f_architectures, METH_NOARGS,
     "The architectures that kernels were compiled for."},
    {"_cuda_canDeviceAccessPeer", f_can_access_peer, METH_VARARGS,
     "Whether one device reads another's memory."},
    {"_cuda_currentStream", f_current_stream, METH_O, "The number of a device's current stream."},
    {"_cuda_defaultStream", f_default_stream, METH_O, "The number of a device's default stream."},
    {"_cuda_setStream", f_set_stream, METH_O,
     "Makes a stream the current one of its device and this thread."},
    {"_cuda_makeStream", f_make_stream, METH_VARARGS, "A stream of a device and priority, from a pool."},
    {"_cuda_externalStream", f_external_stream, METH_VARARGS, "The number of a stream that others made."},
    {"_cuda_streamInfo", f_stream_info, METH_O, "Device, priority and handle of a stream."},
    {"_cuda_priorityRange", f_priority_range, METH_NOARGS, "The least and the greatest priority."},
    {"_cuda_streamQuery", f_stream_query, METH_O, "Whether all work of a stream is done."},
    {"_cuda_streamSynchronize", f_stream_synchronize, METH_O, "Waits for the work of a stream."},
    {"_cuda_makeEvent", f_make_event, METH_VARARGS, "A new event."},
    {"_cuda_makeSharedEvent", f_make_shared_event, METH_VARARGS,
     "A new event that other processes may wait for."},
    {"_cuda_eventHandle", f_event_handle, METH_O, "What another process opens an event by."},
    {"_cuda_openEvent", f_open_event, METH_VARARGS, "The event of another process."},
    {"_cuda_releaseEvent", f_release_event, METH_O, "Ends an event."},
    {"_cuda_recordEvent", f_record_event, METH_VARARGS, "Marks the present place in a stream."},
    {"_cuda_waitEvent", f_wait_event, METH_VARARGS, "Lets a stream wait for an event."},
    {"_cuda_eventQuery", f_event_query, METH_O, "Whether what an event marks is done."},
    {"_cuda_eventSynchronize", f_event_synchronize, METH_O, "Waits for an event."},
    {"_cuda_elapsedTime", f_elapsed_time, METH_VARARGS, "Milliseconds between two events."},
    {"_cuda_newPool", f_new_pool, METH_NOARGS, "The number of a new private pool."},
    {"_cuda_beginPool", f_begin_pool, METH_VARARGS, "This thread allocates from a private pool from now on."},
    {"_cuda_endPool", f_end_pool, METH_O, "And from the shared pools again."},
    {"_cuda_releasePool", f_release_pool, METH_VARARGS, "Gives up one hold of a private pool."},
    {"_cuda_beginCapture", f_begin_capture, METH_VARARGS,
     "Records what a stream is given, instead of running it."},
    {"_cuda_endCapture", f_end_capture, METH_O, "The handle of the graph that was recorded."},
    {"_cuda_isCapturing", f_is_capturing, METH_O, "Whether a stream's work is being recorded."},
    {"_cuda_launchGraph", f_launch_graph, METH_VARARGS, "Runs a graph on a stream."},
    {"_cuda_releaseGraph", f_release_graph, METH_O, "Ends a graph."},
    {},
};

void init_cuda(PyObject* module) {
  add_functions(module, functions);
  init_cuda_memory(module);
}

}  // namespace rushlight::python
