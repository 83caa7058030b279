// What compiled code takes for granted about one call, and the checks of it.
#pragma once
#include <optional>
#include <vector>

#include "autograd/engine.h"
#include "autograd/saved.h"
#include "core/pending.h"
#include "dispatch/state.h"
#include "python/op_function.h"
#include "transform/autocast.h"

namespace rushlight::python::guards {

// What code that was compiled for a tensor may rely on.
struct TensorFacts {
  static constexpr uint32_t kKinds = kPythonDispatch | kWrapped | kForwardGrad | kSpecialElements | kPending |
                                     kNotCpu | kWrappedNumber | kInference;

  explicit TensorFacts(PyObject* tensor)
      : type(Py_TYPE(tensor)),
        dtype(tensor_of(tensor)->dtype),
        device(tensor_of(tensor)->device),
        kinds(tensor_of(tensor)->flags & kKinds),
        requires_grad(records(tensor)),
        has_attributes(attributes(tensor)),
        sizes(tensor_of(tensor)->sizes),
        strides(tensor_of(tensor)->strides) {}

  static bool records(PyObject* tensor) { return detail::flags_of(tensor_of(tensor)) & kAutograd; }

  // Attributes that programs set on the tensor; what is in them is checked elsewhere.
  static bool attributes(PyObject* tensor) {
    PyObject* dict = reinterpret_cast<PyTensor*>(tensor)->dict;
    return dict && PyDict_GET_SIZE(dict) != 0;
  }

  bool hold(PyObject* o) const {
    if (!hold_but_for_layout(o)) return false;  // it may be no tensor
    const TensorImpl& t = *impl_of(o);
    return IntList(t.sizes) == IntList(sizes) && IntList(t.strides) == IntList(strides);
  }
  bool hold_but_for_layout(PyObject* o) const {
    if (Py_TYPE(o) != type || attributes(o) != has_attributes) return false;
    const TensorImpl& t = *impl_of(o);
    return t.dtype == dtype && t.device == device && (t.flags & kKinds) == kinds &&
           records(o) == requires_grad;
  }

  PyTypeObject* type;  // borrowed: the check keeps it alive
  DType dtype;
  Device device;
  uint32_t kinds;
  bool requires_grad, has_attributes;
  Dims sizes, strides;
};

// What is neither an argument nor reached from one: how this thread runs operators.
struct Surroundings {
  uint32_t always = dispatch_state.always, consider = dispatch_state.consider;
  bool grad_enabled = dispatch_state.grad_enabled, inference = dispatch_state.inference;
  bool inside_transform = dispatch_state.level != nullptr, mode = function_state.mode_active();
  DType default_dtype = get_default_dtype();
  AutocastState::Region autocast_cpu = autocast_state.cpu, autocast_cuda = autocast_state.cuda;
  bool autocast_cache = autocast_state.cache;

  // Somebody wants to know what single operators save, or compute.
  bool recording_watched = saved_hooks_active() || anomaly_state.enabled;

  bool operator==(const Surroundings&) const = default;
  // Nothing watches single operators, apart from autograd and autocasting.
  bool plain() const {
    return !(always & ~uint32_t{kAutocast}) && !inside_transform && !mode && !recording_watched;
  }
};

// Where a value comes from that may be another one in each call.
struct Source {
  enum Kind : uint8_t { kArgument, kKeyword, kItem, kAttributes, kEntryOf } kind;
  int parent = -1;          // of an item, and of the dict of an object's attributes
  Py_ssize_t position = 0;  // of an argument, or of an item in a list or tuple
  PyRef key;                // of a keyword, or of an item in a dict
  PyRef object{};           // the dict of an entry that belongs to no argument
};

// A size that may be any within a range, the same wherever a call has it.
struct Symbol {
  int64_t low, high;  // inclusive
};

struct Check {
  enum Kind : uint8_t {
    kArgumentCount,  // number positional, `other` (a tuple) names of keywords
    kTensor,         // of a source
    kEqual,          // of a source
    kForm,           // of a source: exact type `object`, `number` items
    kEntry,          // dict `object` at `key` has `expected`
    kAbsent,         // dict `object` has no `key`
    kKeys,           // dict `object`, or of a source: the keys `expected` in this order
    kLength,         // container `object` has `number` items
    kElement,        // list `object` at `number` has `expected`
    kSet,            // set `object` has the members `expected` in this order
    kCell,           // closure cell `object` holds `expected`
    kDict,           // `object` is of type `key`, its instance dict is `expected`
    kVersion,        // type `object` is unchanged since version `number`
    kCode,           // function `object` runs `expected`
    kHeldTensor,     // tensor `object`
    kApart,          // the sources `symbols` are several objects, and none of `expected`
  } kind;
  bool by_value = false;  // an equal value of the same type will do
  int source = -1;
  int64_t number = 0;
  PyRef object, key, expected;
  std::optional<TensorFacts> facts;
  // Of a tensor's sizes, -1 where they are as they were; empty: all are. Or sources.
  std::vector<int> symbols;
};

// A number that every change of a dict renews; 0 where this Python does not keep it.
inline uint64_t version_of_dict([[maybe_unused]] PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  return 0;
#endif
}

// The checks of what one dict holds: passed over while the dict is as it was when they last held.
struct DictChecks {
  PyObject* dict;  // borrowed from the checks
  std::vector<size_t> checks;
  uint64_t version = 0;
};

struct Guards {
  std::vector<Source> sources;
  std::vector<Check> checks;
  std::vector<size_t> single;  // the checks that are not of a dict
  std::vector<DictChecks> dicts;
  std::vector<Symbol> symbols;
  std::vector<int> tensors;     // sources of the tensors that a call is given
  std::vector<int> inputs;      // those of them that the graph takes
  std::vector<int> alias;       // per tensor: the first one that was the same
  std::vector<PyObject*> held;  // tensors of checks kHeldTensor, borrowed from there
  std::vector<int> held_alias;  // per tensor: the held one that it was, or -1
  Surroundings surroundings;
};

struct Incoming {
  PyObject *args, *kwargs;  // a tuple; a dict or null
  std::vector<PyObject*> values;
  std::vector<int64_t> symbols{};  // what their sizes are in this call, -1 before one was met
};

// Looks the values of all sources up.
void resolve(const Guards& g, Incoming& in);

// Which tensors are one and the same, among the inputs and with those that are held.
template <class F>
void each_alias(const Guards& g, const Incoming& in, F&& f) {
  auto tensor = [&](size_t i) { return in.values[static_cast<size_t>(g.tensors[i])]; };
  for (size_t i = 0; i < g.tensors.size(); ++i) {
    int first = static_cast<int>(i), held = -1;
    for (size_t j = 0; j < i && first == static_cast<int>(i); ++j)
      if (tensor(j) == tensor(i)) first = static_cast<int>(j);
    for (size_t j = 0; j < g.held.size() && held < 0; ++j)
      if (g.held[j] == tensor(i)) held = static_cast<int>(j);
    f(i, first, held);
  }
}

constexpr int kSurroundings = -1, kAliases = -2;

// The index of the first check that fails, or one of the constants above.
std::optional<int> first_failure(Guards& g, Incoming& in);

// Puts the checks of each dict together.
void group_by_dict(Guards& g);

// Of a dict, list or tuple; -1 of anything else.
Py_ssize_t length_of(PyObject* container);

// A number that every change of a class renews; 0 where there is none.
unsigned version_of(PyTypeObject* type);

}  // namespace rushlight::python::guards
