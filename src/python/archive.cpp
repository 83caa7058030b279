// Containers of tensors for Python: records of zip archives, and headers of safetensors files (src/io).
#include "io/archive.h"

#include <algorithm>

#include "core/crc32.h"
#include "io/safetensors.h"
#include "python/python.h"
#include "python/storage.h"
#include "python/types.h"

namespace rushlight::python {
namespace {

struct Buffer : Py_buffer {
  explicit Buffer(PyObject* o) { check(PyObject_GetBuffer(o, this, PyBUF_SIMPLE)); }
  ~Buffer() { PyBuffer_Release(this); }
  Buffer(const Buffer&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(buf), static_cast<size_t>(len)}; }
};

uint64_t count_of(PyObject* number) {
  const uint64_t n = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) throw PythonError();
  return n;
}

// The name of a file in errors: open files may have a number, paths bytes that are no text.
std::string shown(PyObject* name) {
  const PyRef text(check(PyObject_Str(name)));
  const PyRef bytes(check(PyUnicode_AsEncodedString(text.get(), "utf-8", "replace")));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

// A whole file object, whatever its position is: the end of an archive tells where it begins.
class PythonSource final : public io::ByteSource {
 public:
  explicit PythonSource(PyObject* file) : ByteSource(0), file_(PyRef::borrow(file)) {
    size_ = call("seek", "ii", 0, SEEK_END);
    const PyRef readinto(PyObject_GetAttrString(file, "readinto"));
    has_readinto_ = readinto.get() != nullptr;
    PyErr_Clear();
  }
  size_t read(uint64_t at, void* to, size_t nbytes) override {
    call("seek", "K", static_cast<unsigned long long>(at));
    size_t done = 0;
    while (done < nbytes) {
      const size_t n = some(static_cast<char*>(to) + done, nbytes - done);
      if (n == 0) break;
      done += n;
    }
    return done;
  }

 private:
  template <class... T>
  uint64_t call(const char* method, const char* format, T... arguments) {
    const PyRef result(check(PyObject_CallMethod(file_.get(), method, format, arguments...)));
    return count_of(result.get());
  }
  size_t some(char* to, size_t nbytes) {
    const auto wanted = static_cast<Py_ssize_t>(nbytes);
    if (has_readinto_) {
      const PyRef view(check(PyMemoryView_FromMemory(to, wanted, PyBUF_WRITE)));
      const uint64_t n = call("readinto", "O", view.get());
      const PyRef released(
          check(PyObject_CallMethod(view.get(), "release", nullptr)));  // nobody keeps our memory
      return std::min<uint64_t>(n, nbytes);
    }
    const PyRef data(check(PyObject_CallMethod(file_.get(), "read", "n", wanted)));
    const Buffer read(data.get());
    const size_t n = std::min(read.bytes().size(), nbytes);
    std::copy_n(read.bytes().data(), n, to);
    return n;
  }

  PyRef file_;
  bool has_readinto_ = false;
};

// An object that owns one of C++.
template <class T>
struct Owner {
  PyObject_HEAD T* owned;

  static T& of(PyObject* o) { return *reinterpret_cast<Owner*>(o)->owned; }
  static PyObject* make(PyTypeObject* type, std::unique_ptr<T> owned) {
    PyObject* self = check(type->tp_alloc(type, 0));
    reinterpret_cast<Owner*>(self)->owned = owned.release();
    return self;
  }
  static void dealloc(PyObject* self) {
    delete reinterpret_cast<Owner*>(self)->owned;
    Py_TYPE(self)->tp_free(self);
  }
};

// --- records

const io::Archive& archive_of(PyObject* o) { return Owner<io::Archive>::of(o); }
const io::Archive::Record& record_of(PyObject* o, PyObject* name) {
  if (!PyUnicode_Check(name))
    throw_python(PyExc_TypeError, "the name of a record is a str, not " + type_name(name));
  return archive_of(o).record(string_view(name));
}
PyObject* bytes_of(std::string_view bytes) {
  return check(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

PyObject* archive_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"file", "name", "pickled", nullptr};
  PyObject *file, *name;
  int pickled = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p", const_cast<char**>(names), &file, &name, &pickled))
    return nullptr;
  return guard([&] {
    using enum io::Archive::Holds;
    auto source = std::make_unique<PythonSource>(file);
    return Owner<io::Archive>::make(
        type, std::make_unique<io::Archive>(std::move(source), shown(name), pickled ? Object : Records));
  });
}

PyObject* has(PyObject* self, PyObject* name) {
  return guard([&] { return PyBool_FromLong(archive_of(self).has(string_view(name))); });
}
PyObject* names(PyObject* self, PyObject*) {
  return guard([&] {
    PyRef list(check(PyList_New(0)));
    for (const io::Archive::Record& r : archive_of(self).records()) {
      const PyRef name(check(
          PyUnicode_DecodeUTF8(r.name.data(), static_cast<Py_ssize_t>(r.name.size()), "surrogateescape")));
      check(PyList_Append(list.get(), name.get()));
    }
    return list.release();
  });
}
PyObject* size(PyObject* self, PyObject* name) {
  return guard([&] { return PyLong_FromUnsignedLongLong(record_of(self, name).size); });
}
// offset(name, nbytes=0)
PyObject* offset(PyObject* self, PyObject* args) {
  PyObject *name, *nbytes = nullptr;
  if (!PyArg_ParseTuple(args, "O|O", &name, &nbytes)) return nullptr;
  return guard([&] {
    const uint64_t needed = nbytes ? count_of(nbytes) : 0;
    return PyLong_FromUnsignedLongLong(archive_of(self).check_room(record_of(self, name), needed));
  });
}

PyObject* read(PyObject* self, PyObject* name) {
  return guard([&] {
    const io::Archive::Record& r = record_of(self, name);
    archive_of(self).offset(r);  // before allocating: the size is only believed once it fits the file
    PyRef bytes(check(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(r.size))));
    archive_of(self).read(r, PyBytes_AS_STRING(bytes.get()), r.size);
    return bytes.release();
  });
}
// read_storage(name, nbytes) -> UntypedStorage of the record's first bytes.
PyObject* read_storage(PyObject* self, PyObject* args) {
  PyObject *name, *count;
  if (!PyArg_ParseTuple(args, "OO", &name, &count)) return nullptr;
  return guard([&] {
    const io::Archive::Record& r = record_of(self, name);
    const uint64_t nbytes = count_of(count);
    archive_of(self).check_room(r, nbytes);  // before allocating
    Storage storage = StorageImpl::allocate(nbytes);
    archive_of(self).read(r, storage->data(), nbytes);
    return wrap_storage(std::move(storage));
  });
}
// read_packed(name) -> (method, size, checksum, bytes) of a record that may be compressed.
PyObject* read_packed(PyObject* self, PyObject* name) {
  return guard([&] {
    const io::Archive::Record& r = record_of(self, name);
    const PyRef bytes(bytes_of(archive_of(self).read_packed(r)));
    return check(
        Py_BuildValue("(iKIO)", r.method, static_cast<unsigned long long>(r.size), r.crc, bytes.get()));
  });
}

PyMethodDef archive_methods[] = {
    {"has", has, METH_O, "Whether there is a record of this name."},
    {"names", names, METH_NOARGS, "The records' names, without the archive's folder."},
    {"size", size, METH_O, "A record's size in bytes."},
    {"offset", offset, METH_VARARGS,
     "offset(name, nbytes=0): where a record's data begins, if it has as many bytes inside the file."},
    {"read", read, METH_O, "The bytes of a record."},
    {"read_storage", read_storage, METH_VARARGS, "The first bytes of a record, as a storage."},
    {"read_packed", read_packed, METH_O,
     "Method, size, checksum and bytes of a record that may be compressed."},
    {}};

PyTypeObject ArchiveType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._Archive",
    .tp_basicsize = sizeof(Owner<io::Archive>),
    .tp_dealloc = Owner<io::Archive>::dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "_Archive(file, name, pickled=True): the records of an open file; `name` is for errors.\n\n"
        "`pickled`: whether it must hold an object; else any records do.",
    .tp_methods = archive_methods,
    .tp_new = archive_new,
};

// --- headers of records

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* folder;
  Py_ssize_t alignment = 64;
  if (!PyArg_ParseTuple(args, "s|n", &folder, &alignment)) return nullptr;
  return guard([&] {
    return Owner<io::ArchiveWriter>::make(
        type, std::make_unique<io::ArchiveWriter>(folder, static_cast<size_t>(alignment)));
  });
}
PyObject* writer_header(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* data;
  int checked = 1;
  if (!PyArg_ParseTuple(args, "sO|p", &name, &data, &checked)) return nullptr;
  return guard([&] {
    const Buffer buffer(data);
    uint32_t crc = 0;
    if (checked) {
      const GilRelease release;
      crc = crc32(buffer.buf, static_cast<size_t>(buffer.len));
    }
    return bytes_of(Owner<io::ArchiveWriter>::of(self).header(name, static_cast<uint64_t>(buffer.len), crc));
  });
}
PyObject* writer_end(PyObject* self, PyObject*) {
  return guard([&] { return bytes_of(Owner<io::ArchiveWriter>::of(self).end()); });
}

PyMethodDef writer_methods[] = {{"header", writer_header, METH_VARARGS,
                                 "header(name, data, checked=True): what stands before the data of a record; "
                                 "the checksum is zero where it "
                                 "is not to be checked."},
                                {"end", writer_end, METH_NOARGS, "What stands behind the last record."},
                                {}};

PyTypeObject ArchiveWriterType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._ArchiveWriter",
    .tp_basicsize = sizeof(Owner<io::ArchiveWriter>),
    .tp_dealloc = Owner<io::ArchiveWriter>::dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_ArchiveWriter(folder, alignment=64): what stands around the records of a new archive.",
    .tp_methods = writer_methods,
    .tp_new = writer_new,
};

// --- safetensors

// _safetensors_types() -> {"F32": torch.float32, ...}
PyObject* safetensors_types(PyObject*, PyObject*) {
  return guard([] {
    PyRef types(check(PyDict_New()));
    for (const io::SafetensorsType& type : io::kSafetensorsTypes) {
      const PyRef name(to_python(type.name)), dtype(check(wrap(type.dtype)));
      check(PyDict_SetItem(types.get(), name.get(), dtype.get()));
    }
    return types.release();
  });
}

// _safetensors_header(buffer, file) -> ({name: (dtype, shape, begin, end)}, metadata or None)
PyObject* safetensors_header(PyObject*, PyObject* args) {
  PyObject *content, *file;
  if (!PyArg_ParseTuple(args, "OO", &content, &file)) return nullptr;
  return guard([&] {
    const Buffer buffer(content);
    io::MemorySource bytes(buffer.bytes());
    const io::SafetensorsHeader header = io::read_safetensors_header(bytes, shown(file));
    PyRef entries(check(PyDict_New())), metadata(PyRef::borrow(Py_None));
    for (const io::SafetensorsEntry& e : header.entries) {
      const PyRef name(to_python(e.name)),
          entry(check(Py_BuildValue("(NNKK)", wrap(e.dtype), wrap_size(e.shape),
                                    static_cast<unsigned long long>(e.begin),
                                    static_cast<unsigned long long>(e.end))));
      check(PyDict_SetItem(entries.get(), name.get(), entry.get()));
    }
    if (header.metadata) metadata = PyRef(check(PyDict_New()));
    if (header.metadata)
      for (const auto& [key, value] : *header.metadata) {
        const PyRef k(to_python(key)), v(to_python(value));
        check(PyDict_SetItem(metadata.get(), k.get(), v.get()));
      }
    return check(PyTuple_Pack(2, entries.get(), metadata.get()));
  });
}

PyMethodDef functions[] = {
    {"_safetensors_types", safetensors_types, METH_NOARGS, "The types of safetensors files, by name."},
    {"_safetensors_header", safetensors_header, METH_VARARGS, "The checked header of a safetensors file."},
    {}};

}  // namespace

void init_archive(PyObject* module) {
  add_type(module, "_Archive", &ArchiveType);
  add_type(module, "_ArchiveWriter", &ArchiveWriterType);
  add_functions(module, functions);
}

}  // namespace rushlight::python
