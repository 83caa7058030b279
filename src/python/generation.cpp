// Tokenizers and language models of one file: what rushlight.export.load_language_model gives.
#include "rushlight/generation.h"

#include "python/op_function.h"

namespace rushlight::python {
namespace {

using generation::Finish;
using generation::Settings;
using generation::TextModel;
using generation::Tokenizer;

template <class T>
struct PyOwner {
  PyObject_HEAD T* object;
};
template <class T>
T& object_of(PyObject* self) {
  return *reinterpret_cast<PyOwner<T>*>(self)->object;
}
template <class T>
void dealloc(PyObject* self) {
  delete reinterpret_cast<PyOwner<T>*>(self)->object;
  Py_TYPE(self)->tp_free(self);
}
template <class T>
PyObject* own(PyTypeObject* type, T object) {
  PyObject* self = check(type->tp_alloc(type, 0));
  reinterpret_cast<PyOwner<T>*>(self)->object = new T(std::move(object));
  return self;
}

std::vector<int64_t> ids_from(PyObject* list) {
  const PyRef items(check(PySequence_Fast(list, "expected a list of token numbers")));
  std::vector<int64_t> ids;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    ids.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items.get(), i)));
    if (ids.back() == -1 && PyErr_Occurred()) throw PythonError();
  }
  return ids;
}
PyObject* to_list(const std::vector<int64_t>& ids) {
  PyRef list(check(PyList_New(static_cast<Py_ssize_t>(ids.size()))));
  for (size_t i = 0; i < ids.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), check(PyLong_FromLongLong(ids[i])));
  return list.release();
}

PyObject* encode(const Tokenizer& tokenizer, PyObject* args) {
  PyObject* text = nullptr;
  int special = 1;
  if (!PyArg_ParseTuple(args, "U|p", &text, &special)) return nullptr;
  return guard([&] { return to_list(tokenizer.encode(string_view(text), special != 0)); });
}
PyObject* decode(const Tokenizer& tokenizer, PyObject* args) {
  PyObject* ids = nullptr;
  int skip = 1;
  if (!PyArg_ParseTuple(args, "O|p", &ids, &skip)) return nullptr;
  return guard([&] { return to_python(tokenizer.decode(ids_from(ids), skip != 0)); });
}

// --- _Tokenizer

PyObject* tokenizer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* text = nullptr;
  if (!PyArg_ParseTuple(args, "U", &text)) return nullptr;
  return guard([&] { return own(type, Tokenizer::parse(string_view(text))); });
}
PyObject* tokenizer_encode(PyObject* self, PyObject* args) {
  return encode(object_of<Tokenizer>(self), args);
}
PyObject* tokenizer_decode(PyObject* self, PyObject* args) {
  return decode(object_of<Tokenizer>(self), args);
}
PyObject* tokenizer_id(PyObject* self, PyObject* token) {
  return guard(
      [&] { return check(PyLong_FromLongLong(object_of<Tokenizer>(self).id_of(string_view(token)))); });
}
Py_ssize_t tokenizer_size(PyObject* self) {
  return static_cast<Py_ssize_t>(object_of<Tokenizer>(self).size());
}

PyMethodDef tokenizer_methods[] = {
    {"encode", tokenizer_encode, METH_VARARGS, "encode(text, special=True): numbers of tokens."},
    {"decode", tokenizer_decode, METH_VARARGS, "decode(ids, skip_special=True): their text."},
    {"id_of", tokenizer_id, METH_O, "id_of(token): its number, or -1."},
    {}};
PySequenceMethods tokenizer_sequence = {.sq_length = tokenizer_size};
PyTypeObject TokenizerType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._Tokenizer",
    .tp_basicsize = sizeof(PyOwner<Tokenizer>),
    .tp_dealloc = dealloc<Tokenizer>,
    .tp_as_sequence = &tokenizer_sequence,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_Tokenizer(json): byte-pair encoding as a tokenizer.json describes it.",
    .tp_methods = tokenizer_methods,
    .tp_new = tokenizer_new,
};

// --- _TextModel

PyObject* model_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* path = nullptr;
  if (!PyArg_ParseTuple(args, "U", &path)) return nullptr;
  return guard([&] { return own(type, TextModel::load(std::string(string_view(path)))); });
}

// Calls a Python function from a run that holds no lock; whether to go on. An error is kept for the end.
template <class Make>
bool call_back(PyObject* function, PyRef& error, Make&& make) {
  const PyGILState_STATE state = PyGILState_Ensure();
  bool go_on = false;
  PyObject* argument = make();
  PyObject* result = argument ? PyObject_CallOneArg(function, argument) : nullptr;
  Py_XDECREF(argument);
  const int truth = !result ? -1 : result == Py_None ? 1 : PyObject_IsTrue(result);
  Py_XDECREF(result);
  if (truth < 0) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    error = PyRef(value);
  }
  go_on = truth > 0;
  PyGILState_Release(state);
  return go_on;
}

PyObject* model_generate(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "prompt", "max_tokens", "temperature", "top_k",   "top_p", "seed", "repetition_penalty",
      "stop",   "ignore_end", "on_token",    "on_text", nullptr};
  PyObject *prompt = nullptr, *stop = nullptr, *on_token = nullptr, *on_text = nullptr;
  Settings s;
  long long max_tokens = s.max_tokens, top_k = s.top_k;
  unsigned long long seed = 0;
  int ignore_end = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$LdLdKdOpOO", const_cast<char**>(names), &prompt,
                                   &max_tokens, &s.temperature, &top_k, &s.top_p, &seed,
                                   &s.repetition_penalty, &stop, &ignore_end, &on_token, &on_text))
    return nullptr;
  return guard([&] {
    s.max_tokens = max_tokens, s.top_k = top_k, s.seed = seed, s.ignore_end = ignore_end != 0;
    if (stop && stop != Py_None) {
      const PyRef items(check(PySequence_Fast(stop, "stop must be a list of texts")));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        PyObject* text = PySequence_Fast_GET_ITEM(items.get(), i);
        if (!PyUnicode_Check(text)) throw_python(PyExc_TypeError, "stop must be a list of texts");
        s.stop.emplace_back(string_view(text));
      }
    }
    const TextModel model = object_of<TextModel>(self);
    const std::vector<int64_t> ids = ids_from(prompt);
    PyRef error;
    TextModel::OnToken token;
    TextModel::OnText text;
    if (on_token && on_token != Py_None)
      token = [&](int64_t id) { return call_back(on_token, error, [&] { return PyLong_FromLongLong(id); }); };
    if (on_text && on_text != Py_None)
      text = [&](std::string_view piece) {
        return call_back(on_text, error, [&] {
          return PyUnicode_DecodeUTF8(piece.data(), static_cast<Py_ssize_t>(piece.size()), "replace");
        });
      };
    generation::Generated made;
    {
      const GilRelease released;
      made = model.generate(ids, s, token, text);
    }
    if (error) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
      throw PythonError();
    }
    static constexpr const char* kFinishes[] = {"length", "end", "stop", "cancelled"};
    const PyRef tokens(to_list(made.tokens)), written(to_python(made.text));
    return check(
        Py_BuildValue("(OOs)", tokens.get(), written.get(), kFinishes[static_cast<int>(made.finish)]));
  });
}

PyObject* tokenizer_or_fail(PyObject* self, PyObject* args, PyObject* (*f)(const Tokenizer&, PyObject*)) {
  const Tokenizer* tokenizer = object_of<TextModel>(self).tokenizer();
  if (tokenizer) return f(*tokenizer, args);
  PyErr_SetString(PyExc_ValueError, "the file has no tokenizer");
  return nullptr;
}
PyObject* model_encode(PyObject* self, PyObject* args) { return tokenizer_or_fail(self, args, encode); }
PyObject* model_decode(PyObject* self, PyObject* args) { return tokenizer_or_fail(self, args, decode); }
PyObject* model_has_tokenizer(PyObject* self, void*) {
  return PyBool_FromLong(object_of<TextModel>(self).tokenizer() != nullptr);
}
PyObject* model_max_length(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of<TextModel>(self).max_length());
}
PyObject* model_vocabulary(PyObject* self, void*) {
  return PyLong_FromLongLong(object_of<TextModel>(self).vocabulary());
}

PyMethodDef model_methods[] = {
    {"generate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(model_generate)),
     METH_VARARGS | METH_KEYWORDS, "generate(ids, ...): (tokens, text, why it ended)."},
    {"encode", model_encode, METH_VARARGS, "encode(text, special=True): numbers of tokens."},
    {"decode", model_decode, METH_VARARGS, "decode(ids, skip_special=True): their text."},
    {}};
PyGetSetDef model_properties[] = {
    {"has_tokenizer", model_has_tokenizer, nullptr, "Whether the file has one.", nullptr},
    {"max_length", model_max_length, nullptr, "Tokens of prompt and result together.", nullptr},
    {"vocabulary", model_vocabulary, nullptr, "How many tokens there are.", nullptr},
    {}};
PyTypeObject TextModelType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._TextModel",
    .tp_basicsize = sizeof(PyOwner<TextModel>),
    .tp_dealloc = dealloc<TextModel>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_TextModel(path): a language model of one file; threads may share it.",
    .tp_methods = model_methods,
    .tp_getset = model_properties,
    .tp_new = model_new,
};

}  // namespace

void init_generation(PyObject* module) {
  for (auto [name, type] : {std::pair{"_Tokenizer", &TokenizerType}, {"_TextModel", &TextModelType}}) {
    check(PyType_Ready(type));
    check(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
  }
}

}  // namespace rushlight::python
