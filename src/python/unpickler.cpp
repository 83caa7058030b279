// _C._Unpickler: the pickle machine of src/io building Python objects. Python says what may be named, called
// and changed: its subclass is asked for every name, and once for every function that a file calls.
#include <algorithm>

#include "io/pickle_machine.h"
#include "python/python.h"

namespace rushlight::python {
namespace {

struct PyUnpickler {
  PyObject_HEAD PyObject *file, *encoding;
};

// A file object from its position on, which it leaves behind the pickle.
class FileInput final : public io::PickleInput {
 public:
  explicit FileInput(PyObject* file) : file_(file) {}
  void finish() {
    if (left_.empty()) return;
    const PyRef moved(
        check(PyObject_CallMethod(file_, "seek", "ni", -static_cast<Py_ssize_t>(left_.size()), SEEK_CUR)));
  }

 protected:
  bool fetch(size_t n) override {
    buffer_.erase(0, buffer_.size() - left_.size());
    while (buffer_.size() < n) {  // bit by bit: a file may claim any length
      const PyRef data(check(PyObject_CallMethod(file_, "read", "n", kPiece)));
      char* bytes;
      Py_ssize_t size;
      check(PyBytes_AsStringAndSize(data.get(), &bytes, &size));
      if (size == 0) break;
      buffer_.append(bytes, static_cast<size_t>(size));
    }
    left_ = buffer_;
    return left_.size() >= n;
  }

 private:
  static constexpr Py_ssize_t kPiece = 1 << 16;
  PyObject* file_;
  std::string buffer_;
};

class PythonObjects {
 public:
  using Object = PyRef;
  using Items = std::span<PyRef>;
  PythonObjects(PyObject* self, std::string encoding) : self_(self), encoding_(std::move(encoding)) {}

  [[noreturn]] static void ended() { throw_python(PyExc_EOFError, "Ran out of input"); }
  [[noreturn]] static void damaged(const std::string& what) { throw_python(PyExc_ValueError, what); }
  [[noreturn]] static void refused(const std::string& what) {
    const PyRef module(check(PyImport_ImportModule("pickle")));
    const PyRef type(check(PyObject_GetAttrString(module.get(), "UnpicklingError")));
    throw_python(type.get(), what);
  }

  static PyRef none() { return PyRef::borrow(Py_None); }
  static PyRef boolean(bool b) { return PyRef::borrow(b ? Py_True : Py_False); }
  static PyRef integer(int64_t i) { return own(PyLong_FromLongLong(i)); }
  static PyRef long_integer(std::string_view s) {
    const PyRef make = own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyLong_Type), "from_bytes"));
    const PyRef arguments = own(Py_BuildValue("(y#s)", s.data(), size(s), "little"));
    const PyRef options = own(Py_BuildValue("{sO}", "signed", Py_True));
    return own(PyObject_Call(make.get(), arguments.get(), options.get()));
  }
  static PyRef real(double d) { return own(PyFloat_FromDouble(d)); }
  static PyRef text(std::string_view s) {
    return own(PyUnicode_DecodeUTF8(s.data(), size(s), "surrogatepass"));
  }
  static PyRef bytes(std::string_view s) { return own(PyBytes_FromStringAndSize(s.data(), size(s))); }
  PyRef old_string(std::string_view s) const {
    if (encoding_ == "bytes") return bytes(s);
    return own(PyUnicode_Decode(s.data(), size(s), encoding_.c_str(), nullptr));
  }

  static PyRef list(Items items) {
    PyRef made = own(PyList_New(size(items)));
    for (size_t i = 0; i < items.size(); ++i)
      PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), items[i].release());
    return made;
  }
  static PyRef tuple(Items items) {
    PyRef made = own(PyTuple_New(size(items)));
    for (size_t i = 0; i < items.size(); ++i)
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), items[i].release());
    return made;
  }
  PyRef dict(Items pairs) {
    PyRef made = own(PyDict_New());
    put(made, pairs);
    return made;
  }
  static PyRef set(Items items) { return own(PySet_New(tuple(items).get())); }
  static PyRef frozen_set(Items items) { return own(PyFrozenSet_New(tuple(items).get())); }

  void append(const PyRef& to, Items items) {
    if (PyList_CheckExact(to.get())) {
      for (const PyRef& item : items) check(PyList_Append(to.get(), item.get()));
      return;
    }
    ask("_check_changed", to);
    for (const PyRef& item : items)
      const PyRef done(check(PyObject_CallMethod(to.get(), "append", "(O)", item.get())));
  }
  void put(const PyRef& to, Items pairs) {
    if (!PyDict_CheckExact(to.get()) && !PyODict_CheckExact(to.get())) ask("_check_changed", to);
    for (size_t i = 0; i < pairs.size(); i += 2)
      check(PyObject_SetItem(to.get(), pairs[i].get(), pairs[i + 1].get()));
  }
  void add(const PyRef& to, Items items) {
    if (!PySet_Check(to.get())) refused("Can only add to sets, but got " + type_name(to.get()));
    for (const PyRef& item : items) check(PySet_Add(to.get(), item.get()));
  }

  PyRef global(const std::string& module, const std::string& name) {
    return own(PyObject_CallMethod(self_, "find_class", "s#s#", module.data(), size(module), name.data(),
                                   size(name)));
  }
  static std::string text_of(const PyRef& o) {
    if (!PyUnicode_Check(o.get())) damaged("the name of a class is no text");
    return std::string(string_view(o.get()));
  }
  PyRef call(const PyRef& function, const PyRef& arguments) {
    if (!PyTuple_Check(arguments.get())) {
      // TorchScript gives an enumeration its value as it is.
      if (!PyObject_HasAttrString(self_, "_of_value")) refused("arguments of a call must be a tuple");
      return own(PyObject_CallMethod(self_, "_of_value", "OO", function.get(), arguments.get()));
    }
    if (std::ranges::find(called_, function.get(), &PyRef::get) == called_.end()) {
      ask("_check_callable", function);
      called_.push_back(function);
    }
    return own(PyObject_Call(function.get(), arguments.get(), nullptr));
  }
  PyRef make(const PyRef& type, const PyRef& arguments) {
    return own(PyObject_CallMethod(self_, "_new_object", "OO", type.get(), arguments.get()));
  }
  void build(const PyRef& object, const PyRef& state) {
    const PyRef done(check(PyObject_CallMethod(self_, "_build", "OO", object.get(), state.get())));
  }
  PyRef persistent(const PyRef& id) {
    return own(PyObject_CallMethod(self_, "persistent_load", "(O)", id.get()));
  }

 private:
  static PyRef own(PyObject* result) { return PyRef(check(result)); }
  template <class T>
  static Py_ssize_t size(const T& items) {
    return static_cast<Py_ssize_t>(items.size());
  }
  void ask(const char* method, const PyRef& about) {
    const PyRef allowed(check(PyObject_CallMethod(self_, method, "(O)", about.get())));
  }

  PyObject* self_;
  std::string encoding_;
  std::vector<PyRef> called_;  // few; kept, so that their addresses stay their own
};

int unpickler_init(PyObject* o, PyObject* args, PyObject*) {
  PyObject *file, *encoding;
  if (!PyArg_ParseTuple(args, "OU", &file, &encoding)) return -1;
  auto* self = reinterpret_cast<PyUnpickler*>(o);
  Py_XSETREF(self->file, Py_NewRef(file));
  Py_XSETREF(self->encoding, Py_NewRef(encoding));
  return 0;
}
void unpickler_dealloc(PyObject* o) {
  Py_XDECREF(reinterpret_cast<PyUnpickler*>(o)->file);
  Py_XDECREF(reinterpret_cast<PyUnpickler*>(o)->encoding);
  Py_TYPE(o)->tp_free(o);
}

PyObject* load(PyObject* o, PyObject*) {
  return guard([&] {
    auto* self = reinterpret_cast<PyUnpickler*>(o);
    if (!self->file) throw_python(PyExc_RuntimeError, "load: the unpickler was not initialised");
    const PyRef file = PyRef::borrow(self->file);
    PythonObjects objects(o, std::string(string_view(self->encoding)));
    FileInput input(file.get());
    PyRef made = io::PickleMachine<PythonObjects>(input, objects).run();
    input.finish();
    return made.release();
  });
}

PyMethodDef methods[] = {{"load", load, METH_NOARGS, "The object of the next pickle of the file."}, {}};

PyTypeObject UnpicklerType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._Unpickler",
    .tp_basicsize = sizeof(PyUnpickler),
    .tp_dealloc = unpickler_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "_Unpickler(file, encoding): reads pickles of a seekable file.\n\n"
        "A subclass says what they may do: find_class(module, name), persistent_load(id),\n"
        "_check_callable(function), _check_changed(container), _new_object(cls, args), _build(object, "
        "state).",
    .tp_methods = methods,
    .tp_init = unpickler_init,
    .tp_new = PyType_GenericNew,
};

}  // namespace

void init_unpickler(PyObject* module) { add_type(module, "_Unpickler", &UnpicklerType); }

}  // namespace rushlight::python
