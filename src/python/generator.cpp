// torch.Generator.
#include "core/generator.h"

#include <cstring>

#include "python/parse.h"
#include "python/types.h"

namespace rushlight::python {

struct PyGenerator {
  PyObject_HEAD Generator* generator;
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
    RL_CHECK(d.is_cpu(), "Generator: this build draws random numbers on the CPU only, but got device '",
             to_string(d), "'");
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<PyGenerator*>(self)->generator = make_ref<Generator>().detach();
    return self;
  });
}
static void dealloc(PyObject* self) {
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
  if (overflow < 0 || PyErr_Occurred())
    throw_python(PyExc_RuntimeError, "Overflow when unpacking unsigned long");
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
    Tensor state = empty_tensor({static_cast<int64_t>(Generator::kStateBytes)}, DType::UInt8);
    generator_of(self)->get_state(
        std::span<std::byte, Generator::kStateBytes>(state.data<std::byte>(), Generator::kStateBytes));
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
static PyObject* get_device(PyObject* self, void*) { return wrap(generator_of(self)->device()); }
static PyObject* reduce(PyObject* self, PyObject*) {
  PyRef state(get_state(self, nullptr));
  return state ? Py_BuildValue("O()O", Py_TYPE(self), state.get()) : nullptr;
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
    .tp_doc = "Generator(device='cpu'): a source of random numbers with a state of its own.",
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

static PyMethodDef functions[] = {{"_thread_generator", thread_generator, METH_NOARGS,
                                   "The generator of this thread alone, if it has one."},
                                  {"_use_generator", use_generator, METH_O,
                                   "Gives this thread a default generator of its own; None: none."},
                                  {}};

void init_generator(PyObject* module) {
  add_type(module, "Generator", &GeneratorType);
  check(PyModule_AddFunctions(module, functions));
  PyRef shared(wrap_generator(Ref<Generator>::share(&process_generator())));
  check(PyModule_AddObjectRef(module, "default_generator", shared.get()));
}

}  // namespace rushlight::python
