"""A program and its backward pass as one graph without mutation: what `aot_function` gives to compilers.

The program runs on fakes twice: once to learn what it returns and writes to, then to be recorded. What shares
an input's memory is no result of the graph, whoever runs it makes it of the input (`_joint_run`).
"""

from dataclasses import dataclass, field

import rushlight as torch
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils import _pytree as pytree

from .functionalization import FunctionalizeMode

aten = torch.ops.aten  # type: ignore[attr-defined]


class AsWritten(Exception):
    """The program cannot be a graph: it does what no graph of its inputs can say."""


class SharedInputs(AsWritten):
    """It writes to inputs that share memory, or changes the shape of one that it got twice."""

    def __init__(self, leaves, written):
        super().__init__(refusal_of_shared(leaves))
        self.written = written  # positions of leaves


MOVED = (
    "Found an input that received a metadata mutation, through e.g. a call to `.resize_()` or "
    "`.transpose_()`, which no exported graph can do"
)


def refusal_of_shared(leaves):
    """Why no graph can write to one of these inputs, some of which share memory."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    kind = "duplicated" if len({id(t) for t in tensors}) < len(tensors) else "aliased"
    return (
        f"Encountered {kind} inputs that are mutated in the graph: what is written to must be no other input"
    )


@dataclass
class Output:
    """One leaf of what a program returned."""

    constant: object = None  # not a tensor
    position: int | None = None  # among the results of the graph: the tensor, or one whose memory it shares
    source: int | None = None  # the input whose memory it shares; a result of the graph shows it, too
    place: tuple | None = None  # sizes, strides and offset there; None: it is that tensor
    steps: tuple | None = None  # the operators that make it of that tensor, where they are known
    differentiable: bool = False


@dataclass
class Program:
    """What is known of a function of so many leaves before it is recorded."""

    leaves: list  # arguments, fake where they are tensors
    needs: list  # positions of leaves that gradients are wanted for
    strides: list  # of leaves that are tensors
    outputs: list = field(default_factory=list)
    spec: object = None
    written: list = field(default_factory=list)  # positions of leaves
    places: dict = field(default_factory=dict)  # position of a leaf -> its new sizes, strides and offset
    results: list = field(default_factory=list)  # fakes: new values of what is written to, then results
    differentiable: list = field(default_factory=list)  # positions of results that have gradients
    hidden: list = field(default_factory=list)  # positions of leaves written to behind autograd's back
    shown: list = field(default_factory=list)  # those of `written` that only have another shape afterwards
    aliases: list = field(default_factory=list)  # positions of results that whoever runs the graph makes
    in_graph: list = field(default_factory=list)  # positions in `written` of what the graph itself writes to
    written_late: list = field(default_factory=list)  # positions of leaves that the backward pass writes to

    @property
    def tangents(self):
        return [torch.empty_like(self.results[i]).detach() for i in self.differentiable]


class _Seen(torch.autograd.Function):
    """A view of a leaf whose shape may be changed in place."""

    @staticmethod
    def forward(ctx, leaf):
        return leaf.view(leaf.shape).detach()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Run:
    """One run of the program under functionalization, on tensors of its own where gradients are wanted."""

    def __init__(self, function, leaves, needs, clones, pre_dispatch=False, views=()):
        self.mode = FunctionalizeMode(pre_dispatch=pre_dispatch)
        self.roots = {}  # position of a leaf -> where autograd's graph ends
        self.results = {}  # position -> tensor
        with self.mode:
            self.mine = list(leaves)
            for i in needs:
                self.roots[i] = leaves[i].detach().requires_grad_()
                self.mine[i] = self.roots[i]
            for i in needs if clones is None else clones:
                self.mine[i] = self.mine[i].clone()
            for i in views:
                self.mine[i] = _Seen.apply(self.mine[i])
            tensors = {i: t for i, t in enumerate(self.mine) if isinstance(t, torch.Tensor)}
            self.mode.add_inputs(self.mine)
            self.before = {i: self.mode.values(t) for i, t in tensors.items()}
            self.places = {i: _place(t) for i, t in tensors.items()}
            self.memory = {i: t.untyped_storage()._cdata for i, t in tensors.items()}
            self.history = {i: t.grad_fn for i, t in tensors.items()}
            self.returned, self.spec = pytree.tree_flatten(function(*self.mine))

    def value(self, tensor):
        return self.mode.values(tensor)

    def new_value(self, program, i):
        """What an argument that is written to holds afterwards, as a result of the graph."""
        return self.mine[i].detach() if i in program.hidden else self.mine[i]

    def gradients(self, program, results, tangents):
        """One for each leaf, None where it is not wanted; and the new values of leaves that the backward pass
        writes to."""
        tensors = [i for i, t in enumerate(self.mine) if isinstance(t, torch.Tensor)]
        before = {i: (self.value(self.mine[i]), _place(self.mine[i])) for i in tensors}
        with self.mode:
            wanted = [results[i] for i in program.differentiable]
            roots = [self.roots[i] for i in program.needs]
            found = torch.autograd.grad(wanted, roots, tangents, allow_unused=True)
        if any(_place(self.mine[i]) != before[i][1] for i in tensors):
            raise AssertionError(
                "Found an input that had its metadata mutated in the backward, which is banned"
            )
        program.written_late = [i for i in tensors if self.value(self.mine[i]) is not before[i][0]]
        of = dict(zip(program.needs, found))
        gradients = [of.get(i) for i in range(len(self.mine))]
        return self.value([*gradients, *(self.mine[i] for i in program.written_late)])

    def is_where_it_was(self, i):
        """Whether the tensor of an argument has the shape and the memory that it came with."""
        mine = self.mine[i]
        return _place(mine) == self.places[i] and mine.untyped_storage()._cdata == self.memory[i]


def fake_leaves(leaves):
    """The leaves with fakes in place of tensors; those that are fake already keep their mode."""
    known = next((leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor)), None)
    fakes = known or FakeTensorMode(allow_non_fake_inputs=True)
    return fakes, [
        fakes.from_tensor(leaf)
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor)
        else leaf
        for leaf in leaves
    ]


def analyse(function, leaves):
    """What the function does with these leaves; raises AsWritten where no graph can do it."""
    recorded = torch.is_grad_enabled()
    needs = [i for i, t in enumerate(leaves) if recorded and isinstance(t, torch.Tensor) and t.requires_grad]
    fakes, given = fake_leaves(apart(leaves))
    strides = [t.stride() if isinstance(t, torch.Tensor) else None for t in given]
    program = Program(given, needs, strides)
    with fakes:
        run = Run(function, given, needs, None)
    tensors = [i for i, t in enumerate(run.mine) if isinstance(t, torch.Tensor)]
    if any(run.mine[i].untyped_storage()._cdata != run.memory[i] for i in tensors):
        raise AsWritten(MOVED)  # `set_` gave an input other memory
    program.written = [i for i, m in zip(tensors, run.mode.inputs) if run.value(m.outer) is not run.before[i]]
    _check_shared(program, run, leaves)
    for i in program.written:
        if not run.mode.is_written(run.mine[i]):
            program.shown.append(i)
        seen = i not in program.shown and run.mine[i].grad_fn is not run.history[i]
        if seen and i in needs and leaves[i].is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if not seen and i not in program.shown:
            program.hidden.append(i)
        if _place(run.mine[i]) != run.places[i]:
            if run.places[i][1] != program.strides[i]:
                raise AsWritten(MOVED)
            sizes, strides, offset = _place(run.mine[i])
            program.places[i] = sizes, strides, offset - run.places[i][2]
        _add_result(program, run.new_value(program, i), alias=i in program.shown)
    program.spec = run.spec
    program.outputs = _Outputs(program, run, tensors).found
    return program


def _check_shared(program, run, leaves):
    if all(a is b for a, b in zip(leaves, apart(leaves))):
        return
    data = [i for i in program.written if run.mode.is_written(run.mine[i])]
    twice = [i for i in program.written if sum(leaf is leaves[i] for leaf in leaves) > 1]
    if data or twice:  # what is done to one input shows in another
        raise SharedInputs(leaves, data)


def apart(leaves):
    """The leaves to trace with: those that share another's memory are replaced by ones of their own."""
    seen: set = set()

    def own(leaf):
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return leaf
        memory = leaf.untyped_storage()._cdata
        if memory not in seen:
            seen.add(memory)
            return leaf
        with torch.no_grad():
            made = leaf.new_empty_strided(leaf.shape, leaf.stride())
        return made.requires_grad_(leaf.requires_grad)

    return [own(leaf) for leaf in leaves]


def _place(tensor, whole=None):
    """Sizes, strides and offset, in another tensor's memory where that is given."""
    offset = 0 if whole is None else whole.storage_offset()
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset() - offset


def _add_result(program, tensor, alias=False):
    position = len(program.results)
    if alias:
        program.aliases.append(position)
    elif tensor.requires_grad:
        program.differentiable.append(position)
    program.results.append(tensor.detach())
    return position


class _Outputs:
    """What each leaf of the returned value is: an input, a result of the graph, or a view of one.

    Every tensor is a result of the graph, in the order of the program; bases of views come last."""

    def __init__(self, program, run, inputs):
        self.program, self.run = program, run
        self.owners = {run.mine[i].untyped_storage()._cdata: i for i in reversed(inputs)}
        returned = [v for v in run.returned if isinstance(v, torch.Tensor)]
        memory = [v.untyped_storage()._cdata for v in returned]
        several = [v.requires_grad and run.mode.is_one_of_several(v) for v in returned]
        plain = [m for m, one_of_several in zip(memory, several) if not one_of_several]
        # Autograd lets nobody write to one view of several: where but one result is another, all stand alone.
        self.apart = (set(memory) - set(plain)) | {
            m for m in set(plain) - self.owners.keys() if plain.count(m) == 1 < memory.count(m)
        }
        memory = [m for m in memory if m not in self.apart]
        shared = {m for m in memory if memory.count(m) > 1} - self.owners.keys()
        self.bases = self._bases(shared)  # memory that several results share -> a tensor that is all of it
        self.positions: dict = {}  # id of a base -> where it is returned
        self.found = [self._output(value) for value in run.returned]
        for value, output in zip(run.returned, self.found):
            base = self._base(value)
            if base is not None:
                output.position = self._position(base)

    def _bases(self, shared):
        bases: dict = {}
        for value in self.run.returned:
            if isinstance(value, torch.Tensor) and (m := value.untyped_storage()._cdata) in shared:
                bases.setdefault(m, value if value._base is None else value._base)
        return bases

    def _base(self, value):
        """What a returned tensor is made of, if it is a part of a result."""
        if not isinstance(value, torch.Tensor):
            return None
        base = self.bases.get(value.untyped_storage()._cdata)
        return None if base is None or base.dtype != value.dtype else base

    def _has_its_own_gradient(self, value, source):
        """Whether an `autograd.Function` gave a view of an input, whose gradient only it knows."""
        end, seen, pending = self.run.mine[source].grad_fn, set(), [value.grad_fn]
        while pending:
            step = pending.pop()
            if step is None or step is end or step in seen:
                continue
            if isinstance(step, torch.autograd.function.FunctionCtx):
                return True
            seen.add(step)
            pending += [next_step for next_step, _ in step.next_functions]
        return False

    def _position(self, base):
        if id(base) not in self.positions:
            self.positions[id(base)] = self._add(base)
        return self.positions[id(base)]

    def _output(self, value):
        if not isinstance(value, torch.Tensor):
            return Output(constant=value)
        memory = value.untyped_storage()._cdata
        source = self.owners.get(memory)
        if memory in self.apart or (source is not None and self._has_its_own_gradient(value, source)):
            return Output(position=self._add(value), differentiable=value.requires_grad)
        if source is not None and value.dtype == self.run.mine[source].dtype:
            whole = self.run.mine[source]
            if self.run.places[source][1] != self.program.strides[source]:
                raise AsWritten(MOVED)  # the copy that stands for it lies otherwise in memory
            self._add(value, alias=True)
            return self._view(value, whole, source=source)
        base = self._base(value)
        if base is None:
            return Output(position=self._add(value), differentiable=value.requires_grad)
        if value is base:
            self._position(base)
        else:
            self._add(value, alias=True)
        return self._view(value, base)

    def _view(self, value, whole, source=None):
        made = Output(source=source, differentiable=value.requires_grad)
        if value is not whole:
            made.place = _place(value, whole)
            made.steps = self.run.mode.steps_between(whole, value)
        return made

    def _add(self, tensor, alias=False):
        position = _add_result(self.program, tensor, alias)
        self.run.results[position] = tensor
        return position


def _results(program, run):
    """The tensors that are results of the graph, in this run."""
    again = Program(program.leaves, program.needs, program.strides)
    with run.mode:
        written = [run.new_value(program, i) for i in program.written]
    for tensor in written:
        _add_result(again, tensor)
    tensors = [i for i, t in enumerate(run.mine) if isinstance(t, torch.Tensor)]
    _Outputs(again, run, tensors)
    return written + [run.results[i] for i in range(len(written), len(program.results))]


def trace(function, program, leaves, decompositions=None, dynamic=False, joint=True):
    """The module of the graph: of results alone, or of results and then of gradients for `program.needs`."""
    # Sizes are numbers, which is what a compiler for the sizes of a call wants.
    mode = "symbolic" if dynamic else "fake"
    table = dict(decompositions or {})

    def running(primals):
        views = [i for i in program.shown if i in program.needs]
        clones = set(program.written) - {*program.hidden, *program.shown}
        return Run(function, primals, program.needs, clones, views=views)

    def record_joint(primals, tangents):
        run = running(primals)
        with run.mode:
            results = _results(program, run)
        made = run.value(results)
        return made, run.gradients(program, results, tangents)

    def record_forward(*primals):
        with torch.set_grad_enabled(bool(program.needs)):  # the function may ask for gradients itself
            run = running(primals)
            return run.value(_results(program, run))

    plain = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in apart(leaves)]
    if joint:
        module = make_fx(record_joint, table, mode, _allow_non_fake_inputs=True)(plain, program.tangents)
    else:
        with torch.no_grad():
            module = make_fx(record_forward, table, mode, _allow_non_fake_inputs=True)(*plain)
    tidy(module)
    return module


def write_in_graph(program, module):
    """Lets a graph write to the inputs that autograd does not see written to."""
    graph = module.graph
    inputs = [n for n in graph.nodes if n.op == "placeholder"][: len(program.leaves)]
    output = graph.output_node()
    results = list(output.args[0])
    count = len(program.results)
    kept = {_memory(n) for n in results[count:]}
    for k, i in enumerate(program.written):
        target, value = inputs[i], results[k]
        if i not in program.hidden or i in program.places or value is target or _memory(target) in kept:
            continue
        with graph.inserting_before(output):
            made = graph.create_node("call_function", aten.copy_.default, (target, value), name="copy_")
        made.meta["val"] = target.meta["val"]
        program.in_graph.append(k)
        for j in _returned_as(program, i):
            results[j] = made
    output.args = (tuple(r for k, r in enumerate(results) if k not in program.in_graph),)
    module.recompile()


def _memory(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _returned_as(program, i):
    """The positions of results that are an input itself."""
    tensors = [o for o in program.outputs if o.source is not None or o.position is not None]
    start = len(program.written)
    return [start + k for k, o in enumerate(tensors) if o.source == i and o.place is None]


def tidy(module, differentiated=True):
    """Makes a trace's output flat, and drops what does not count; ``differentiated``: all gradients that are
    wanted are in it."""
    _flatten_output(module.graph)
    if differentiated:
        _without_detach(module.graph)
    module.graph.eliminate_dead_code()
    module.recompile()


def _flatten_output(graph):
    output = graph.output_node()
    output.args = (tuple(pytree.tree_leaves(output.args[0], is_leaf=lambda v: v is None)),)
    graph.set_codegen(torch.fx.graph.CodeGen())


def _without_detach(graph):
    """Autograd's `detach` says nothing in a graph that holds all gradients, and no writes."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
