// CompiledGraph: what torch.compile runs. A program is one call of an executor, and its backward pass
// another, behind one node of autograd. Note [Compiled graphs]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>

#include "autograd/accumulate.h"
#include "autograd/hooked.h"
#include "core/generator.h"
#include "core/parallel.h"
#include "jit/executor.h"
#include "jit/frozen.h"
#include "jit/text.h"
#include "ops/copy.h"
#include "python/autograd.h"
#include "python/guards.h"
#include "transform/autocast.h"

namespace rushlight::python {
namespace {

// Note [Compiled graphs]
// The forward graph gives the program's results and, behind them, what backward graphs take besides inputs
// and results. A program is one node of autograd, or several in a row where one result is computed from
// another, such as a loss from logits: each is a part. A backward graph is for those results of a part that
// gradients came for; `again` (Python) answers where none is: it runs the program once more, recorded
// operator by operator, which serves gradients of gradients too. That is why nodes keep all inputs, and the
// state of the random numbers where the program draws some.
//
// An inner result of a part is one that others of the part are computed from, such as the keys that a
// language model returns besides logits. Their gradients come to it inside of the backward graph. Where
// somebody watches that gradient (a hook, retain_grad, autograd.grad), the program runs once more, and the
// hooks run there.

using jit::Executor;
using Positions = std::vector<size_t>;

// The graph's operators are what autocasting made of the program's: no second time.
class WithoutAutocast {
 public:
  WithoutAutocast() : always_(dispatch_state.always) { dispatch_state.always &= ~uint32_t{kAutocast}; }
  ~WithoutAutocast() { dispatch_state.always = always_; }
  WithoutAutocast(const WithoutAutocast&) = delete;

 private:
  uint32_t always_;
};

struct Backward {
  std::vector<bool> given;       // the results that gradients came for, among those that can have one
  Positions takes;               // of the inputs, then of what the node keeps besides
  Positions edges;               // where its outputs go
  std::vector<bool> any_layout;  // per gradient: whether it may lie otherwise than in order
  std::unique_ptr<Executor> executor;
};

// One node of autograd.
struct Part {
  Part() = default;
  ~Part() {
    if (!Py_IsInitialized()) return;
    GilAcquire gil;
    Py_XDECREF(again);
    Py_XDECREF(trace);
  }
  Part(const Part&) = delete;

  const Backward* find(const std::vector<bool>& given) {
    std::lock_guard guard(mutex);
    const auto found = std::ranges::find(backwards, given, [](const auto& b) { return b->given; });
    return found == backwards.end() ? nullptr : found->get();
  }

  Positions sources;          // of the node's edges: inputs, and behind them results
  Positions results;          // in the order of the node's outputs
  Positions inner;            // of these outputs
  PyObject* again = nullptr;  // (inputs, random state or None) -> inputs and results, recorded one by one
  PyObject* trace = nullptr;  // (given): tries to add a backward graph
  std::mutex mutex;           // of what follows
  std::vector<std::unique_ptr<Backward>> backwards;  // the first one is for all results
};

struct Program {
  Program(std::string_view text, size_t result_count)
      : forward(jit::parse_graph(text), {}), results(result_count) {}

  Executor forward;
  std::unique_ptr<jit::FrozenState> frozen;  // of the forward graph's last inputs; null: there is none
  const size_t results;
  // Whether runs are so short that letting other threads go on meanwhile takes longer; from the fastest of
  // the first ones.
  std::atomic<int> timed{0};
  std::atomic<bool> is_short{false};
  bool draws = false;  // random numbers
  Positions keeps;     // of the forward graph's outputs
  std::deque<Part> parts;
};

Positions positions_of(PyObject* list, size_t limit) {
  Positions positions;
  const PyRef items(check(PySequence_Fast(list, "expected a list of positions")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    const size_t at = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(items.get(), i));
    if (PyErr_Occurred()) throw PythonError();
    RL_CHECK_VALUE(at < limit, "a compiled graph has no position ", at);
    positions.push_back(at);
  }
  return positions;
}

// Whether a graph takes an input in any layout: its operators are those of contiguous ones, which matters to
// views alone.
bool takes_any_layout(const jit::Graph& graph, jit::ValueId input) {
  if (std::ranges::any_of(graph.outputs, [&](const jit::Output& out) { return out.value == input; }))
    return false;
  return std::ranges::all_of(graph.nodes, [&](const jit::Node& node) {
    bool uses = false;
    for (const jit::Argument& a : node.arguments)
      jit::each_use(a, [&](const jit::Use& use) { uses |= use.id == input; });
    return !uses || (node.op && node.op->family != Family::View && !node.op->mutated);
  });
}

// What Python traced, (text, takes, edges) or None, as the backward graph for such gradients.
const Backward* add_backward(const Program& program, Part& part, std::vector<bool> given, PyObject* traced) {
  if (traced == Py_None) return nullptr;
  PyObject *text = nullptr, *takes = nullptr, *edges = nullptr;
  if (!PyArg_ParseTuple(traced, "UOO", &text, &takes, &edges)) throw PythonError();
  auto backward = std::make_unique<Backward>();
  backward->given = std::move(given);
  backward->takes = positions_of(takes, program.forward.graph().inputs.size() + program.keeps.size());
  backward->edges = positions_of(edges, part.sources.size());
  backward->executor = std::make_unique<Executor>(jit::parse_graph(string_view(text)), jit::Constants());
  const jit::Graph& graph = backward->executor->graph();
  const auto gradients = static_cast<size_t>(std::ranges::count(backward->given, true));
  RL_CHECK_VALUE(graph.outputs.size() == backward->edges.size() &&
                     graph.inputs.size() == backward->takes.size() + gradients,
                 "the backward graph does not fit its forward graph");
  for (size_t i = backward->takes.size(); i < graph.inputs.size(); ++i)
    backward->any_layout.push_back(takes_any_layout(graph, graph.inputs[i]));
  std::lock_guard guard(part.mutex);
  return part.backwards.emplace_back(std::move(backward)).get();
}

// --- the node

class CompiledNode final : public PlainNode {
 public:
  CompiledNode(std::shared_ptr<Program> program, Part& part) : program_(std::move(program)), part_(part) {}
  std::string name() const override { return "CompiledFunctionBackward"; }
  Gradients apply(Gradients grads) override;
  void run_tensor_hooks(Gradients& grads) override;
  void release_saved() override {
    released_ = true;
    rushlight::release_saved(kept, *this);
    rushlight::release_saved(inputs, *this);
  }
  void each_saved(const std::function<void(const SavedVariable&)>& f) const override {
    for (const SavedVariable& s : kept) f(s);
    for (const SavedVariable& s : inputs) f(s);
  }

  std::vector<SavedVariable> inputs, kept;  // of the forward graph; what backward graphs take besides
  std::vector<std::byte> random_state;

 private:
  ~CompiledNode() override = default;
  std::vector<Tensor> values_again();
  Gradients run_again(Gradients& grads, bool watched = false);
  std::optional<Gradients> found_in_this_pass();

  std::shared_ptr<Program> program_;
  Part& part_;
  std::atomic<bool> released_{false};
  // By pass, what it found already while hooks of inner results ran; under `lock`.
  std::vector<std::pair<int64_t, Gradients>> found_;
};

// Whether the executor may take a gradient: transforms and modes see single operators.
bool is_plain(const Tensor& t) {
  constexpr uint32_t kWatched = kPythonDispatch | kWrapped | kForwardGrad | kSpecialElements;
  return !t.defined() || !((t->flags & kWatched) || t.device().is_meta());
}

void CompiledNode::run_tensor_hooks(Gradients& grads) {
  const auto watched = [&](size_t i) { return is_gradient_watched(*this, static_cast<uint32_t>(i)); };
  if (!grads.any_defined() || std::ranges::none_of(part_.inner, watched))
    return Node::run_tensor_hooks(grads);
  for (uint32_t i = 0; i < grads.size(); ++i)
    if (std::ranges::find(part_.inner, i) == part_.inner.end()) run_hooks_of_output(*this, i, grads);
  Gradients gradients = run_again(grads, true);
  {
    std::lock_guard guard(lock);
    found_.emplace_back(current_pass(), std::move(gradients));
  }
  keep_retained_gradients(*this, grads);
}

std::optional<Gradients> CompiledNode::found_in_this_pass() {
  std::lock_guard guard(lock);
  const auto at = std::ranges::find(found_, current_pass(), &std::pair<int64_t, Gradients>::first);
  if (at == found_.end()) return std::nullopt;
  Gradients gradients = std::move(at->second);
  found_.erase(at);
  return gradients;
}

Gradients CompiledNode::apply(Gradients grads) {
  if (std::optional<Gradients> found = found_in_this_pass()) return std::move(*found);
  if (!grads.any_defined()) return Gradients(edges().size());
  std::vector<bool> given;
  for (const Tensor& g : grads) given.push_back(g.defined());
  if (GradMode::enabled() || dispatch_state.level || !std::ranges::all_of(grads, is_plain))
    return run_again(grads);
  const Backward* backward = part_.find(given);
  if (!backward && part_.trace) {
    GilAcquire gil;
    const PyRef flags(check(PyTuple_New(static_cast<Py_ssize_t>(given.size()))));
    for (size_t i = 0; i < given.size(); ++i)
      PyTuple_SET_ITEM(flags.get(), static_cast<Py_ssize_t>(i), PyBool_FromLong(given[i]));
    const PyRef traced(check(PyObject_CallOneArg(part_.trace, flags.get())));
    backward = add_backward(*program_, part_, std::move(given), traced.get());
  }
  if (!backward) return run_again(grads);
  if (released_) fail_released();
  std::vector<Tensor> taken;
  for (const size_t at : backward->takes)
    taken.push_back((at < inputs.size() ? inputs[at] : kept[at - inputs.size()]).unpack(*this));
  if (!pass_keeps_graph()) release_saved();  // what is used up makes room for gradients
  size_t at = 0;
  for (Tensor& g : grads)
    if (g.defined())
      taken.push_back(backward->any_layout[at++] ? g : ops::contiguous(g, MemoryFormat::Contiguous));
  grads = Gradients();
  const WithoutAutocast plain;
  std::vector<Tensor> computed = backward->executor->run(std::move(taken));
  Gradients result(edges().size());
  for (size_t i = 0; i < computed.size(); ++i) result[backward->edges[i]] = std::move(computed[i]);
  return result;
}

std::vector<Tensor> CompiledNode::values_again() {
  if (released_) fail_released();
  std::vector<Tensor> tensors;
  for (const SavedVariable& s : inputs) tensors.push_back(s.unpack(*this));
  const GilAcquire gil;
  const PyRef given(check(PyList_New(0)));
  for (const Tensor& t : tensors) check(PyList_Append(given.get(), PyRef(check(wrap(t))).get()));
  PyRef state = PyRef::borrow(Py_None);
  if (!random_state.empty()) {
    Tensor bytes = empty_tensor(IntList{static_cast<int64_t>(random_state.size())}, DType::UInt8);
    std::ranges::copy(random_state, static_cast<std::byte*>(bytes.data_ptr()));
    state = PyRef(check(wrap(bytes)));
  }
  const PyRef made(check(PyObject_CallFunctionObjArgs(part_.again, given.get(), state.get(), nullptr)));
  const PyRef items(check(PySequence_Fast(made.get(), "expected tensors")));
  std::vector<Tensor> values;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    values.push_back(expect_tensor(PySequence_Fast_GET_ITEM(items.get(), i), "value"));
  RL_ASSERT(values.size() >= inputs.size() + program_->results);
  return values;
}

// The gradients of the program's operators, recorded one by one. `watched`: hooks of inner results run where
// these are computed, and `grads` becomes all that arrives there.
Gradients CompiledNode::run_again(Gradients& grads, bool watched) {
  struct Totals {
    Gradients grads;
    bool running = true;  // later passes of a graph that stays have totals of their own
  };
  const std::vector<Tensor> values = values_again();
  const auto totals = std::make_shared<Totals>();
  std::vector<Tensor> outputs, seeds, wanted;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    outputs.push_back(values[inputs.size() + part_.results[i]]);
    seeds.push_back(grads[i]);
  }
  if (watched) {
    totals->grads = grads.clone();
    for (const size_t i : part_.inner) {
      const Edge edge = gradient_edge(values[inputs.size() + part_.results[i]]);
      auto see = [node = Ref<Node>::share(this), totals, i](const Tensor& total) {
        Gradients later(totals->running ? 0 : totals->grads.size());
        Gradients& all = totals->running ? totals->grads : later;
        all[i] = total;
        run_hooks_of_output(*node, static_cast<uint32_t>(i), all);
        if (!totals->running) keep_retained_gradients(*node, all);
        return all[i];
      };
      edge.node->add_output_hook(edge.input, Ref<TensorHook>::adopt(new TensorFunctionHook(see)));
    }
  }
  for (const size_t i : part_.sources) wanted.push_back(values[i]);
  std::vector<Tensor> computed =
      grad(outputs, wanted, seeds, true, {.create_graph = GradMode::enabled(), .accumulate = false});
  totals->running = false;
  if (watched) {
    const size_t count = grads.size();
    grads = std::move(totals->grads);
    totals->grads.resize(count);
  }
  Gradients result(edges().size());
  for (size_t i = 0; i < computed.size(); ++i) result[i] = std::move(computed[i]);
  return result;
}

// --- runs

void record(const std::shared_ptr<Program>& program, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& values, const std::vector<std::byte>& random_state) {
  for (Part& part : program->parts) {
    const Ref<CompiledNode> node = Ref<CompiledNode>::adopt(new CompiledNode(program, part));
    for (const size_t i : part.sources)
      node->add_edge(gradient_edge(i < inputs.size() ? inputs[i] : values[i - inputs.size()]));
    for (const size_t r : part.results) set_history(values[r], node, node->add_output(values[r]));
    for (const size_t p : program->keeps) node->kept.emplace_back(values[p], p < program->results);
    for (const Tensor& t : inputs) node->inputs.emplace_back(t, false);
    if (!part.inner.empty()) node->ensure_hooks();  // so that the engine asks for them
    node->random_state = random_state;
  }
}

std::vector<Tensor> run_frozen(Program& program, std::vector<Tensor> inputs,
                               const std::vector<Tensor>& sources) {
  const auto made = program.frozen->current(sources);
  inputs.insert(inputs.end(), made->values.begin(), made->values.end());
  const UseConstants known(&made->constants);
  return program.forward.run(std::move(inputs));
}

std::vector<Tensor> run(const std::shared_ptr<Program>& program, std::vector<Tensor> inputs,
                        const std::vector<Tensor>& sources) {
  const bool records = !program->parts.empty() && GradMode::enabled();
  std::vector<std::byte> random_state;
  if (records && program->draws) {
    random_state.resize(Generator::kStateBytes);
    default_generator().get_state(random_state);
  }
  std::vector<Tensor> values;
  {
    const WithoutAutocast plain;
    values = records           ? program->forward.run(std::vector<Tensor>(inputs))
             : program->frozen ? run_frozen(*program, std::move(inputs), sources)
                               : program->forward.run(std::move(inputs));
  }
  for (size_t r = 0; r < program->results; ++r)  // nobody else has the base of a result that is a view
    if (values[r]->view_base && values[r]->use_count() == 1) leave_base(values[r]);
  if (records) record(program, inputs, values, random_state);
  values.resize(program->results);
  return values;
}

std::vector<Tensor> run_timed(const std::shared_ptr<Program>& program, std::vector<Tensor> inputs,
                              const std::vector<Tensor>& sources) {
  constexpr int kTimed = 16;
  constexpr auto kShort = std::chrono::microseconds(20);
  if (program->timed.load(std::memory_order_relaxed) >= kTimed || get_num_threads() > 1)
    return run(program, std::move(inputs), sources);
  program->timed.fetch_add(1, std::memory_order_relaxed);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> values = run(program, std::move(inputs), sources);
  if (std::chrono::steady_clock::now() - start < kShort) program->is_short = true;
  return values;
}

// --- the Python type

struct CompiledGraph {
  PyObject_HEAD std::shared_ptr<Program> program;
  PyObject* guards;   // a GuardSet, or null
  PyObject* rest;     // the inputs that are no arguments: a list of tensors
  PyObject* sources;  // of frozen inputs: a list of tensors, or null
  char form;          // of what a call returns: 't' a tensor, 'u' a tuple, 'l' a list
};
CompiledGraph& self_of(PyObject* o) { return *reinterpret_cast<CompiledGraph*>(o); }

PyObject* returned(const CompiledGraph& self, std::vector<Tensor> values) {
  if (self.form == 't') return wrap(std::move(values[0]));
  const auto n = static_cast<Py_ssize_t>(values.size());
  PyRef made(check(self.form == 'u' ? PyTuple_New(n) : PyList_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = check(wrap(std::move(values[static_cast<size_t>(i)])));
    if (self.form == 'u')
      PyTuple_SET_ITEM(made.get(), i, item);
    else
      PyList_SET_ITEM(made.get(), i, item);
  }
  return made.release();
}

PyObject* run_with(const CompiledGraph& self, PyObject* const* given, size_t count) {
  const std::shared_ptr<Program> program = self.program;
  std::vector<Tensor> inputs;
  const auto more = static_cast<size_t>(PyList_GET_SIZE(self.rest));
  inputs.reserve(count + more);
  for (size_t i = 0; i < count; ++i) inputs.push_back(expect_tensor(given[i], "input"));
  for (size_t i = 0; i < more; ++i)
    inputs.push_back(expect_tensor(PyList_GET_ITEM(self.rest, static_cast<Py_ssize_t>(i)), "input"));
  std::vector<Tensor> values, sources;
  for (Py_ssize_t i = 0; self.sources && i < PyList_GET_SIZE(self.sources); ++i)
    sources.push_back(expect_tensor(PyList_GET_ITEM(self.sources, i), "source"));
  if (program->is_short.load(std::memory_order_relaxed)) {
    values = run(program, std::move(inputs), sources);
  } else {
    const GilRelease released;
    values = run_timed(program, std::move(inputs), sources);
  }
  return returned(self, std::move(values));
}

PyObject* graph_run(PyObject* o, PyObject* inputs) {
  return guard([&] {
    const PyRef items(check(PySequence_Fast(inputs, "run expects a list of tensors")));
    return run_with(self_of(o), PySequence_Fast_ITEMS(items.get()),
                    static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())));
  });
}

// call(args, kwargs): what the program returns, or NotImplemented if the graph is not for this call.
PyObject* graph_call(PyObject* o, PyObject* const* call, Py_ssize_t count) {
  CompiledGraph& self = self_of(o);
  if (count != 2 || !PyTuple_Check(call[0]) || !PyDict_Check(call[1]) || !self.guards)
    return PyErr_Format(PyExc_TypeError, "call() expects a tuple and a dict");
  return guard([&] {
    std::vector<PyObject*> inputs;
    if (!match_guards(self.guards, call[0], call[1], inputs)) return Py_NewRef(Py_NotImplemented);
    return run_with(self, inputs.data(), inputs.size());
  });
}

PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", "results", "rest", "form", "guards", nullptr};
  PyObject *text = nullptr, *rest = nullptr, *guards = nullptr;
  Py_ssize_t results = 0;
  int form = 'l';
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UnO!C|O!", const_cast<char**>(names), &text, &results,
                                   &PyList_Type, &rest, &form, &GuardSetType, &guards))
    return nullptr;
  return guard([&] {
    auto program = std::make_shared<Program>(string_view(text), static_cast<size_t>(results));
    RL_CHECK_VALUE(
        program->results <= program->forward.graph().outputs.size() && (form != 't' || program->results == 1),
        "a compiled graph has fewer results than ", results);
    PyObject* o = check(type->tp_alloc(type, 0));
    new (&self_of(o).program) std::shared_ptr<Program>(std::move(program));
    self_of(o).rest = Py_NewRef(rest);
    self_of(o).guards = guards ? Py_NewRef(guards) : nullptr;
    self_of(o).form = static_cast<char>(form);
    return o;
  });
}

// keep(outputs, draws): what the nodes of later runs keep.
PyObject* graph_keep(PyObject* o, PyObject* args) {
  PyObject* keeps = nullptr;
  int draws = 0;
  if (!PyArg_ParseTuple(args, "Op", &keeps, &draws)) return nullptr;
  return guard([&] {
    Program& program = *self_of(o).program;
    program.keeps = positions_of(keeps, program.forward.graph().outputs.size());
    program.draws = draws != 0;
    return Py_NewRef(Py_None);
  });
}

// record(sources, results, inner, again, trace): from now on runs make one more node; gives its position.
PyObject* graph_record(PyObject* o, PyObject* args) {
  PyObject *sources = nullptr, *results = nullptr, *inner = nullptr, *again = nullptr, *trace = nullptr;
  if (!PyArg_ParseTuple(args, "OOOOO", &sources, &results, &inner, &again, &trace)) return nullptr;
  return guard([&] {
    Program& program = *self_of(o).program;
    const size_t given = program.forward.graph().inputs.size();
    Positions edges = positions_of(sources, given + program.results),
              outputs = positions_of(results, program.results), between = positions_of(inner, outputs.size());
    Part& part = program.parts.emplace_back();
    part.sources = std::move(edges), part.results = std::move(outputs), part.inner = std::move(between);
    part.again = Py_NewRef(again), part.trace = Py_NewRef(trace);
    return PyLong_FromSize_t(program.parts.size() - 1);
  });
}

// add_backward(part, given, (text, takes, edges)): a graph for such gradients.
PyObject* graph_add_backward(PyObject* o, PyObject* args) {
  PyObject *given = nullptr, *traced = nullptr;
  Py_ssize_t at = 0;
  if (!PyArg_ParseTuple(args, "nO!O", &at, &PyTuple_Type, &given, &traced)) return nullptr;
  return guard([&] {
    Program& program = *self_of(o).program;
    RL_CHECK_VALUE(static_cast<size_t>(at) < program.parts.size(), "a compiled graph has no part ", at);
    std::vector<bool> flags;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i)
      flags.push_back(PyTuple_GET_ITEM(given, i) == Py_True);
    add_backward(program, program.parts[static_cast<size_t>(at)], std::move(flags), traced);
    return Py_NewRef(Py_None);
  });
}

// freeze(text, sources): the graph of `text` computes the last inputs of this one from the sources.
PyObject* graph_freeze(PyObject* o, PyObject* args) {
  PyObject *text = nullptr, *sources = nullptr;
  if (!PyArg_ParseTuple(args, "UO!", &text, &PyList_Type, &sources)) return nullptr;
  return guard([&] {
    self_of(o).program->frozen = std::make_unique<jit::FrozenState>(jit::parse_graph(string_view(text)));
    Py_XSETREF(self_of(o).sources, Py_NewRef(sources));
    return Py_NewRef(Py_None);
  });
}

// How often the frozen values were computed.
PyObject* graph_computed(PyObject* o, PyObject*) {
  const auto& frozen = self_of(o).program->frozen;
  return PyLong_FromLongLong(frozen ? frozen->computed() : 0);
}

PyMethodDef methods[] = {
    {"run", graph_run, METH_O, "run(inputs): the results for these tensors."},
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(graph_call)), METH_FASTCALL,
     "call(args, kwargs): the results, or NotImplemented if the graph is for other calls."},
    {"freeze", graph_freeze, METH_VARARGS,
     "freeze(text, sources): another graph computes the last inputs, when the sources change."},
    {"computed", graph_computed, METH_NOARGS, "How often the frozen values were computed."},
    {"record", graph_record, METH_VARARGS,
     "record(sources, results, inner, again, trace): runs become one more node of autograd."},
    {"keep", graph_keep, METH_VARARGS, "keep(outputs, draws): what nodes keep."},
    {"add_backward", graph_add_backward, METH_VARARGS,
     "add_backward(part, given, (text, takes, edges)): a backward graph for these gradients."},
    {}};

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(self_of(o).guards);
  Py_VISIT(self_of(o).rest);
  Py_VISIT(self_of(o).sources);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(self_of(o).guards);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  clear(o);
  Py_CLEAR(self_of(o).rest);
  Py_CLEAR(self_of(o).sources);
  self_of(o).program.~shared_ptr();
  Py_TYPE(o)->tp_free(o);
}

PyTypeObject CompiledGraphType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C._CompiledGraph",
    .tp_basicsize = sizeof(CompiledGraph),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "_CompiledGraph(text, results, rest, form, guards): a program that runs as one call.",
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_methods = methods,
    .tp_new = graph_new,
};

}  // namespace

void init_compiled_graph(PyObject* module) { add_type(module, "_CompiledGraph", &CompiledGraphType); }

}  // namespace rushlight::python
