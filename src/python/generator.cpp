// torch.Generator.
#include "core/generator.h"

#include <cstring>

#include "core/device_backend.h"
#include "python/cuda.h"
#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

struct PyGenerator {
  PyObject_HEAD Generator* generator;
  PyObject* weakrefs;
};

Generator* generator_of(PyObject* o) { return reinterpret_cast<PyGenerator*>(o)->generator; }

PyObject* wrap_generator(Ref<Generator> g) {
  PyObject* self = check(GeneratorType.tp_alloc(&GeneratorType, 0));
  reinterpret_cast<PyGenerator*>(self)->generator = g.detach();
  return self;
}

static PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &device)) return nullptr;
  return guard([&] {
    Device d;
    if (device && device != Py_None) {
      if (!is_device_like(device))
        throw_python(
            PyExc_TypeError,
            "Generator(): argument 'device' (position 1) must be torch.device, not " + type_name(device));
      d = parse_device(device);
    }
    if (!d.is_meta()) d = numbered(d);
    RL_CHECK(!d.is_meta(), "Device type META is not supported for torch.Generator() api.");
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<PyGenerator*>(self)->generator = make_ref<Generator>(d).detach();
    return self;
  });
}
static void dealloc(PyObject* self) {
  if (reinterpret_cast<PyGenerator*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Ref<Generator>::adopt(generator_of(self));
  Py_TYPE(self)->tp_free(self);
}

// Negative seeds wrap around, as PyTorch reads them.
static uint64_t to_seed(PyObject* o) {
  if (!is_int(o) && !PyFloat_Check(o))
    throw_python(PyExc_TypeError, "manual_seed expected a long, but got " + type_name(o));
  PyRef number(check(PyNumber_Long(o)));
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (!overflow) {
    if (v == -1 && PyErr_Occurred()) throw PythonError();
    return static_cast<uint64_t>(v);
  }
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) throw_python(PyExc_ValueError, "Overflow when unpacking long long");
  return u;
}

static PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guard([&] {
    generator_of(self)->manual_seed(to_seed(seed));
    return Py_NewRef(self);
  });
}
static PyObject* reseed(PyObject* self, PyObject*) {
  return guard([&] { return PyLong_FromUnsignedLongLong(generator_of(self)->seed()); });
}
static PyObject* initial_seed(PyObject* self, PyObject*) {
  return guard([&] { return PyLong_FromUnsignedLongLong(generator_of(self)->initial_seed()); });
}
static PyObject* get_state(PyObject* self, PyObject*) {
  return guard([&] {
    const size_t bytes = generator_of(self)->state_bytes();
    Tensor state = empty_tensor({static_cast<int64_t>(bytes)}, DType::UInt8);
    generator_of(self)->get_state({state.data<std::byte>(), bytes});
    return wrap(std::move(state));
  });
}
static PyObject* set_state(PyObject* self, PyObject* o) {
  return guard([&] {
    if (!is_tensor(o) || tensor_of(o).dtype() != DType::UInt8 || !tensor_of(o).is_contiguous())
      throw_python(PyExc_TypeError, "expected a torch.ByteTensor, but got " + type_name(o));
    const Tensor& t = tensor_of(o);
    generator_of(self)->set_state(
        std::span<const std::byte>(t.data<std::byte>(), static_cast<size_t>(t.numel())));
    return Py_NewRef(self);
  });
}
static PyObject* clone_state(PyObject* self, PyObject*) {
  return guard([&] { return wrap_generator(generator_of(self)->clone()); });
}
// States that CUDA graphs may share: no generator here has one.
static PyObject* graphsafe_get_state(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "graphsafe_get_state is not supported in this Generator");
  return nullptr;
}
static PyObject* graphsafe_set_state(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "graphsafe_set_state is not supported in this Generator");
  return nullptr;
}
static void check_on_device(PyObject* self, const char* what) {
  RL_CHECK(!generator_of(self)->device().is_cpu(), "CPU Generator does not use offset (", what, ")");
}
static PyObject* get_offset(PyObject* self, PyObject*) {
  return guard([&] {
    check_on_device(self, "get_offset");
    return PyLong_FromUnsignedLongLong(generator_of(self)->offset());
  });
}
static PyObject* set_offset(PyObject* self, PyObject* o) {
  return guard([&] {
    check_on_device(self, "set_offset");
    generator_of(self)->set_offset(to_seed(o));
    return Py_NewRef(self);
  });
}
static PyObject* get_device(PyObject* self, void*) {
  return guard([&] { return wrap(generator_of(self)->device()); });
}
static PyObject* reduce(PyObject* self, PyObject*) {
  PyRef state(get_state(self, nullptr));
  PyRef device(get_device(self, nullptr));
  return state && device ? Py_BuildValue("O(O)O", Py_TYPE(self), device.get(), state.get()) : nullptr;
}
static PyObject* setstate(PyObject* self, PyObject* state) {
  PyRef result(set_state(self, state));
  if (!result) return nullptr;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the stream of this seed."},
    {"seed", reseed, METH_NOARGS, "Seeds from the system's entropy and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed the stream began with."},
    {"get_state", get_state, METH_NOARGS, "The state as a tensor of bytes."},
    {"set_state", set_state, METH_O, "Goes back to a saved state."},
    {"get_offset", get_offset, METH_NOARGS, "How many numbers each thread of a device's kernels has drawn."},
    {"set_offset", set_offset, METH_O, "Goes to a place in a device's stream, a multiple of 4."},
    {"clone_state", clone_state, METH_NOARGS, "A generator that goes on independently from here."},
    {"graphsafe_get_state", graphsafe_get_state, METH_NOARGS, "Not supported on the CPU."},
    {"graphsafe_set_state", graphsafe_set_state, METH_O, "Not supported on the CPU."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", setstate, METH_O, nullptr},
    {}};
static PyGetSetDef properties[] = {
    {"device", get_device, nullptr, "The device the numbers are drawn on.", nullptr}, {}};

PyTypeObject GeneratorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.Generator",
    .tp_basicsize = sizeof(PyGenerator),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "Generator(device='cpu'): a source of random numbers with a state of its own."
        "\n\nArgs:\n    device (device or str): where numbers are drawn.\n\nExample:\n    >>> g = "
        "torch.Generator().manual_seed(0)\n    >>> torch.randint(10, (3,), generator=g).shape\n    "
        "torch.Size([3])",
    .tp_weaklistoffset = offsetof(PyGenerator, weakrefs),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = generator_new,
};

static PyObject* thread_generator(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    Generator& current = default_generator();
    if (&current == &process_generator()) Py_RETURN_NONE;
    return wrap_generator(Ref<Generator>::share(&current));
  });
}

static PyObject* use_generator(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    if (o != Py_None && !PyObject_TypeCheck(o, &GeneratorType))
      throw_python(PyExc_TypeError, "_use_generator expects a Generator or None, but got " + type_name(o));
    set_thread_generator(o == Py_None ? Ref<Generator>() : Ref<Generator>::share(generator_of(o)));
    Py_RETURN_NONE;
  });
}

static PyObject* seed_devices(PyObject*, PyObject* seed) {
  return guard([&]() -> PyObject* {
    seed_device_generators(to_seed(seed));
    Py_RETURN_NONE;
  });
}

static PyObject* of_device(PyObject*, PyObject* o) {
  return guard([&] {
    const Device device = numbered(Device{DeviceType::CUDA, static_cast<int8_t>(to_int(o))});
    return wrap_generator(Ref<Generator>::share(&device_generator(device.index())));
  });
}

static PyObject* begin_graph(PyObject*, PyObject* args) {
  int device = 0;
  unsigned long long base = 0;
  if (!PyArg_ParseTuple(args, "iK", &device, &base)) return nullptr;
  return guard([&]() -> PyObject* {
    device_generator(device_number(device)).begin_graph(reinterpret_cast<const uint64_t*>(base));
    Py_RETURN_NONE;
  });
}
static PyObject* end_graph(PyObject*, PyObject* o) {
  return guard([&] {
    return PyLong_FromUnsignedLongLong(
        device_generator(device_number(static_cast<long>(to_int(o)))).end_graph());
  });
}

static PyMethodDef functions[] = {
    {"_thread_generator", thread_generator, METH_NOARGS,
     "The generator of this thread alone, if it has one."},
    {"_use_generator", use_generator, METH_O,
     "Gives this thread a default generator of its own; None: none."},
    {"_cuda_defaultGenerator", of_device, METH_O, "The generator that a device's operators draw from."},
    {"_cuda_seedAll", seed_devices, METH_O, "Starts the streams of all devices, there or not, from a seed."},
    {"_cuda_beginGraphDraws", begin_graph, METH_VARARGS,
     "Numbers count from a place in the device's memory."},
    {"_cuda_endGraphDraws", end_graph, METH_O, "How many each thread drew since then."},
    {}};

void init_generator(PyObject* module) {
  add_type(module, "Generator", &GeneratorType);
  check(PyModule_AddFunctions(module, functions));
  PyRef shared(wrap_generator(Ref<Generator>::share(&process_generator())));
  check(PyModule_AddObjectRef(module, "default_generator", shared.get()));
}

}  // namespace rushlight::python
