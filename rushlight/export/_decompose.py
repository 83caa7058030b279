"""Exported programs with operators expressed by others, and without writes to what they are given.

The graph is run on fakes and recorded anew, at several sizes where it has dynamic ones.
"""

import copy

import rushlight as torch
from rushlight import _decomp, fx
from rushlight._functorch.functionalization import FunctionalizeMode, _emit
from rushlight._higher_order_ops._regions import module_of
from rushlight._operators.traits import argument, unmarked_writes
from rushlight._ops import OpOverload
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx import traceback as fx_traceback
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from rushlight.utils import _pytree as pytree

from . import _trace
from ._data import DataTraces, sources_of
from ._dynamics import Dynamics
from ._grad_regions import enclose, is_marked, mark, spread_regions
from ._layers import restore_layers
from ._numeric import Computation
from ._settled import finish, forget_replaced
from ._sizes import SIZE
from .dynamic_shapes import UserError, ValueRanges
from .exported_program import ExportedProgram, InputGuard
from .graph_signature import InputKind, OutputKind

_MUTATIONS = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}
aten = torch.ops.aten  # type: ignore[attr-defined]


def decompose(program, table, functional=True):
    """A program with the operators of a table expressed by others.

    With ``functional`` what it writes to buffers and inputs becomes outputs, and layers that the table does
    not name stay one operator.
    """
    try:
        return _Decomposition(program, table, functional).run()
    except UserError:  # programs that PyTorch wrote do not tell which sizes hang together
        return _Decomposition(program, table, functional).run(related=True)


class _Decomposition:
    def __init__(self, program, table, functional):
        self.program, self.table, self.functional = program, table, functional
        self.specs = program.graph_signature.input_specs
        self.graph = fx.Graph()
        self.graph.output(self.graph.graph_copy(spread_regions(program.graph), {}))
        if functional:
            restore_layers(self.graph)
        self.module = module_of(self.graph)
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        self.names = [n.target for n in placeholders]
        self.values = [self._value(node, spec) for node, spec in zip(placeholders, self.specs)]
        self.users = [i for i, spec in enumerate(self.specs) if spec.kind == InputKind.USER_INPUT]

    def _value(self, node, spec):
        if spec.kind != InputKind.USER_INPUT:
            program = self.program
            return program.state_dict.get(spec.target, program.constants.get(spec.target))
        return node.meta["val"]

    def run(self, related=False):
        """With ``related`` sizes may turn out to follow others."""
        program = self.program
        leaves = [self.values[i] for i in self.users]
        symbols = {name: copy.copy(s) for name, s in program.symbols.items() if not s.data}
        self.places = places = [p for guard in program.guards for p in guard.places().values()]
        guards, ranges = program.guards, program.range_constraints
        if not places:
            symbols = {}
        trace = DataTraces(self.trace, symbols)
        base = trace.first({})
        symbols |= trace.symbols()
        if symbols:
            for symbol in symbols.values():
                symbol.required, symbol.given = True, not related
            examples = self._examples(leaves)
            computation = Computation(program.module(False), examples, program.call_spec.in_spec, places)
            dynamics = Dynamics(trace, symbols, places, computation)
            base, planned, symbols, places = dynamics.settle()
            finish(base, planned, dynamics)
            _trace.name_sizes(base, places)
            forget_replaced(base)
            if self.functional:
                base.graph.eliminate_dead_code()
            guards = _guards_for(program.guards, places)
            ranges = {name: ValueRanges(s.lower, s.upper) for name, s in symbols.items() if not s.data}
            ranges |= trace.ranges(base.numbers, symbols)
        made = copy.copy(program)
        made.graph_module = module_of(base.graph if self.functional else enclose(base.graph))
        made.graph_signature, made.constants = base.signature, base.constants
        made.guards, made.symbols, made.range_constraints = guards, symbols, ranges
        made.dialect = "ATEN" if self.functional else program.dialect
        return made

    def _examples(self, leaves):
        given = self.program.example_inputs
        return leaves if given is None else pytree.tree_leaves(given)

    # --- one trace ---

    def trace(self, sizes, numbers=None, whole_recurrence=False):
        tracer, fakes = _trace._ExportTracer(self.module), FakeTensorMode(allow_non_fake_inputs=True)
        tracer.record_stack_traces = False
        trace = _trace.Trace(tracer.graph, self._held(), dict(self.program.constants))
        inputs = self._inputs(fakes, sizes)
        for name, value in zip(self.names, inputs):
            _trace._placeholder(tracer, name, value, fakes)
        table = {op: f for op, f in self.table.items() if not whole_recurrence or not _is_recurrent(op)}
        mode = ProxyTorchDispatchMode(tracer, "fake", decomposition_table=table)
        mode.fakes = fakes
        trace.numbers = _trace._read_with(fakes, tracer, numbers)
        with torch.no_grad(), fakes, mode, fx_traceback.preserve_node_meta():
            written, results = self._run(inputs, table, tracer)
        fakes.data_numbers = None
        outputs = [*(value for _, value in written), *results]
        tracer.create_node("output", "output", (tuple(tracer.create_arg(v) for v in outputs),), {})
        _trace._lift_constants(trace, tracer, {}, self.names)
        mark(tracer.without_gradients)
        trace.signature = self._signature(trace, [i for i, _ in written])
        if self.functional:
            kept = sources_of(trace)
            trace.graph.eliminate_dead_code(lambda node: node in kept or node.is_impure())
        return trace

    def _held(self):
        held = []
        for spec, name, value in zip(self.specs, self.names, self.values):
            if spec.kind != InputKind.USER_INPUT:
                held.append(_Named(spec.kind, spec.target, value, spec.persistent))
                held[-1].given = name
        return held

    def _inputs(self, fakes, sizes):
        changed: dict = {}
        for p in [p for p in self.places if p.symbol in sizes]:  # others are those of the example
            changed.setdefault(self.users[p.leaf], {})[p.dim] = p.factor * sizes[p.symbol] + p.offset
        return [_fake(fakes, value, changed.get(i)) for i, value in enumerate(self.values)]

    def _run(self, inputs, table, tracer):
        """(what was written to: position and value, the results)."""
        if not self.functional:
            return [], _Interpreter(self.module, table, None, tracer).run(*inputs)
        functional = _Functional()
        with functional:
            functional.add_inputs(inputs)
            results = _Interpreter(self.module, table, functional, tracer).run(*inputs)
        tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        found = [(i, functional._value(member)) for i, member in zip(tensors, functional.inputs)]
        written = [(i, value) for i, value in found if value is not inputs[i]]
        return written, functional.values(results)

    def _signature(self, trace, written):
        made = _trace._signature(trace, self.names, [self.values[i] for i in self.users])
        made.output_specs = _trace.output_specs(trace.graph)
        for spec, i in zip(made.output_specs, written):
            kind, target = self.specs[i].kind, self.specs[i].target
            if kind not in _MUTATIONS:
                raise NotImplementedError(
                    f"the program writes to its own tensor '{target}': make it a buffer of the module"
                )
            spec.kind = _MUTATIONS[kind]
            spec.target = self.names[i] if target is None else target
        old = self.program.graph_signature.output_specs
        for spec, before in zip(made.output_specs[len(written) :], old):
            spec.kind, spec.target = before.kind, before.target
        return made


def _is_recurrent(operator):
    return operator._opname in _trace.RECURRENT


class _Named(_trace.Held):
    """A tensor that goes by a name that the program gave it."""

    given: str | None = None

    @property
    def name(self):
        return self.given or super().name


def _is_place(size):
    return size is not None and not isinstance(size, int)


def _guards_for(guards, places):
    where, made = {(place.leaf, place.dim): place for place in places}, []
    for i, guard in enumerate(guards):
        sizes = guard.sizes
        if sizes is not None:
            sizes = [where.get((i, d)) if _is_place(size) else size for d, size in enumerate(sizes)]
        made.append(InputGuard(guard.text, sizes, guard.value, guard.anything))
    return made


def _fake(fakes, value, changed):
    if not isinstance(value, torch.Tensor):
        return changed[None] if changed else value
    if not changed and not isinstance(value, FakeTensor):
        return fakes.from_tensor(value)
    shape = list(value.shape)
    for d, size in (changed or {}).items():
        shape[d] = size
    with fakes, torch.no_grad():
        if shape == list(value.shape):
            made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        else:
            made = torch.empty(shape, dtype=value.dtype, device=value.device)
    return made.requires_grad_(value.requires_grad)


class _Functional(FunctionalizeMode):
    """Operators that are written in others reach the recorder whole; it takes apart what the table names."""

    def _call(self, func, args, kwargs):
        return _emit(func, *args, **kwargs)

    def _statistics(self, func, unmarked, args, kwargs):
        """Running statistics are computed here, so that nothing is written to."""
        running = [argument(func, i, args, kwargs) for i in unmarked]
        values = self.values(args)
        result = self._call(func, values, self.values(kwargs))
        x, momentum = values[0], args[6]
        spread, mean = torch.var_mean(x, [d for d in range(x.dim()) if d != 1], correction=1)
        for outer, found in zip(running, (mean, spread)):
            before = self._value(self._member(outer))
            self._write(self._member(outer), found.to(before.dtype) * momentum + before * (1 - momentum))
        return result


class _Interpreter(fx.Interpreter):
    """Runs the program, with the operators that the table leaves whole as one step each."""

    def __init__(self, module, table, functional, tracer):
        super().__init__(module)
        self.table, self.functional, self.tracer = table, functional, tracer
        self.extra_traceback = False

    def run_node(self, n):
        self.tracer.apart = is_marked(n)
        return super().run_node(n)

    def call_function(self, target, args, kwargs):
        if getattr(target, "_opname", None) == "_assert_scalar":
            return torch._check(*args)
        if getattr(target, "_opname", None) == "_local_scalar_dense":
            return args[0].item()
        if target is SIZE:
            return args[0].size(args[1])
        if not isinstance(target, OpOverload) or target.traits.family != "composite":
            return target(*args, **kwargs)
        if self.functional is None or self._expands(target) or unmarked_writes(target, args, kwargs):
            return target(*args, **kwargs)
        if target._schema.is_mutable and self._expands(target.functional):
            return target(*args, **kwargs)
        functional = self.functional
        with _without(functional):
            return functional.__torch_dispatch__(target, (), args, kwargs)

    def _expands(self, target):
        return isinstance(self.table.get(target), _decomp.Expansion)


def _without(mode):
    from rushlight.utils._python_dispatch import _pop_mode_temporarily

    return _pop_mode_temporarily()


# --- running what was taken apart -------------------------------------------------------------------


def write_of(graph, kind, target, value):
    """A node that writes ``value``. A buffer takes its numbers alone: history would grow with each call."""
    held = target.meta.get("val")
    if kind == OutputKind.BUFFER_MUTATION:
        value = graph.call_function(aten.detach.default, (value,))
        value.meta["val"] = held
    written = graph.call_function(aten.copy_.default, (target, value))
    written.meta["val"] = held
    return written


def write_in_place(graph, specs, inputs):
    """Outputs that stand for writes become writes: ``inputs`` has the nodes to write to, by target."""
    output = graph.output_node()
    kept = []
    for value, spec in zip(output.args[0], specs, strict=True):
        target = inputs.get(spec.target) if spec.kind in _MUTATIONS.values() else None
        if target is None:
            kept.append(value)
            continue
        with graph.inserting_before(output):
            write_of(graph, spec.kind, target, value)
    output.args = (tuple(kept),)


def with_writes(program) -> ExportedProgram:
    """The program as one whose outputs are the user's alone."""
    if all(spec.kind not in _MUTATIONS.values() for spec in program.graph_signature.output_specs):
        return program
    made, graph = copy.copy(program), fx.Graph()
    graph.output(graph.graph_copy(program.graph, {}))
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    inputs = {}
    for node, spec in zip(placeholders, program.graph_signature.input_specs):
        inputs[node.name if spec.target is None else spec.target] = node
    write_in_place(graph, program.graph_signature.output_specs, inputs)
    made.graph_module = module_of(graph)
    made.graph_signature = copy.copy(program.graph_signature)
    specs = program.graph_signature.output_specs
    made.graph_signature.output_specs = [spec for spec in specs if spec.kind not in _MUTATIONS.values()]
    return made
