// What torch.cuda asks of the device's library.
#include "core/device_backend.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

static DeviceBackend& cuda() { return device_backend(DeviceType::CUDA); }

static int device_number(PyObject* o) {
  if (!is_int(o)) throw_python(PyExc_TypeError, "a device number is an int, not " + type_name(o));
  return numbered(Device{DeviceType::CUDA, static_cast<int8_t>(to_int(o))}).index;
}

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
  return guard([&]() -> PyObject* {
    cuda().set_device(device_number(o));
    Py_RETURN_NONE;
  });
}
static PyObject* f_synchronize(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    const int device = device_number(o);
    {
      GilRelease released;
      cuda().synchronize(device);
    }
    Py_RETURN_NONE;
  });
}

static PyMethodDef functions[] = {
    {"_cuda_getDeviceCount", f_device_count, METH_NOARGS, "The number of CUDA devices; 0 without a driver."},
    {"_cuda_getDevice", f_current_device, METH_NOARGS, "The current device."},
    {"_cuda_setDevice", f_set_device, METH_O, "Makes a device the current one of this thread."},
    {"_cuda_synchronize", f_synchronize, METH_O, "Waits for the work of a device; -1: the current one."},
    {},
};

void init_cuda(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
