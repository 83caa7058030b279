#include "python/answered_facts.h"

#include "dispatch/state.h"
#include "python/mode_stack.h"
#include "python/package_name.h"
#include "python/types.h"

namespace rushlight::python {

PyRef answer_of_class(const Tensor& t, uint32_t which, const char* fact, PyObject* argument) {
  if (!(t->flags & which) || !(dispatch_state.consider & kPythonDispatch) || modes_are_disabled()) return {};
  PyRef self(wrap(t)), name(check(PyUnicode_FromString(fact)));
  PyRef module(check(PyImport_ImportModule((package_name() + "._extension.answered_facts").c_str())));
  PyRef ask(check(PyObject_GetAttrString(module.get(), "ask")));
  PyRef answer(check(PyObject_CallFunctionObjArgs(ask.get(), self.get(), name.get(), argument, nullptr)));
  return answer.get() == Py_None ? PyRef() : std::move(answer);
}

uint32_t answered_flags(PyObject* policy, bool device, bool layout) {
  uint32_t flags = (device ? kAnswersDevice : 0) | (layout ? kAnswersLayout : 0);
  if (!policy || policy == Py_None) return flags;
  if (!PyUnicode_Check(policy))
    throw_python(PyExc_TypeError, "dispatch_sizes_strides_policy must be a string or None");
  const std::string_view name = string_view(policy);
  if (name == "sizes") return flags | kAnswersSizes | kAnswersStrides;
  if (name == "strides") return flags | kAnswersStrides;
  throw_python(PyExc_RuntimeError, str("Unknown sizes_strides_policy: ", name));
}

namespace {

bool contiguous_by_class(const Tensor& t, MemoryFormat format) {
  const GilAcquire gil;
  PyRef answer;
  if (format == MemoryFormat::Contiguous) {
    answer = answer_of_class(t, kAnswersStrides, "is_contiguous");
  } else {
    PyRef shown(wrap(format));
    answer = answer_of_class(t, kAnswersStrides, "is_contiguous", shown.get());
  }
  return answer ? PyObject_IsTrue(answer.get()) == 1 : t.is_contiguous(format);
}

Device device_by_class(const Tensor& t) {
  const GilAcquire gil;
  PyRef answer = answer_of_class(t, kAnswersDevice, "device");
  return answer ? parse_device(answer.get()) : t.device();
}

}  // namespace

void init_answered_facts(PyObject*) {
  answered_contiguous = contiguous_by_class;
  answered_device = device_by_class;
}

}  // namespace rushlight::python
