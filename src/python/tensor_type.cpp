// Note [Python identity]
// One TensorImpl has at most one wrapper at a time, found through impl->pyobj. Normally the wrapper owns a
// reference on the impl and impl->pyobj is borrowed. When the last Python reference to the wrapper goes while
// C++ still holds the impl, a wrapper without state (no dict, no weak references, exactly torch.Tensor)
// simply dies: a new one is made when Python asks again. A wrapper with state is resurrected and ownership
// turns round: impl->owns_pyobj is set, the impl keeps the wrapper alive with that one reference, and the
// wrapper's pointer on the impl becomes borrowed. wrap() turns it back. Both directions happen with the GIL
// held.
//
// Without a GIL, IdentityLock of the impl guards impl->pyobj and both directions, and four things are added:
// - wrap() finds a wrapper that does not belong to it, so it takes a reference only if the wrapper is not
// dying
//   (try_incref). A dying one has not passed the lock yet; wrap() then gives its state to a new wrapper.
// - The deallocator first passes the lock: it resurrects the wrapper, or detaches it from the impl.
// - A borrowed pointer could dangle while a weak reference leads to the wrapper. Such a wrapper is marked
//   (PyTensor::borrows), and who uses it first makes it the owner again (take_impl).
// - An impl that dies with a wrapper looks under the lock whether that has happened: then it lives on.
// No object is made or freed under the lock.
#include "python/tensor_type.h"

#include <cstddef>
#include <cstring>

#include "python/op_function.h"

namespace rushlight::python {

PyTypeObject* tensor_type = &TensorBaseType;
PyTypeObject* parameter_type = nullptr;
bool type_has_torch_dispatch(PyTypeObject* type);  // torch_dispatch.cpp

int (*traverse_autograd)(TensorImpl*, visitproc, void*) = nullptr;
void (*clear_autograd)(TensorImpl*) = nullptr;

static PyTensor* as_tensor(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

// --- allocation: exact torch.Tensor wrappers come from a free list

constexpr int kFreeLimit = 256;
static PyTensor* free_wrappers[kFreeLimit];
static int free_count = 0;

static PyTensor* allocate(PyTypeObject* type) {
  PyTensor* self;
  if (!kFreeThreaded && type == tensor_type && free_count > 0) {
    self = free_wrappers[--free_count];
    (void)PyObject_Init(reinterpret_cast<PyObject*>(self), type);
  } else {
    self = PyObject_GC_New(PyTensor, type);
    if (!self) throw PythonError();
    // What `__slots__` of a subclass hold lies behind; the allocator does not clear it.
    std::memset(static_cast<void*>(self + 1), 0, static_cast<size_t>(type->tp_basicsize) - sizeof(PyTensor));
  }
  self->impl = nullptr;
  self->dict = self->weakrefs = nullptr;
#ifdef Py_GIL_DISABLED
  self->borrows = false;
  enable_try_incref(reinterpret_cast<PyObject*>(self));
#endif
  return self;
}

static PyObject* attach(PyTypeObject* type, Tensor&& t) {
  PyTensor* self = allocate(type);
  TensorImpl* impl = t.detach_impl();
  self->impl = impl;
  impl->pyobj = self;
  return reinterpret_cast<PyObject*>(self);
}

static void free_wrapper(PyObject* object);

#ifdef Py_GIL_DISABLED

// What a dying wrapper holds goes to the one that takes its place.
static void move_state(PyTensor* from, PyTensor* to) {
  to->dict = std::exchange(from->dict, nullptr);
  const auto slots = static_cast<size_t>(Py_TYPE(from)->tp_basicsize) - sizeof(PyTensor);
  std::memcpy(static_cast<void*>(to + 1), static_cast<void*>(from + 1), slots);
  std::memset(static_cast<void*>(from + 1), 0, slots);
}

// The wrapper of an impl that others may be looking at, too.
static PyObject* wrap_shared(Tensor&& t) {
  TensorImpl* impl = t.impl();
  PyTensor *spare = nullptr, *found = nullptr;
  for (PyTypeObject* wanted = tensor_type; !found;) {
    if (spare && Py_TYPE(spare) != wanted)
      free_wrapper(reinterpret_cast<PyObject*>(std::exchange(spare, nullptr)));
    if (!spare) spare = allocate(wanted);
    IdentityLock lock(impl);
    auto* there = static_cast<PyTensor*>(impl->pyobj.get());
    wanted = there ? Py_TYPE(there) : tensor_type;
    if (there && impl->owns_pyobj) {
      impl->owns_pyobj = false;
      std::atomic_ref(there->borrows).store(false, std::memory_order_release);
      t.detach_impl();
      found = there;
    } else if (there && try_incref(reinterpret_cast<PyObject*>(there))) {
      found = there;
    } else if (Py_TYPE(spare) == wanted) {
      if (there) move_state(there, spare);
      spare->impl = t.detach_impl();
      impl->pyobj = spare;
      found = std::exchange(spare, nullptr);
    }
  }
  if (spare) free_wrapper(reinterpret_cast<PyObject*>(spare));
  if (found->dict || Py_TYPE(found) != tensor_type) track(reinterpret_cast<PyObject*>(found));
  return reinterpret_cast<PyObject*>(found);
}

void take_impl(PyTensor* self) {
  for (;;) {
    TensorImpl* impl = std::atomic_ref(self->impl).load(std::memory_order_acquire);
    IdentityLock lock(impl);
    std::atomic_ref borrows(self->borrows);
    if (!borrows.load(std::memory_order_relaxed)) return;  // another thread did
    if (self->impl != impl) continue;
    impl->retain();
    impl->owns_pyobj = false;
    borrows.store(false, std::memory_order_release);
    break;
  }
  Py_DECREF(self);  // the impl's reference; the caller has one
}
#endif

static PyObject* existing_wrapper(Tensor&& t) {
  TensorImpl* impl = t.impl();
  auto* self = static_cast<PyObject*>(impl->pyobj.get());
  if (!impl->owns_pyobj) return Py_NewRef(self);
  impl->owns_pyobj = false;  // the impl's reference goes to the caller, the caller's one to the wrapper
  t.detach_impl();
  return self;
}

PyObject* wrap(Tensor t) {
  if (!t.defined()) Py_RETURN_NONE;
#ifdef Py_GIL_DISABLED
  if (t->use_count() > 1 || t->pyobj) return wrap_shared(std::move(t));
#endif
  if (t->pyobj) return existing_wrapper(std::move(t));
  return attach(tensor_type, std::move(t));
}

static void mark_type(PyTypeObject* type, TensorImpl* impl) {
  if (type == tensor_type) return;
  if (type == parameter_type)
    impl->flags.set(kParameter);
  else
    impl->flags.set(type_has_torch_dispatch(type) ? kPythonSubclass | kPythonDispatch : kPythonSubclass);
}

[[noreturn]] static void throw_wrapped_already(PyTypeObject* type, const Tensor& t) {
  throw_python(PyExc_RuntimeError,
               str("Creating a new Tensor subclass ", type->tp_name,
                   " but the raw Tensor object is already associated to a python object of type ",
                   Py_TYPE(static_cast<PyObject*>(t->pyobj.get()))->tp_name,
                   " which is not a subclass of the requested type"));
}

PyObject* wrap_as(PyTypeObject* type, Tensor t) {
  if (t->pyobj) throw_wrapped_already(type, t);
  mark_type(type, t.impl());
  PyTensor* wrapper = allocate(type);
  auto* self = reinterpret_cast<PyObject*>(wrapper);
  {
    const IdentityLock lock(t.impl());
    if (!t->pyobj) {
      t->pyobj = wrapper;
      wrapper->impl = t.detach_impl();
    }
  }
  if (!wrapper->impl) {
    free_wrapper(self);
    throw_wrapped_already(type, t);
  }
  if (type != tensor_type) track(self);
  return self;
}

PyObject* wrap_tuple(std::vector<Tensor>&& list) {
  PyRef tuple(check(PyTuple_New(static_cast<Py_ssize_t>(list.size()))));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(std::move(list[i])));
  return tuple.release();
}

const Tensor& expect_tensor(PyObject* o, const char* what) {
  if (!is_tensor(o)) throw_python(PyExc_TypeError, str(what, " must be Tensor, not ", type_name(o)));
  return tensor_of(o);
}

void track(PyObject* tensor) {
  if (PyObject_GC_IsTracked(tensor)) return;
  const CriticalSection section(tensor);
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

// --- destruction

static bool has_state(PyTensor* self) {
  return (self->dict && PyDict_GET_SIZE(self->dict) > 0) || self->weakrefs || Py_TYPE(self) != tensor_type;
}

// The impl takes the wrapper over instead of letting it die. Without a GIL the wrapper has left the impl
// afterwards, if it was not taken over.
static bool resurrect(PyTensor* self) {
  TensorImpl* impl = self->impl;
  if (!impl) return false;
#ifdef Py_GIL_DISABLED
  {
    IdentityLock lock(impl);
    if (impl->pyobj != self) return false;  // wrap() put another one in its place
    if (impl->use_count() == 1 || !has_state(self)) {
      impl->pyobj = nullptr;
      return false;
    }
    std::atomic_ref(self->borrows).store(true, std::memory_order_release);
    impl->owns_pyobj = true;
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);  // last: a weak reference finds it from now on
  }
#else
  if (impl->use_count() == 1 || !has_state(self)) return false;
  impl->owns_pyobj = true;
#if PY_VERSION_HEX >= 0x030C0000
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
#else
  Py_SET_REFCNT(self, 1);
#endif
#endif
  Tensor dropped(Ref<TensorImpl>::adopt(impl));  // the wrapper's reference; others remain
  return true;
}

// Runs __del__; whether somebody holds the wrapper now.
static bool finalize(PyTensor* self) {
  auto* object = reinterpret_cast<PyObject*>(self);
  if (!Py_TYPE(object)->tp_finalize) return false;
  const bool held = PyObject_CallFinalizerFromDealloc(object) < 0;
#ifdef Py_GIL_DISABLED
  if (self->impl) {
    if (held) enable_try_incref(object);
    IdentityLock lock(self->impl);
    if (!self->impl->pyobj) self->impl->pyobj = self;
  }
#endif
  return held;
}

static void drop_impl(PyTensor* self) {
  TensorImpl* impl = std::exchange(self->impl, nullptr);
  if (!impl) return;
  {
    IdentityLock lock(impl);
    if (impl->pyobj == self) impl->pyobj = nullptr;
  }
  Tensor dropped(Ref<TensorImpl>::adopt(impl));
}

static void free_wrapper(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!kFreeThreaded && type == tensor_type && free_count < kFreeLimit)
    free_wrappers[free_count++] = as_tensor(object);
  else
    PyObject_GC_Del(object);
  // Threads count the type's instances apart, but this would be a count that all share: torch.Tensor stays.
  if (kFreeThreaded && type == tensor_type) return;
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type);
}

// What `__slots__` of subclasses hold.
static void clear_slots(PyObject* object) {
  for (PyTypeObject* t = Py_TYPE(object); t && t != &TensorBaseType; t = t->tp_base) {
    PyMemberDef* member = t->tp_members;
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || !member) continue;
    for (; member->name; ++member) {
      if (member->type != T_OBJECT_EX || (member->flags & READONLY)) continue;
      auto** slot = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset);
      Py_CLEAR(*slot);
    }
  }
}

static void tensor_dealloc(PyObject* object) {
  PyTensor* self = as_tensor(object);
  // Without a GIL the wrapper must have left its impl before Python code runs.
  if (kFreeThreaded && resurrect(self)) return;
  const bool finalized = Py_TYPE(object)->tp_finalize;
  if (finalize(self)) return;
  if ((finalized || !kFreeThreaded) && resurrect(self)) return;
  if (PyObject_GC_IsTracked(object)) PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  if (Py_TYPE(object) != tensor_type) clear_slots(object);
  Py_CLEAR(self->dict);
  drop_impl(self);
  free_wrapper(object);
}

// Whoever still reaches the wrapper, through a weak reference or the collector, finds something valid.
static void give_empty_impl(PyTensor* self) {
  Tensor empty = empty_tensor({0}, DType::Float32);
  self->impl = empty.detach_impl();
  self->impl->pyobj = self;
}

// core calls this when an impl that owns its wrapper dies, on any thread.
static bool release_wrapper(TensorImpl* impl) {
  if (!Py_IsInitialized()) {
    // The interpreter is ending, which its flag says before the last collection visits every wrapper.
    auto* self = static_cast<PyTensor*>(impl->pyobj.get());
    self->impl = nullptr;
    if (Py_REFCNT(reinterpret_cast<PyObject*>(self)) > 1) give_empty_impl(self);
    return true;
  }
  GilAcquire gil;
#ifdef Py_GIL_DISABLED
  Tensor empty = empty_tensor({0}, DType::Float32);
  PyTensor* self = nullptr;
  {
    IdentityLock lock(impl);
    if (!impl->owns_pyobj) return impl->release();  // found through its wrapper: only our reference goes
    self = static_cast<PyTensor*>(impl->pyobj.get());
    impl->owns_pyobj = false;
    impl->pyobj = nullptr;
    empty->pyobj = self;
    std::atomic_ref(self->impl).store(empty.detach_impl(), std::memory_order_release);
    std::atomic_ref(self->borrows).store(false, std::memory_order_release);
  }
#else
  auto* self = static_cast<PyTensor*>(impl->pyobj.get());
  impl->owns_pyobj = false;
  self->impl = nullptr;
  if (Py_REFCNT(reinterpret_cast<PyObject*>(self)) > 1) give_empty_impl(self);
#endif
  Py_DECREF(self);
  return true;
}

// Whether C++ holds the impl beside its wrapper, which the collector cannot see: a graph, a gradient.
static bool is_held_by_core(const PyTensor* self) {
  return self->impl && !self->impl->owns_pyobj && self->impl->use_count() > 1;
}

// What a tensor refers to is reachable as long as C++ holds it: the attributes are then not shown, so that a
// cycle through them stays whole. As in PyTorch, a cycle that needs a reference of C++ to close is kept.
static int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
  PyTensor* self = as_tensor(object);
  if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_VISIT(Py_TYPE(object));
  if (is_held_by_core(self)) return 0;
  Py_VISIT(self->dict);
  for (PyTypeObject* t = Py_TYPE(object); t && t != &TensorBaseType; t = t->tp_base) {
    PyMemberDef* member = t->tp_members;
    if (!(t->tp_flags & Py_TPFLAGS_HEAPTYPE) || !member) continue;
    for (; member->name; ++member)
      if (member->type == T_OBJECT_EX && !(member->flags & READONLY))
        Py_VISIT(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset));
  }
  // Only the sole owner may show what hangs on the impl: another owner keeps it alive.
  if (traverse_autograd && self->impl && self->impl->autograd && !self->impl->owns_pyobj)
    return traverse_autograd(self->impl, visit, arg);
  return 0;
}

static int tensor_clear(PyObject* object) {
  PyTensor* self = as_tensor(object);
  if (is_held_by_core(self)) return 0;  // finalizers of the cycle gave it away
  if (self->impl && self->impl->autograd && clear_autograd) clear_autograd(self->impl);
  if (Py_TYPE(object) != tensor_type) clear_slots(object);
  Py_CLEAR(self->dict);
  return 0;
}

// --- attributes

static int tensor_setattro(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (as_tensor(self)->dict) track(self);
  return status;
}

static PyObject* get_dict(PyObject* self, void*) {
  PyObject* dict = PyObject_GenericGetDict(self, nullptr);
  if (dict) track(self);
  return dict;
}
static int set_dict(PyObject* self, PyObject* value, void*) {
  const int status = PyObject_GenericSetDict(self, value, nullptr);
  if (as_tensor(self)->dict) track(self);
  return status;
}
static PyGetSetDef dict_property[] = {{"__dict__", get_dict, set_dict, nullptr, nullptr}, {}};

// --- the metaclass: gives every subclass our deallocator

// A class that handles operators itself sees their results as they are, unless it handles functions too.
static int leave_functions(PyObject* cls) {
  if (!tensor_type) return 0;
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type)) {
    PyErr_SetString(PyExc_RuntimeError, "Cannot subclass _TensorBase directly");
    return -1;
  }
  PyRef dispatch(PyObject_GetAttrString(cls, "__torch_dispatch__"));
  if (!dispatch) return -1;
  if (dispatch.get() == disabled_torch_dispatch) return 0;
  PyRef own(PyObject_GetAttrString(cls, "__torch_function__"));
  PyRef common(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__torch_function__"));
  if (!own || !common) return -1;
  if (!PyMethod_Check(own.get()) || !PyMethod_Check(common.get())) return 0;
  if (PyMethod_GET_FUNCTION(own.get()) != PyMethod_GET_FUNCTION(common.get())) return 0;
  return PyObject_SetAttrString(cls, "__torch_function__", disabled_torch_function);
}

static int meta_init(PyObject* cls, PyObject* args, PyObject* kwargs) {
  if (PyType_Type.tp_init(cls, args, kwargs) < 0 || leave_functions(cls) < 0) return -1;
  reinterpret_cast<PyTypeObject*>(cls)->tp_dealloc = tensor_dealloc;
  reinterpret_cast<PyTypeObject*>(cls)->tp_traverse = tensor_traverse;
  reinterpret_cast<PyTypeObject*>(cls)->tp_clear = tensor_clear;
  return 0;
}

// isinstance(instance, Parameter), and of its subclasses. A tensor subclass that Parameter wrapped keeps its
// own type; the mark makes it count as a Parameter.
static PyObject* is_parameter(PyObject* cls, PyObject* instance) {
  if (PyType_IsSubtype(Py_TYPE(instance), reinterpret_cast<PyTypeObject*>(cls))) Py_RETURN_TRUE;
  const bool bare = Py_TYPE(instance) == tensor_type && !as_tensor(instance)->dict;
  if (bare) Py_RETURN_FALSE;
  if (cls == reinterpret_cast<PyObject*>(parameter_type) && is_tensor(instance)) {
    PyRef mark(PyObject_GetAttrString(instance, "_is_param"));
    if (!mark) PyErr_Clear();
    const int marked = mark ? PyObject_IsTrue(mark.get()) : 0;
    if (marked) return marked < 0 ? nullptr : Py_NewRef(Py_True);
  }
  static constinit Lazy plain;
  PyObject* check_plainly = plain.get([] {
    return check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyType_Type), "__instancecheck__"));
  });
  PyObject* args[] = {cls, instance};
  return PyObject_Vectorcall(check_plainly, args, 2, nullptr);
}
static PyMethodDef parameter_check = {"__instancecheck__", is_parameter, METH_O, nullptr};

PyTypeObject TensorMeta = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._TensorMeta",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_base = &PyType_Type,
    .tp_init = meta_init,
};

// hash(t) == id(t), which programs rely on that keep tensors by either.
static Py_hash_t tensor_hash(PyObject* self) {
  const auto id = reinterpret_cast<Py_hash_t>(self);
  return id == -1 ? -2 : id;
}

PyTypeObject TensorBaseType = {
    .ob_base = {PyObject_HEAD_INIT(&TensorMeta) 0},
    .tp_name = "rushlight._C.TensorBase",
    .tp_basicsize = sizeof(PyTensor),
    .tp_dealloc = tensor_dealloc,
    .tp_as_number = &tensor_number,
    .tp_as_sequence = &tensor_sequence,
    .tp_as_mapping = &tensor_mapping,
    .tp_hash = tensor_hash,
    .tp_setattro = tensor_setattro,
    .tp_as_buffer = &tensor_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A multi-dimensional array of one element type.",
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_richcompare = tensor_richcompare,
    .tp_weaklistoffset = offsetof(PyTensor, weakrefs),
    .tp_iter = tensor_iter,
    .tp_getset = dict_property,
    .tp_dictoffset = offsetof(PyTensor, dict),
    .tp_new = tensor_new,
};

void add_tensor_member(const char* name, PyObject* descriptor) {
  check(PyDict_SetItemString(TensorBaseType.tp_dict, name, check(descriptor)));
}

// --- making wrappers of other types

static PyTypeObject* expect_tensor_class(PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), &TensorBaseType))
    throw_python(PyExc_TypeError, "cls must be a type that inherits from Tensor");
  return reinterpret_cast<PyTypeObject*>(cls);
}

static PyObject* set_tensor_type(PyObject*, PyObject* cls) {
  return guard([&]() -> PyObject* {
    tensor_type = expect_tensor_class(Py_NewRef(cls));
    Py_RETURN_NONE;
  });
}
static PyObject* set_parameter_type(PyObject*, PyObject* cls) {
  return guard([&]() -> PyObject* {
    parameter_type = expect_tensor_class(Py_NewRef(cls));
    Py_RETURN_NONE;
  });
}
static PyObject* use_count(PyObject*, PyObject* tensor) {
  return guard([&] {
    return PyLong_FromSize_t(static_cast<size_t>(expect_tensor(tensor, "use_count")->use_count()));
  });
}
// Each wrapper takes over what the other stood for.
static PyObject* swap_tensor_impl(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n != 2) throw_python(PyExc_TypeError, "_swap_tensor_impl takes two tensors");
    for (Py_ssize_t i = 0; i < 2; ++i) expect_tensor(args[i], "_swap_tensor_impl(): argument");
    std::swap(as_tensor(args[0])->impl, as_tensor(args[1])->impl);
    for (Py_ssize_t i = 0; i < 2; ++i) as_tensor(args[i])->impl->pyobj = args[i];
    Py_RETURN_NONE;
  });
}
static PyMethodDef functions[] = {
    {"_tensor_use_count", use_count, METH_O, "How many hold the tensor, this wrapper among them."},
    {"_swap_tensor_impl", reinterpret_cast<PyCFunction>(swap_tensor_impl), METH_FASTCALL,
     "Lets two wrappers change places."},
    {"_set_tensor_type", set_tensor_type, METH_O, "Names the class that wraps results."},
    {"_set_parameter_type", set_parameter_type, METH_O,
     "Names the class that counts as a plain tensor in dispatch."},
    {}};

void init_tensor_type(PyObject* module) {
  add_type(module, "_TensorMeta", &TensorMeta);
  PyRef parameter(check(PyDescr_NewMethod(&TensorMeta, &parameter_check)));
  check(PyModule_AddObjectRef(module, "_parameter_instancecheck", parameter.get()));
  TensorBaseType.ob_base.ob_base.ob_type = &TensorMeta;
  add_type(module, "TensorBase", &TensorBaseType);
  check(PyModule_AddObjectRef(module, "_TensorBase", reinterpret_cast<PyObject*>(&TensorBaseType)));
  add_functions(module, functions);
  release_pyobj = release_wrapper;
}

}  // namespace rushlight::python
