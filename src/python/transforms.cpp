// torch._C._functorch and the forward-mode functions: levels of function transforms, seen from Python.
#include "dispatch/warning.h"
#include "ops/view.h"
#include "python/op_function.h"
#include "python/parse.h"
#include "python/tensor_type.h"
#include "python/types.h"
#include "transform/forward.h"
#include "transform/level.h"
#include "transform/vmap.h"

namespace rushlight::python {
namespace {

Level& level_at(int64_t depth) {
  for (Level* l = dispatch_state.level; l; l = l->parent.get())
    if (l->depth == depth) return *l;
  RL_FAIL("there is no active function transform at level ", depth);
}

PyObject* enter(LevelKind kind, int64_t batch_size = 0, Randomness randomness = Randomness::Error) {
  return PyLong_FromLongLong(enter_level(kind, batch_size, randomness).depth);
}

PyObject* grad_enter(PyObject*, PyObject*) {
  return guard([] { return enter(LevelKind::Grad); });
}
PyObject* jvp_enter(PyObject*, PyObject*) {
  return guard([] { return enter(LevelKind::Jvp); });
}
PyObject* vmap_enter(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    long long size;
    const char* mode;
    if (!PyArg_ParseTuple(args, "Ls", &size, &mode)) return nullptr;
    const std::string_view name = mode;
    const Randomness randomness = name == "different" ? Randomness::Different
                                  : name == "same"    ? Randomness::Same
                                                      : Randomness::Error;
    return enter(LevelKind::Vmap, size, randomness);
  });
}
PyObject* leave(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    RL_CHECK(dispatch_state.level, "no function transform is active");
    const int64_t depth = dispatch_state.level->depth;
    leave_level();
    return PyLong_FromLongLong(depth);
  });
}

// --- tensors of levels

PyObject* wrap_for_grad(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject* t;
    long long depth;
    if (!PyArg_ParseTuple(args, "OL", &t, &depth)) return nullptr;
    const Tensor live = without_dead(expect_tensor(t, "_wrap_for_grad"));
    Level& level = level_at(depth);
    return wrap(wrapping_at(live, level) ? live : wrap_tensor(live, level));
  });
}

PyObject* require_grad(PyObject*, PyObject* o) {
  return guard([&] {
    const Tensor t = expect_tensor(o, "_require_grad");
    RL_CHECK(is_differentiable(t.dtype()), "only Tensors of floating point dtype can require gradients");
    set_requires_grad(t, true);
    return Py_NewRef(o);
  });
}

PyObject* unwrap_for_grad(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject* t;
    long long depth;
    if (!PyArg_ParseTuple(args, "OL", &t, &depth)) return nullptr;
    const Tensor& tensor = expect_tensor(t, "_unwrap_for_grad");
    const Wrapping* w = tensor->wrapping;
    if (!w || w->batch_dim >= 0 || w->level->depth != depth) return Py_NewRef(t);
    return wrap(w->inner);
  });
}

PyObject* add_batch_dim(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject* t;
    long long dim, depth;
    if (!PyArg_ParseTuple(args, "OLL", &t, &dim, &depth)) return nullptr;
    const Tensor live = without_dead(expect_tensor(t, "_add_batch_dim"));
    return wrap(wrap_batched(live, wrap_dim(dim, live.dim()), level_at(depth)));
  });
}

// The examples of a tensor of the Vmap level `depth`, at dimension `out_dim`; what all examples share is
// expanded.
PyObject* remove_batch_dim(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject* t;
    long long depth, size, out_dim;
    if (!PyArg_ParseTuple(args, "OLLL", &t, &depth, &size, &out_dim)) return nullptr;
    const Tensor tensor = without_dead(expect_tensor(t, "_remove_batch_dim"));
    Level& level = level_at(depth);
    AtLevel outside(level.parent.get());
    const int64_t dim = wrap_dim(out_dim, tensor.dim() + 1);
    if (const Wrapping* w = wrapping_at(tensor, level))
      return wrap(w->batch_dim == dim ? w->inner : ops::movedim_int(w->inner, w->batch_dim, dim));
    Dims sizes = tensor->sizes;
    sizes.insert(static_cast<size_t>(dim), size);
    return wrap(ops::expand(ops::unsqueeze(tensor, dim), sizes, false));
  });
}

const Wrapping* wrapping_of(PyObject* o) { return is_tensor(o) ? tensor_of(o)->wrapping : nullptr; }

PyObject* is_batched(PyObject*, PyObject* o) {
  const Wrapping* w = wrapping_of(o);
  return PyBool_FromLong(w && w->batch_dim >= 0);
}
PyObject* is_gradtracking(PyObject*, PyObject* o) {
  const Wrapping* w = wrapping_of(o);
  return PyBool_FromLong(w && w->batch_dim < 0);
}
PyObject* is_wrapped(PyObject*, PyObject* o) { return PyBool_FromLong(wrapping_of(o) != nullptr); }
PyObject* is_dead(PyObject*, PyObject* o) {
  const Wrapping* w = wrapping_of(o);
  return PyBool_FromLong(w && !w->level->alive);
}
PyObject* never(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* get_unwrapped(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    const Wrapping* w = wrapping_of(o);
    RL_CHECK(w, "No wrappers present!");
    return wrap(w->inner);
  });
}
PyObject* unwrap_if_dead(PyObject*, PyObject* o) {
  return guard([&] { return wrap(without_dead(expect_tensor(o, "unwrap_if_dead"))); });
}
PyObject* maybe_get_level(PyObject*, PyObject* o) {
  const Wrapping* w = wrapping_of(o);
  return PyLong_FromLongLong(w ? (w->level->alive ? w->level->depth : -2) : -1);
}
PyObject* maybe_get_bdim(PyObject*, PyObject* o) {
  const Wrapping* w = wrapping_of(o);
  return PyLong_FromLongLong(w ? w->batch_dim : -1);
}

// --- the stack

PyObject* describe_level(const Level* l) {
  if (!l) Py_RETURN_NONE;
  static constexpr const char* kinds[] = {"Vmap", "Grad", "Jvp"};
  static constexpr const char* modes[] = {"error", "different", "same"};
  return Py_BuildValue("(sLLsN)", kinds[static_cast<int>(l->kind)], static_cast<long long>(l->depth),
                       static_cast<long long>(l->batch_size), modes[static_cast<int>(l->randomness)],
                       PyBool_FromLong(l->kind == LevelKind::Vmap || l->grad_enabled));
}
// Of the innermost transform, or None: kind, level, batch size, randomness, whether gradients were recorded
// outside.
PyObject* peek(PyObject*, PyObject*) { return describe_level(dispatch_state.level); }
PyObject* get_stack(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    PyRef list(check(PyList_New(0)));
    for (const Level* l = dispatch_state.level; l; l = l->parent.get())
      check(PyList_Append(list.get(), PyRef(check(describe_level(l))).get()));
    check(PyList_Reverse(list.get()));
    return list.release();
  });
}
PyObject* current_level(PyObject*, PyObject*) {
  if (!dispatch_state.level) Py_RETURN_NONE;
  return PyLong_FromLongLong(dispatch_state.level->depth);
}

// Steps out of the innermost level for a while, and back: for code that implements its part of a transform.
thread_local std::vector<std::unique_ptr<AtLevel>> steps;
PyObject* step_out(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    RL_CHECK(dispatch_state.level, "no function transform is active");
    steps.push_back(std::make_unique<AtLevel>(dispatch_state.level->parent.get()));
    Py_RETURN_NONE;
  });
}
PyObject* step_in(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    RL_CHECK(!steps.empty(), "there is no level to step back to");
    steps.pop_back();
    Py_RETURN_NONE;
  });
}

// --- forward mode

PyObject* dual_enter(PyObject*, PyObject*) {
  return guard([] { return PyLong_FromUnsignedLongLong(enter_dual_level()); });
}
PyObject* dual_leave(PyObject*, PyObject*) {
  return guard([]() -> PyObject* {
    leave_dual_level();
    Py_RETURN_NONE;
  });
}
PyObject* dual_depth(PyObject*, PyObject*) { return PyLong_FromLong(dual_level_depth()); }
PyObject* dual_make(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *primal, *tangent;
    if (!PyArg_ParseTuple(args, "OO", &primal, &tangent)) return nullptr;
    return wrap(make_dual(without_dead(expect_tensor(primal, "make_dual")),
                          without_dead(expect_tensor(tangent, "make_dual"))));
  });
}
PyObject* dual_unpack(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    const Tensor& t = expect_tensor(o, "unpack_dual");
    PyRef primal(check(wrap(primal_of(t)))), tangent(check(wrap(tangent_of(t))));
    return PyTuple_Pack(2, primal.get(), tangent.get());
  });
}
PyObject* tangent_get(PyObject*, PyObject* o) {
  return guard([&] { return wrap(tangent_of(expect_tensor(o, "_get_tangent"))); });
}
PyObject* tangent_set(PyObject*, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *t, *tangent;
    if (!PyArg_ParseTuple(args, "OO", &t, &tangent)) return nullptr;
    set_tangent(expect_tensor(t, "_set_tangent"), expect_tensor(tangent, "_set_tangent"));
    Py_RETURN_NONE;
  });
}
PyObject* forward_enabled(PyObject*, PyObject*) { return PyBool_FromLong(tangents_allowed()); }
PyObject* forward_enable(PyObject*, PyObject* o) {
  return guard([&]() -> PyObject* {
    const int on = PyObject_IsTrue(o);
    if (on < 0) throw PythonError();
    allow_tangents(on);
    Py_RETURN_NONE;
  });
}

PyObject* loop_warnings(PyObject*, PyObject*) { return PyBool_FromLong(warn_of_loops); }
PyObject* set_loop_warnings(PyObject*, PyObject* on) {
  return guard([&]() -> PyObject* {
    warn_of_loops = to_bool(on);
    Py_RETURN_NONE;
  });
}

PyObject* loops_enabled(PyObject*, PyObject*) { return PyBool_FromLong(loops_allowed); }
PyObject* enable_loops(PyObject*, PyObject* on) {
  return guard([&]() -> PyObject* {
    loops_allowed = to_bool(on);
    Py_RETURN_NONE;
  });
}

PyMethodDef functorch[] = {{"_grad_increment_nesting", grad_enter, METH_NOARGS, nullptr},
                           {"_grad_decrement_nesting", leave, METH_NOARGS, nullptr},
                           {"_jvp_increment_nesting", jvp_enter, METH_NOARGS, nullptr},
                           {"_jvp_decrement_nesting", leave, METH_NOARGS, nullptr},
                           {"_vmap_increment_nesting", vmap_enter, METH_VARARGS, nullptr},
                           {"_vmap_decrement_nesting", leave, METH_NOARGS, nullptr},
                           {"_wrap_for_grad", wrap_for_grad, METH_VARARGS, nullptr},
                           {"_unwrap_for_grad", unwrap_for_grad, METH_VARARGS, nullptr},
                           {"_require_grad", require_grad, METH_O, nullptr},
                           {"_add_batch_dim", add_batch_dim, METH_VARARGS, nullptr},
                           {"_remove_batch_dim", remove_batch_dim, METH_VARARGS, nullptr},
                           {"is_batchedtensor", is_batched, METH_O, nullptr},
                           {"is_legacy_batchedtensor", never, METH_O, nullptr},
                           {"is_gradtrackingtensor", is_gradtracking, METH_O, nullptr},
                           {"is_functionaltensor", never, METH_O, nullptr},
                           {"is_functorch_wrapped_tensor", is_wrapped, METH_O, nullptr},
                           {"is_dead_tensor_wrapper", is_dead, METH_O, nullptr},
                           {"get_unwrapped", get_unwrapped, METH_O, nullptr},
                           {"unwrap_if_dead", unwrap_if_dead, METH_O, nullptr},
                           {"maybe_get_level", maybe_get_level, METH_O, nullptr},
                           {"maybe_get_bdim", maybe_get_bdim, METH_O, nullptr},
                           {"maybe_current_level", current_level, METH_NOARGS, nullptr},
                           {"_innermost_transform", peek, METH_NOARGS, nullptr},
                           {"_transform_stack", get_stack, METH_NOARGS, nullptr},
                           {"_step_out", step_out, METH_NOARGS, nullptr},
                           {"_step_in", step_in, METH_NOARGS, nullptr},
                           {"_is_vmap_fallback_warning_enabled", loop_warnings, METH_NOARGS, nullptr},
                           {"_set_vmap_fallback_warning_enabled", set_loop_warnings, METH_O, nullptr},
                           {"_is_vmap_fallback_enabled", loops_enabled, METH_NOARGS, nullptr},
                           {"_set_vmap_fallback_enabled", enable_loops, METH_O, nullptr},
                           {}};

PyMethodDef forward_ad[] = {{"_enter_dual_level", dual_enter, METH_NOARGS, nullptr},
                            {"_exit_dual_level", dual_leave, METH_NOARGS, nullptr},
                            {"_dual_level_depth", dual_depth, METH_NOARGS, nullptr},
                            {"_make_dual", dual_make, METH_VARARGS, nullptr},
                            {"_unpack_dual", dual_unpack, METH_O, nullptr},
                            {"_get_tangent", tangent_get, METH_O, nullptr},
                            {"_set_tangent", tangent_set, METH_VARARGS, nullptr},
                            {"_is_fwd_grad_enabled", forward_enabled, METH_NOARGS, nullptr},
                            {"_set_fwd_grad_enabled", forward_enable, METH_O, nullptr},
                            {}};

}  // namespace

void init_transforms(PyObject* module) {
  add_functions(module, forward_ad);
  PyRef space = PyRef::borrow(check(PyImport_AddModule("rushlight._C._functorch")));
  add_functions(space.get(), functorch);
  check(PyModule_AddObjectRef(module, "_functorch", space.get()));
}

}  // namespace rushlight::python
