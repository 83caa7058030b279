// Storages in shared memory as Python's multiprocessing needs them: made, promised to a message, received.
#include "core/shared_memory.h"

#include <cstring>

#include "python/free_threading.h"
#include "python/parse.h"
#include "python/storage.h"
#include "python/types.h"

namespace rushlight::python {

// share_memory(storage): moves it, in place.
static PyObject* f_share(PyObject*, PyObject* storage) {
  return guard([&] {
    shared::share(*expect_storage_object(storage), has_buffer_views(storage));
    return Py_NewRef(storage);
  });
}

static PyObject* f_is_shared(PyObject*, PyObject* storage) {
  return guard([&] { return PyBool_FromLong(shared::is_shared(*expect_storage_object(storage))); });
}

static PyObject* f_allocate(PyObject*, PyObject* nbytes) {
  return guard([&] {
    const int64_t n = to_int(nbytes);
    RL_CHECK(n >= 0, "UntypedStorage._new_shared: the size must not be negative, got ", n);
    return wrap_storage(shared::allocate(static_cast<size_t>(n)));
  });
}

// A handle in Python: (slab, offset, nbytes, generation), where slab is 16 bytes. With the descriptor, send
// gives (handle, fd).
static PyObject* f_send(PyObject*, PyObject* storage) {
  return guard([&] {
    const shared::Handle h = shared::send(*expect_storage_object(storage));
    return check(Py_BuildValue(
        "((y#KKK)i)", reinterpret_cast<const char*>(h.slab.data()), static_cast<Py_ssize_t>(sizeof h.slab),
        static_cast<unsigned long long>(h.offset), static_cast<unsigned long long>(h.nbytes),
        static_cast<unsigned long long>(h.generation), h.fd));
  });
}

static shared::SlabId slab_id(const char* bytes, Py_ssize_t n) {
  shared::SlabId id;
  RL_CHECK(n == sizeof id, "shared memory: the name of a slab has ", sizeof id, " bytes, got ", n);
  std::memcpy(id.data(), bytes, sizeof id);
  return id;
}

static shared::Handle parse_handle(PyObject* o) {
  const char* slab;
  Py_ssize_t n;
  unsigned long long offset, nbytes, generation;
  if (!PyTuple_Check(o)) throw_python(PyExc_TypeError, "a handle is a tuple, not " + type_name(o));
  if (!PyArg_ParseTuple(o, "y#KKK", &slab, &n, &offset, &nbytes, &generation)) throw PythonError();
  return {slab_id(slab, n), offset, nbytes, generation};
}

static PyObject* f_receive(PyObject*, PyObject* handle) {
  return guard([&] {
    PyRef object;  // of a storage that we have already: it keeps that alive until we own it, too
    auto reuse = [&](StorageImpl* s) {
      const IdentityLock lock(s);
      auto* there = static_cast<PyObject*>(s->pyobj.get());
      if (!there || !try_incref(there)) return false;
      object = PyRef(there);
      return true;
    };
    return wrap_storage(shared::receive(parse_handle(handle), reuse));
  });
}

static PyObject* f_abandon(PyObject*, PyObject* handle) {
  return guard([&] {
    shared::abandon(parse_handle(handle));
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_is_attached(PyObject*, PyObject* slab) {
  return guard([&] {
    char* bytes;
    Py_ssize_t n;
    check(PyBytes_AsStringAndSize(slab, &bytes, &n));
    return PyBool_FromLong(shared::is_attached(slab_id(bytes, n)));
  });
}

static PyObject* f_attach(PyObject*, PyObject* args) {
  int fd;
  const char* slab;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "iy#", &fd, &slab, &n)) return nullptr;
  return guard([&] {
    shared::attach(fd, slab_id(slab, n));
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_release_idle(PyObject*, PyObject*) {
  return guard([&] {
    shared::release_idle();
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_close(PyObject*, PyObject*) {
  return guard([&] {
    shared::close_owned();
    return Py_NewRef(Py_None);
  });
}

static PyObject* f_stats(PyObject*, PyObject*) {
  return guard([&] {
    const shared::Stats s = shared::stats();
    return check(Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "slabs", s.slabs, "held_blocks", s.held_blocks,
                               "pending_blocks", s.pending_blocks, "allocated_bytes", s.allocated_bytes,
                               "reserved_bytes", s.reserved_bytes));
  });
}

static PyMethodDef functions[] = {
    {"_shared_move", f_share, METH_O, "Moves a storage to shared memory, in place."},
    {"_shared_is", f_is_shared, METH_O, "Whether a storage lies in shared memory."},
    {"_shared_new", f_allocate, METH_O, "A new storage of that many bytes in shared memory."},
    {"_shared_send", f_send, METH_O, "(handle, descriptor) of a shared storage, for one message."},
    {"_shared_receive", f_receive, METH_O, "The storage that a handle names; its slab must be attached."},
    {"_shared_abandon", f_abandon, METH_O, "Takes back a handle that nobody will receive."},
    {"_shared_is_attached", f_is_attached, METH_O, "Whether this process has mapped a slab."},
    {"_shared_attach", f_attach, METH_VARARGS, "Maps the slab behind a descriptor, which it takes over."},
    {"_shared_release_idle", f_release_idle, METH_NOARGS, "Gives idle shared memory back to the system."},
    {"_shared_close", f_close, METH_NOARGS, "Gives back all that nobody else holds: the process ends."},
    {"_shared_stats", f_stats, METH_NOARGS, "What this process shares, and how many slabs it has mapped."},
    {}};

void init_shared_memory(PyObject* module) { add_functions(module, functions); }

}  // namespace rushlight::python
