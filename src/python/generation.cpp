// Tokenizers, language models of one file and services of them: what rushlight.export.load_language_model and
// TextService give.
#include "python/op_function.h"
#include "python/owner.h"
#include "rushlight/text_service.h"

namespace rushlight::python {
namespace {

using generation::Finish;
using generation::Settings;
using generation::TextModel;
using generation::Tokenizer;

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

std::vector<std::string> stop_from(PyObject* stop) {
  std::vector<std::string> texts;
  if (!stop || stop == Py_None) return texts;
  const PyRef items(check(PySequence_Fast(stop, "stop must be a list of texts")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* text = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!PyUnicode_Check(text)) throw_python(PyExc_TypeError, "stop must be a list of texts");
    texts.emplace_back(string_view(text));
  }
  return texts;
}

constexpr const char* kFinishes[] = {"length", "end", "stop", "cancelled"};

// --- _Tokenizer

PyObject* tokenizer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* text = nullptr;
  if (!PyArg_ParseTuple(args, "U", &text)) return nullptr;
  return guard([&] { return own(type, std::make_unique<Tokenizer>(Tokenizer::parse(string_view(text)))); });
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
    .tp_dealloc = dealloc_owner<Tokenizer>,
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
  return guard([&] {
    return own(type, std::make_unique<TextModel>(TextModel::load(std::string(string_view(path)))));
  });
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

// Takes the words of a generation's settings out of a call's.
Settings take_settings(PyObject* words) {
  static const char* names[] = {"max_tokens",
                                "temperature",
                                "top_k",
                                "top_p",
                                "seed",
                                "repetition_penalty",
                                "stop",
                                "ignore_end",
                                "presence_penalty",
                                "frequency_penalty",
                                nullptr};
  const PyRef mine(check(PyDict_New())), none(check(PyTuple_New(0)));
  for (const char** name = names; *name; ++name)
    if (PyObject* value = PyDict_GetItemString(words, *name)) {
      check(PyDict_SetItemString(mine.get(), *name, value));
      check(PyDict_DelItemString(words, *name));
    }
  Settings s;
  long long max_tokens = s.max_tokens, top_k = s.top_k;
  unsigned long long seed = 0;
  int ignore_end = 0;
  PyObject* stop = nullptr;
  if (!PyArg_ParseTupleAndKeywords(none.get(), mine.get(), "|$LdLdKdOpdd", const_cast<char**>(names),
                                   &max_tokens, &s.temperature, &top_k, &s.top_p, &seed,
                                   &s.repetition_penalty, &stop, &ignore_end, &s.presence_penalty,
                                   &s.frequency_penalty))
    throw PythonError();
  s.max_tokens = max_tokens, s.top_k = top_k, s.seed = seed, s.ignore_end = ignore_end != 0;
  s.stop = stop_from(stop);
  return s;
}

PyObject* model_generate(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"prompt", "on_token", "on_text", nullptr};
  return guard([&] {
    const PyRef words(check(kwargs ? PyDict_Copy(kwargs) : PyDict_New()));
    const Settings s = take_settings(words.get());
    PyObject *prompt = nullptr, *on_token = nullptr, *on_text = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, words.get(), "O|$OO", const_cast<char**>(names), &prompt,
                                     &on_token, &on_text))
      throw PythonError();
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
    .tp_dealloc = dealloc_owner<TextModel>,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_TextModel(path): a language model of one file; threads may share it.",
    .tp_methods = model_methods,
    .tp_getset = model_properties,
    .tp_new = model_new,
};

// --- _TextService

using generation::TextEnd;
using generation::TextLimits;
using generation::TextOutcome;
using generation::TextService;
// A closed one stays until nobody holds it: threads may be in its methods.
struct Service {
  std::unique_ptr<TextService> running;
  bool closed = false;
};

// A Python function that another thread calls and lets go of.
class Callback {
 public:
  explicit Callback(PyObject* function) : function_(function && function != Py_None ? function : nullptr) {
    Py_XINCREF(function_);
  }
  ~Callback() {
    if (!function_) return;
    const GilAcquire gil;
    Py_DECREF(function_);
  }
  Callback(const Callback&) = delete;

  // An exception out of it ends the text.
  template <class Make>
  void call(Make&& make) const {
    if (!function_) return;
    const GilAcquire gil;
    try {
      const PyRef arguments(check(make()));
      const PyRef result(check(PyObject_CallObject(function_, arguments.get())));
    } catch (const PythonError& error) {
      RL_FAIL("the callback failed: ", error.what());
    }
  }

 private:
  PyObject* function_;
};

PyObject* text_object(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* end_arguments(const TextEnd& end) {
  static constexpr const char* kOutcomes[] = {"done", "cancelled", "deadline", "failed"};
  const PyRef tokens(to_list(end.result.tokens)), text(text_object(end.result.text)),
      error(text_object(end.error));
  if (!text || !error) return nullptr;
  const bool done = end.outcome == TextOutcome::Done;
  return Py_BuildValue("({s:O,s:O,s:s,s:s,s:O,s:L,s:L,s:d,s:d,s:d})", "tokens", tokens.get(), "text",
                       text.get(), "outcome", kOutcomes[static_cast<int>(end.outcome)], "finish",
                       done ? kFinishes[static_cast<int>(end.result.finish)] : "cancelled", "error",
                       error.get(), "prompt_tokens", static_cast<long long>(end.prompt_tokens),
                       "reused_tokens", static_cast<long long>(end.reused_tokens), "queued_seconds",
                       end.queued_seconds, "first_token_seconds", end.first_token_seconds, "total_seconds",
                       end.total_seconds);
}

PyObject* service_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"path",       "max_queued",  "max_running", "max_prompt",
                                "max_tokens", "cache_bytes", "chunk",       nullptr};
  PyObject* path = nullptr;
  TextLimits l;
  Py_ssize_t queued = static_cast<Py_ssize_t>(l.max_queued), cache = 0;
  long long running = l.max_running, prompt = 0, tokens = 0, chunk = l.chunk;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|$nLLLnL", const_cast<char**>(names), &path, &queued,
                                   &running, &prompt, &tokens, &cache, &chunk))
    return nullptr;
  return guard([&] {
    RL_CHECK_VALUE(queued >= 0 && cache >= 0, "limits must not be negative");
    l.max_queued = static_cast<size_t>(queued), l.cache_bytes = static_cast<size_t>(cache);
    l.max_running = running, l.max_prompt = prompt, l.max_tokens = tokens, l.chunk = chunk;
    const std::string file(string_view(path));
    auto service = std::make_unique<Service>();
    {
      const GilRelease released;
      service->running = TextService::load(file, l);
    }
    return own(type, std::move(service));
  });
}
void service_dealloc(PyObject* self) {
  auto* service = reinterpret_cast<PyOwner<Service>*>(self)->object;
  {
    const GilRelease released;  // its thread may be in a callback
    delete service;
  }
  Py_TYPE(self)->tp_free(self);
}
TextService& open_service(PyObject* self) {
  const Service& service = object_of<Service>(self);
  if (service.closed) throw_python(PyExc_ValueError, "the service is closed");
  return *service.running;
}

PyObject* service_submit(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"prompt", "key", "timeout", "on_text", "on_end", nullptr};
  return guard([&] {
    const PyRef words(check(kwargs ? PyDict_Copy(kwargs) : PyDict_New()));
    generation::TextRequest r;
    r.settings = take_settings(words.get());
    PyObject *prompt = nullptr, *on_text = nullptr, *on_end = nullptr, *timeout = nullptr;
    const char* key = "";
    if (!PyArg_ParseTupleAndKeywords(args, words.get(), "O|$sOOO", const_cast<char**>(names), &prompt, &key,
                                     &timeout, &on_text, &on_end))
      throw PythonError();
    r.key = key;
    if (PyUnicode_Check(prompt))
      r.prompt = string_view(prompt);
    else
      r.tokens = ids_from(prompt);
    if (timeout && timeout != Py_None) {
      const double seconds = PyFloat_AsDouble(timeout);
      if (seconds == -1 && PyErr_Occurred()) throw PythonError();
      r.deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                          std::chrono::duration<double>(seconds));
    }
    const auto text = std::make_shared<Callback>(on_text), end = std::make_shared<Callback>(on_end);
    generation::TextCallbacks callbacks;
    callbacks.on_text = [text](std::string_view piece, std::span<const int64_t> tokens) {
      text->call([&]() -> PyObject* {
        const PyRef written(text_object(piece)), list(to_list({tokens.begin(), tokens.end()}));
        return written ? PyTuple_Pack(2, written.get(), list.get()) : nullptr;
      });
    };
    callbacks.on_end = [end](const TextEnd& e) { end->call([&] { return end_arguments(e); }); };
    TextService& service = open_service(self);
    std::optional<TextService::Ticket> ticket;
    {
      const GilRelease released;
      ticket = service.submit(std::move(r), std::move(callbacks));
    }
    return ticket ? check(PyLong_FromUnsignedLongLong(*ticket)) : Py_NewRef(Py_None);
  });
}

PyObject* service_cancel(PyObject* self, PyObject* ticket) {
  return guard([&] {
    const unsigned long long number = PyLong_AsUnsignedLongLong(ticket);
    if (PyErr_Occurred()) throw PythonError();
    TextService& service = open_service(self);
    const GilRelease released;
    service.cancel(number);
    return Py_NewRef(Py_None);
  });
}
PyObject* service_drain(PyObject* self, PyObject* args) {
  double seconds = -1;
  if (!PyArg_ParseTuple(args, "|d", &seconds)) return nullptr;
  return guard([&] {
    TextService& service = open_service(self);
    bool empty = false;
    {
      const GilRelease released;
      std::optional<std::chrono::steady_clock::time_point> deadline;
      if (seconds >= 0)
        deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                          std::chrono::duration<double>(seconds));
      empty = service.drain(deadline);
    }
    return PyBool_FromLong(empty);
  });
}
PyObject* service_close(PyObject* self, PyObject*) {
  return guard([&] {
    Service& service = object_of<Service>(self);
    service.closed = true;
    {
      const GilRelease released;
      service.running->close();
    }
    return Py_NewRef(Py_None);
  });
}
PyObject* service_forget(PyObject* self, PyObject*) {
  return guard([&] {
    open_service(self).forget_prefixes();
    return Py_NewRef(Py_None);
  });
}
PyObject* service_stats(PyObject* self, PyObject*) {
  return guard([&] {
    const generation::TextStats s = open_service(self).stats();
    const std::pair<const char*, int64_t> counts[] = {
        {"queued", static_cast<int64_t>(s.queued)},
        {"running", static_cast<int64_t>(s.running)},
        {"pages", s.pages},
        {"pages_used", s.pages_used},
        {"pages_cached", s.pages_cached},
        {"page_tokens", s.page_tokens},
        {"cache_bytes", static_cast<int64_t>(s.cache_bytes)},
        {"submitted", s.submitted},
        {"refused", s.refused},
        {"done", s.done},
        {"cancelled", s.cancelled},
        {"expired", s.expired},
        {"failed", s.failed},
        {"prompt_tokens", s.prompt_tokens},
        {"reused_tokens", s.reused_tokens},
        {"generated_tokens", s.generated_tokens},
        {"put_back", s.put_back},
        {"steps", s.steps},
    };
    PyRef dict(check(PyDict_New()));
    const auto put = [&](const char* name, PyObject* value) {
      const PyRef owned(check(value));
      if (PyDict_SetItemString(dict.get(), name, owned.get()) < 0) throw PythonError();
    };
    for (const auto& [name, n] : counts) put(name, PyLong_FromLongLong(n));
    put("tokens_per_second", PyFloat_FromDouble(s.tokens_per_second));
    put("busy_seconds", PyFloat_FromDouble(s.busy_seconds));
    put("batched", PyBool_FromLong(open_service(self).batched()));
    return dict.release();
  });
}

PyMethodDef service_methods[] = {
    {"submit", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(service_submit)),
     METH_VARARGS | METH_KEYWORDS, "submit(prompt, ...): a ticket, or None where there is no room."},
    {"cancel", service_cancel, METH_O, "cancel(ticket): it ends, if it has not."},
    {"drain", service_drain, METH_VARARGS, "drain(seconds=-1): whether all ended; takes no more."},
    {"close", service_close, METH_NOARGS, "close(): ends all texts and the thread."},
    {"forget_prefixes", service_forget, METH_NOARGS, "forget_prefixes(): of texts so far."},
    {"stats", service_stats, METH_NOARGS, "stats(): a dict of numbers."},
    {}};
PyTypeObject TextServiceType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._TextService",
    .tp_basicsize = sizeof(PyOwner<Service>),
    .tp_dealloc = service_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "_TextService(path, ...): many texts at once from a language model of one file.",
    .tp_methods = service_methods,
    .tp_new = service_new,
};

}  // namespace

void init_generation(PyObject* module) {
  for (auto [name, type] : {std::pair{"_Tokenizer", &TokenizerType},
                            {"_TextModel", &TextModelType},
                            {"_TextService", &TextServiceType}}) {
    check(PyType_Ready(type));
    check(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
  }
}

}  // namespace rushlight::python
