// torch.device.
#include "core/device_backend.h"
#include "python/free_threading.h"
#include "python/types.h"

namespace rushlight::python {

static Device self_of(PyObject* self) { return device_of_object(self); }

PyObject* wrap(Device device) {
  static constinit Lazy cpu;  // nearly every answer
  auto make = [device] {
    auto* box = PyObject_New(PyBox<Device>, &DeviceType_);
    if (!box) throw PythonError();
    box->value = device;
    return reinterpret_cast<PyObject*>(box);
  };
  return device == Device{} ? Py_NewRef(cpu.get(make)) : make();
}

bool is_device_like(PyObject* o) {
  return is_device(o) || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
}

static Device accelerator(int64_t index) {
  RL_CHECK(index >= 0, "Device index must not be negative");
  RL_CHECK(find_device_backend(DeviceType::CUDA), "Cannot access accelerator device when none is available.");
  RL_CHECK(index < 128, "device index must fit in 7 bits, but got ", index);
  return Device{DeviceType::CUDA, static_cast<int8_t>(index)};
}

static bool is_built(Device d) { return static_cast<int>(d.type()) < kDeviceTypeCount; }

// A device that may be one of those that have no more than a name here.
static Device parse_named(std::string_view text) {
  const auto colon = text.find(':');
  for (int i = kDeviceTypeCount;; ++i) {
    const std::string_view name = device_type_name(static_cast<DeviceType>(i));
    if (name.empty()) return Device::parse(text);
    if (name != text.substr(0, colon)) continue;
    Device device{static_cast<DeviceType>(i)};
    if (colon != std::string_view::npos)
      device.set_index(Device::parse(str("cuda", text.substr(colon))).index());
    return device;
  }
}

// A device for tensors to be on.
Device parse_device(PyObject* o) {
  if (is_device(o)) {
    const Device d = device_of_object(o);
    RL_CHECK(is_built(d), "Rushlight is not built for ", device_type_name(d.type()),
             " devices; use cpu or cuda");
    return d;
  }
  if (PyUnicode_Check(o)) return Device::parse(string_view(o));
  const int64_t index = PyLong_AsLongLong(o);
  if (index == -1 && PyErr_Occurred()) throw PythonError();
  return accelerator(index);
}

static PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  static const char* one[] = {"device", nullptr};
  PyObject *type = nullptr, *index = nullptr;
  const bool by_device = kwargs && PyDict_GetItemString(kwargs, "device");
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, by_device ? "O" : "O|O",
                                   const_cast<char**>(by_device ? one : names), &type, &index))
    return nullptr;
  return guard([&]() -> PyObject* {
    if (!is_device_like(type))
      throw_python(PyExc_TypeError,
                   "device(): argument 'type' (position 1) must be str, not " + type_name(type));
    Device d = is_device(type)         ? device_of_object(type)
               : PyUnicode_Check(type) ? parse_named(string_view(type))
                                       : parse_device(type);
    if (index && index != Py_None) {
      RL_CHECK(d.index() < 0,
               "type (string) must not include an index because index was passed explicitly: ", to_string(d));
      const int64_t i = PyLong_AsLongLong(index);
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      RL_CHECK(i >= 0, "Device index must not be negative");
      RL_CHECK(i < 128, "device index must fit in 7 bits, but got ", i);
      d.set_index(static_cast<int>(i));
    }
    return wrap(d);
  });
}

static PyObject* device_repr(PyObject* self) {
  return guard([&] {
    const Device d = self_of(self);
    std::string text = str("device(type='", device_type_name(d.type()), "'");
    if (d.index() >= 0) text += str(", index=", static_cast<int>(d.index()));
    return to_python(text + ")");
  });
}
static PyObject* device_str(PyObject* self) {
  return guard([&] { return to_python(to_string(self_of(self))); });
}
static Py_hash_t device_hash(PyObject* self) {
  const Device d = self_of(self);
  return (static_cast<int>(d.type()) << 8) ^ (d.index() + 1);
}
static PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(a) || !is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((self_of(a) == self_of(b)) == (op == Py_EQ));
}
static PyObject* get_type(PyObject* self, void*) {
  return guard([&] { return to_python(device_type_name(self_of(self).type())); });
}
static PyObject* get_index(PyObject* self, void*) {
  const int index = self_of(self).index();
  if (index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(index);
}
static PyObject* device_reduce(PyObject* self, PyObject*) {
  const Device d = self_of(self);
  PyRef type(get_type(self, nullptr));
  if (!type) return nullptr;
  if (d.index() < 0) return Py_BuildValue("O(O)", &DeviceType_, type.get());
  return Py_BuildValue("O(Oi)", &DeviceType_, type.get(), static_cast<int>(d.index()));
}

// `with torch.device("meta"):` is a function mode; its Python half lives in rushlight/utils/_device.py.
static PyObject* call_context(PyObject* self, const char* function, PyObject* args) {
  PyRef module(PyImport_ImportModule("rushlight.utils._device"));
  if (!module) return nullptr;
  PyRef f(PyObject_GetAttrString(module.get(), function));
  if (!f) return nullptr;
  return args ? PyObject_CallFunctionObjArgs(f.get(), self, args, nullptr)
              : PyObject_CallOneArg(f.get(), self);
}
static PyObject* device_enter(PyObject* self, PyObject*) { return call_context(self, "_enter", nullptr); }
static PyObject* device_exit(PyObject* self, PyObject*) { return call_context(self, "_exit", nullptr); }
static PyObject* device_call(PyObject* self, PyObject* args, PyObject*) {
  if (PyTuple_GET_SIZE(args) != 1) {
    PyErr_SetString(PyExc_TypeError, "a device used as a decorator takes the function alone");
    return nullptr;
  }
  return call_context(self, "_decorate", PyTuple_GET_ITEM(args, 0));
}

static PyMethodDef methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {"__enter__", device_enter, METH_NOARGS, nullptr},
                                {"__exit__", device_exit, METH_VARARGS, nullptr},
                                {}};
static PyGetSetDef getset[] = {{"type", get_type, nullptr,
                                "\"cpu\", \"cuda\", \"meta\", or a type that this build only knows by name."
                                "\n\nExample:\n    >>> torch.device(\"cuda:1\").type\n    'cuda'",
                                nullptr},
                               {"index", get_index, nullptr,
                                "The device's number, or None for the current one."
                                "\n\nExample:\n    >>> torch.device(\"cuda:1\").index\n    1",
                                nullptr},
                               {}};

PyTypeObject DeviceType_ = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.device",
    .tp_basicsize = sizeof(PyBox<Device>),
    .tp_dealloc = [](PyObject* self) { PyObject_Free(self); },
    .tp_repr = device_repr,
    .tp_hash = device_hash,
    .tp_call = device_call,
    .tp_str = device_str,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "device(type, index=None): where a tensor lives; also a context in which new tensors are made there."
        "\n\nArgs:\n    type (str): \"cpu\", \"cuda\", \"cuda:1\", \"meta\".\n    index (int or None): which "
        "one."
        "\n\nExample:\n    >>> torch.device(\"cuda\", 1)\n    device(type='cuda', index=1)",
    .tp_richcompare = device_compare,
    .tp_methods = methods,
    .tp_getset = getset,
    .tp_new = device_new,
};

void init_devices(PyObject* module) { add_type(module, "device", &DeviceType_); }

}  // namespace rushlight::python
