"""Running operators on spread tensors.

An operator's rule (`_ops`) lists the ways in which one dimension of a mesh can share its work: how the inputs
must lie, and how the outputs will. For each dimension of the mesh the way is taken that moves the fewest
bytes;
inputs are redistributed to it, the operator runs on the parts, the results are spread tensors. Operators
without a rule run on whole tensors in every process. Plans are kept by operator and layout.
"""

import rushlight as torch
from rushlight import _C
from rushlight.distributed.tensor import _ops
from rushlight.distributed.tensor._dtensor_spec import (
    DTensorSpec,
    TensorMeta,
    contiguous_stride,
    local_shape_and_offset,
    meta_of,
)
from rushlight.distributed.tensor._redistribute import redistribute_local_tensor
from rushlight.distributed.tensor.placement_types import Partial, Replicate, _StridedShard
from rushlight.utils._python_dispatch import return_and_correct_aliasing

_FUNCTIONAL, _INPLACE, _OUT = range(3)
_LATENCY = 1000.0  # bytes that could be moved while a collective starts
_NEVER = float("inf")


class Settings:
    """What programs switch: whether plain tensors count as replicated; which operators run in their own
    way."""

    implicit_replication = False
    handlers: dict = {}  # operator name -> function(call), for what needs more than redistribution


def _map(function, value):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(function, item) for item in value)
    return value


class Call:
    """An operator's call, with what its rule asks for."""

    def __init__(self, func, args, kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.mesh = self.out_metas = None
        self.leaves, self.specs, self.where = [], [], []
        record = func._entry.schema
        self.custom = isinstance(record, str) or func.namespace != "aten"
        self.name = func._opname if self.custom else record["name"]
        self.overload = func._overloadname
        self.family = "custom" if self.custom else record["family"]
        self.traits = func.traits
        self.form = func._entry.form
        self.writes = not self.custom and any(a.is_write for a in func._schema.arguments)
        self._collect()

    def _collect(self):
        names = [a.name for a in self.func._schema.arguments]
        self.names = names
        items = [(names[i], value) for i, value in enumerate(self.args)] + list(self.kwargs.items())
        for name, value in items:
            for leaf in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(leaf, torch.Tensor):
                    self.leaves.append(leaf)
                    self.where.append(name)

    # --- for rules

    def __getitem__(self, name):
        """An argument's value, or its default."""
        index = self.names.index(name)
        if index < len(self.args):
            return self.args[index]
        if name in self.kwargs:
            return self.kwargs[name]
        default = self.func._schema.arguments[index].default_value
        return default

    def leaf(self, name):
        """The position of the tensor given for a parameter; None when none is."""
        return self.where.index(name) if name in self.where else None

    def shape(self, name):
        index = self.leaf(name)
        return None if index is None else self.specs[index].shape

    def dim(self, name="dim", of="self"):
        """A dimension argument, counted from the left."""
        rank = len(self.shape(of))
        value = self[name]
        return value % rank if rank else 0

    @property
    def out_shapes(self):
        return [None if m is None else m.shape for m in self.out_metas]

    def way(call, /, *outputs, **inputs):
        """A way to share the work: placements of the outputs, and of inputs that are not whole."""
        outputs = list(outputs) + [Replicate()] * (len(call.out_metas) - len(outputs))
        return outputs, [inputs.get(name) or Replicate() for name in call.where]

    def partials(self):
        """The kinds of sums among the inputs."""
        found = {p for spec in self.specs for p in spec.placements if type(p) is Partial}
        return sorted(found, key=str)


class Plan:
    """How a call runs: layouts of inputs and outputs, and how local arguments differ from global ones."""

    def __init__(self, inputs, outputs, many, adjust):
        self.inputs, self.outputs, self.many, self.adjust = inputs, outputs, many, adjust


_plans: dict = {}


def dispatch(func, types, args, kwargs):
    """`DTensor.__torch_dispatch__`."""
    from rushlight.distributed.tensor._api import DTensor

    if any(not issubclass(t, DTensor) and _dispatches(t) for t in types):
        return NotImplemented
    call = Call(func, args, kwargs)
    _find_specs(call, DTensor)
    for handlers in (Settings.handlers, _ops.HANDLERS):
        result = handlers[call.name](call) if call.name in handlers else NotImplemented
        if result is not NotImplemented:
            return result
    if None in call.specs:
        _refuse_mixed(call)
    if call.writes or call.form == _INPLACE:
        _check_write(call)
    key = _key(call)
    plan = _plans.get(key) if key is not None else None
    if plan is None:
        plan = _planned(call)
        if key is not None and plan is not None:
            if len(_plans) > 4096:
                _plans.clear()
            _plans[key] = plan
    return run_whole(call) if plan is None else _run(call, plan)


def _dispatches(cls):
    return cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl and not issubclass(
        cls, torch.nn.Parameter
    )


def _find_specs(call, cls):
    for leaf in call.leaves:
        if isinstance(leaf, cls):
            mesh = leaf._spec.mesh
            other = call.mesh is not None and mesh is not call.mesh and mesh != call.mesh
            if other and not call.name.startswith("_fused_"):  # steps take each parameter by itself
                raise RuntimeError(
                    f"{call.func}: all operands must be on the same mesh, but got {call.mesh} and {mesh}"
                )
            call.mesh = mesh
    for leaf in call.leaves:
        if isinstance(leaf, cls):
            call.specs.append(leaf._spec)
        elif leaf.numel() == 1 or Settings.implicit_replication:
            call.specs.append(DTensorSpec(call.mesh, (Replicate(),) * call.mesh.ndim, meta_of(leaf)))
        else:
            call.specs.append(None)


def _refuse_mixed(call):
    raise RuntimeError(
        f"{call.func} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
        "calling distributed operators! Please see "
        "https://docs.pytorch.org/docs/main/distributed.tensor.html#mixed-tensor-and-dtensor-operations "
        "for more "
        "details."
    )


def _frozen(value):
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, (int, float)):
        return type(value), value
    return value


def _key(call):
    kwargs = tuple((name, _frozen(value)) for name, value in call.kwargs.items())
    try:
        key = (call.func, tuple(call.specs), _frozen(call.args), kwargs, call.mesh)
        hash(key)
    except TypeError:
        return None
    return key


def _planned(call):
    """The plan, or None where only running it on whole tensors tells what comes out."""
    rule = _ops.REGISTERED.get(call.func) or (None if call.custom else _ops.rule_of(call))
    if rule is None:
        return None
    many = _out_metas(call)
    if many is None:
        return None
    ways = [call.way(), *rule(call)]
    cuts = getattr(rule, "may_cut_whole_inputs", False)
    chosen = [_cheapest(call, ways, i, cuts) for i in range(call.mesh.ndim)]
    inputs = [
        DTensorSpec(call.mesh, [way[1][k] for way in chosen], spec.tensor_meta)
        for k, spec in enumerate(call.specs)
    ]
    outputs = [
        None if meta is None else DTensorSpec(call.mesh, [way[0][k] for way in chosen], meta)
        for k, meta in enumerate(call.out_metas)
    ]
    return Plan(inputs, outputs, many, _ops.adjustment_of(call))


def _out_metas(call):
    """Find shapes and dtypes of the whole outputs; True where there are several, None if values decide."""
    metas = iter([torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device="meta") for s in call.specs])
    if not call.func._schema.returns:
        call.out_metas = []
        return False
    args = _map(lambda _: next(metas), call.args)
    kwargs = {name: _map(lambda _: next(metas), value) for name, value in call.kwargs.items()}
    if kwargs.get("device") is not None:
        kwargs["device"] = "meta"
    try:
        with _C._DisableTorchDispatch():
            result = call.func(*args, **kwargs)
    except NotImplementedError:
        return None
    many = isinstance(result, (tuple, list))
    results = result if many else [result]
    if not all(isinstance(r, torch.Tensor) or r is None for r in results):
        return None
    call.out_metas = [None if r is None else meta_of(r) for r in results]
    return many


def _cheapest(call, ways, i, may_cut_whole_inputs):
    """The way that moves the fewest bytes along mesh dimension i."""
    factor = next(
        (p.split_factor for s in call.specs for p in [s.placements[i]] if isinstance(p, _StridedShard)), None
    )
    best, least = None, _NEVER
    for way in ways:
        outputs, inputs = way if factor is None else [[_strided(p, factor) for p in ps] for ps in way]
        if call.writes and not _keeps_written(call, inputs, outputs, i):
            continue
        if not may_cut_whole_inputs and not _follows(call, inputs, i):
            continue
        cost = sum(_cost(spec, i, wanted, call.mesh.size(i)) for spec, wanted in zip(call.specs, inputs))
        if cost < least:
            best, least = (outputs, inputs), cost
    if best is None:
        raise RuntimeError(
            f"{call.func}: in-place operations that require placement changes are not supported for DTensor: "
            f"the tensor that is written lies as {call.specs[0].placements}, the operands as "
            f"{[s.placements for s in call.specs[1:]]}. Use the out-of-place operator, or redistribute first"
        )
    return best


def _follows(call, inputs, i):
    """Whether nothing is cut, or at least one input lies so already."""
    cut = [(spec.placements[i], wanted) for spec, wanted in zip(call.specs, inputs) if wanted.is_shard()]
    return not cut or any(held == wanted for held, wanted in cut)


def _strided(placement, factor):
    return _StridedShard(placement.dim, split_factor=factor) if placement.is_shard() else placement


def _keeps_written(call, inputs, outputs, i):
    written = {a.name for a in call.func._schema.arguments if a.is_write}
    kept = all(
        inputs[k] == call.specs[k].placements[i] for k, name in enumerate(call.where) if name in written
    )
    index = next((k for k, name in enumerate(call.where) if name in written), None)
    return kept and (not outputs or index is None or outputs[0] == call.specs[index].placements[i])


def _cost(spec, i, wanted, ranks):
    held = spec.placements[i]
    if held == wanted:
        return 0.0
    if wanted.is_partial():
        return _NEVER
    if held.is_replicate() and wanted.is_replicate():
        return 1e-6  # the same but for a mark, which is better kept
    if wanted.is_shard() and spec.shape[wanted.dim] < ranks:
        return _NEVER
    size = spec.shape.numel() * spec.dtype.itemsize
    for size_of, placement in zip(spec.mesh.shape, spec.placements):
        size /= size_of if placement.is_shard() and placement is not held else 1
    ranks = max(ranks, 2)  # one process alone decides as several would
    moved = size * (ranks - 1) / ranks
    if held.is_partial():
        return _LATENCY + moved * (1 if wanted.is_shard() else 2)
    if held.is_shard():
        return _LATENCY + (1 + moved / ranks if wanted.is_shard() else moved)
    return 1e-3  # each keeps a part of what it has


def locals_of(call, specs):
    """The leaves' local tensors, laid out as `specs` say."""
    found = []
    for leaf, held, wanted in zip(call.leaves, call.specs, specs):
        local = getattr(leaf, "_local_tensor", leaf)
        if held.placements != wanted.placements:
            local = redistribute_local_tensor(local, held, wanted)
        found.append(local)
    return found


def _run(call, plan):
    tensors = iter(locals_of(call, plan.inputs))
    args = _map(lambda _: next(tensors), call.args)
    kwargs = {name: _map(lambda _: next(tensors), value) for name, value in call.kwargs.items()}
    if call.mesh.get_coordinate() is None:
        return _outside(call, plan)
    moved = any(a.placements != b.placements for a, b in zip(call.specs, plan.inputs))
    run = call.func
    if plan.adjust is not None:
        args, kwargs, run = plan.adjust(call, plan, list(args), kwargs)
    result = run(*args, **kwargs)
    wrapped = _wrapped(result, plan)
    return _aliased(call, wrapped, moved)


def _mark_views(call, wrapped, moved):
    """Note what a write to views would reach."""
    if call.family == "view" and call.name != "detach":
        copied = moved and _C._current_graph_task_id() == -1
        for view in wrapped if isinstance(wrapped, (list, tuple)) else [wrapped]:
            view._view_kind = "copy" if copied else "view"


def _aliased(call, wrapped, moved):
    _mark_views(call, wrapped, moved)
    if moved and call.family == "view" and call.name != "detach":
        return wrapped
    return return_and_correct_aliasing(call.func, call.args, call.kwargs, wrapped)


def _check_write(call):
    """Refuse to write where neither memory nor gradients would follow: to some views; and to give a tensor
    another shape in place, which the layout would not follow."""
    if call.family == "view" and call.name != "detach":
        raise RuntimeError(
            f"{call.func}: a DTensor keeps its shape. Use the form without the underscore, it gives another"
        )
    kind = call.leaves[0]._view_kind if hasattr(call.leaves[0], "_view_kind") else None
    if kind == "copy":
        raise RuntimeError(
            f"{call.func}: the tensor is a view that needed communication, so it shares no memory with its "
            "base. Write to the base, or clone() first"
        )
    if kind == "view" and _C._current_graph_task_id() == -1 and any(t.requires_grad for t in call.leaves):
        raise RuntimeError(
            f"{call.func}: writing to a view of a DTensor records no gradients for its base. Use "
            "out-of-place "
            "operators such as torch.where and index_put, or write detached values under no_grad"
        )


def _outside(call, plan):
    """The results in a process that is not in the mesh: nothing, of the right shape."""
    empties = [None if s is None else torch.empty(0, dtype=s.dtype) for s in plan.outputs]
    return _wrapped(empties if plan.many else empties[0] if empties else None, plan)


def _wrapped(result, plan):
    from rushlight.distributed.tensor._api import DTensor

    def wrap(local, spec):
        if not isinstance(local, torch.Tensor):
            return local
        if local.dtype != spec.dtype:
            spec = DTensorSpec(spec.mesh, spec.placements, spec.tensor_meta._replace(dtype=local.dtype))
        return DTensor(local, spec, requires_grad=False)

    if not plan.many:
        return wrap(result, plan.outputs[0]) if plan.outputs else result
    return type(result)(wrap(local, spec) for local, spec in zip(result, plan.outputs))


def run_whole(call):
    """The operator on whole tensors, in every process alike."""
    whole = (Replicate(),) * call.mesh.ndim
    if call.form == _OUT or call.writes:
        return _write_whole(call, whole)
    tensors = iter(locals_of(call, [DTensorSpec(s.mesh, whole, s.tensor_meta) for s in call.specs]))
    args = _map(lambda _: next(tensors), call.args)
    kwargs = {name: _map(lambda _: next(tensors), value) for name, value in call.kwargs.items()}
    if call.family == "random":
        from rushlight.distributed.tensor._random import own_part

        result = own_part(lambda: call.func(*args, **kwargs), call.mesh, whole)
    else:
        result = call.func(*args, **kwargs)
    results = _map(lambda local: _whole(local, call.mesh), result)
    _mark_views(call, results, any(tuple(s.placements) != whole for s in call.specs))
    return results


def _whole(local, mesh):
    from rushlight.distributed.tensor._api import DTensor

    return DTensor(local, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta_of(local)), requires_grad=False)


def _write_whole(call, whole):
    """An operator that writes: on whole tensors, of which each process takes over its parts."""
    tensors = locals_of(call, [DTensorSpec(s.mesh, whole, s.tensor_meta) for s in call.specs])
    written = {a.name for a in call.func._schema.arguments if a.is_write}
    targets = [k for k, name in enumerate(call.where) if name in written]
    if not all(hasattr(call.leaves[k], "_local_tensor") for k in targets):
        _refuse_mixed(call)
    for k in targets:
        if any(p.is_partial() for p in call.specs[k].placements):
            raise RuntimeError(
                f"{call.func}: cannot write to a tensor that is a sum, {call.specs[k].placements}"
            )
        tensors[k] = tensors[k].clone() if tensors[k] is call.leaves[k]._local_tensor else tensors[k]
    source = iter(tensors)
    args = _map(lambda _: next(source), call.args)
    kwargs = {name: _map(lambda _: next(source), value) for name, value in call.kwargs.items()}
    call.func(*args, **kwargs)
    for k in targets:
        if tensors[k].shape != call.specs[k].shape:
            raise RuntimeError(f"{call.func}: a spread tensor cannot be resized by writing to it")
        shape, offset = local_shape_and_offset(tensors[k].shape, call.mesh, call.specs[k].placements)
        part = tensors[k]
        for dim, (size, start) in enumerate(zip(shape, offset)):
            part = part.narrow(dim, start, size)
        call.leaves[k]._local_tensor.copy_(part)
    results = [call.leaves[k] for k in targets]
    return results[0] if len(results) == 1 else tuple(results)


def local_shape(spec):
    """The shape of this process's part."""
    return local_shape_and_offset(spec.shape, spec.mesh, spec.placements)[0]


def spread(local, spec, placements, shape=None):
    """A DTensor on the mesh of `spec`, for handlers."""
    from rushlight.distributed.tensor._api import DTensor

    shape = torch.Size(spec.shape if shape is None else shape)
    meta = TensorMeta(shape, spec.stride if shape == spec.shape else contiguous_stride(shape), local.dtype)
    return DTensor(local, DTensorSpec(spec.mesh, placements, meta), requires_grad=False)
