"""Running a module on fake tensors, and keeping the operators with all tensors as inputs of the graph."""

import contextlib
import re
from dataclasses import dataclass, field

import rushlight as torch
from rushlight import compiler
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight.fx import Graph
from rushlight.fx._patching import _Patcher
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer, _describe
from rushlight.nn.utils.stateless import _reparametrize_module
from rushlight.overrides import TorchFunctionMode
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import _pop_mode_temporarily

from ._grad_regions import mark
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)


@dataclass
class Held:
    """A tensor that the module holds: what it is there, and what it is called."""

    kind: InputKind
    target: str
    tensor: torch.Tensor
    persistent: bool | None = None
    suffix: str = ""

    @property
    def name(self):
        letter = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b"}.get(self.kind, "c")
        return f"{letter}_{re.sub('[^0-9a-zA-Z_]', '_', self.target)}{self.suffix}"

    def avoid(self, taken):
        """Take a name that no input has: those of the user's come first."""
        count = 0
        while self.name in taken:
            count += 1
            self.suffix = f"_{count}"
        return self


def held_tensors(module):
    """Parameters, then buffers; a tensor with several names goes by its first."""
    found = [Held(InputKind.PARAMETER, name, p) for name, p in module.named_parameters()]
    owners = dict(module.named_modules(remove_duplicate=False))
    for name, buffer in module.named_buffers():
        path, _, own = name.rpartition(".")
        if own in getattr(owners[path], "_numbers", ()):
            continue  # the graph holds numbers
        persistent = own not in owners[path]._non_persistent_buffers_set
        found.append(Held(InputKind.BUFFER, name, buffer, persistent))
    return found


def plain_state(module):
    """The state dict by the modules' own names, which hooks of it may change: parameters, then buffers."""
    state: dict = {}
    for path, child in module.named_modules(remove_duplicate=False):
        child._save_to_state_dict(state, f"{path}." if path else "", keep_vars=True)
    parameters = {name: value for name, value in state.items() if isinstance(value, torch.nn.Parameter)}
    return parameters | state


def _plain_attributes(module):
    """id -> qualified name, of tensors that modules keep as ordinary attributes."""
    return {
        id(value): f"{path}.{name}" if path else name
        for path, child in module.named_modules()
        for name, value in vars(child).items()
        if isinstance(value, torch.Tensor)
    }


@dataclass
class Trace:
    """A graph whose inputs are all tensors it needs, and what they are."""

    graph: Graph
    held: list
    constants: dict = field(default_factory=dict)  # qualified name -> tensor
    out_spec: object = None
    signature: ExportGraphSignature | None = None
    calls: dict = field(default_factory=dict)  # name of a call -> (inputs, in_spec, outputs, out_spec)
    numbers: object = None  # that the program read from its data
    replaced: list = field(default_factory=list)  # inputs for constants that nodes make


class _ExportTracer(PythonKeyTracer):
    """Also keeps where in the user's program, and in which module, each node was made."""

    record_stack_traces = whole_scans = True

    def __init__(self, module, preserved=()):
        super().__init__()
        self.preserved, self.calls, self.counts = frozenset(preserved), {}, {}
        self.function, self.uses = None, {}  # the torch function under way, and how often each was called
        self.grad_enabled = torch.is_grad_enabled()
        self.without_gradients = set()  # nodes that are made where gradients are switched off
        self.root, self.graph = torch.nn.Module(), Graph(tracer_cls=PythonKeyTracer)
        self.tensor_attrs = {}
        self.paths = {child: path for path, child in module.named_modules()}

    def call_module(self, m, forward, args, kwargs):
        path = self.paths.get(m)
        if path is None:
            return forward(*args, **kwargs)
        number = self.counts[path] = self.counts.get(path, -1) + 1
        call = f"{path}@{number}" if number else path
        key = str(len(self.module_stack)) + call
        inputs = self._flat((args, kwargs)) if path in self.preserved else None
        self.module_stack[key] = path, f"{type(m).__module__}.{type(m).__qualname__}"
        try:
            result = forward(*args, **kwargs)
        finally:
            self.module_stack.pop(key)
        if inputs is not None:
            self.calls[call] = (*inputs, *self._flat(result))
        return result

    @contextlib.contextmanager
    def calling_functions(self):
        before, off = self.apart, self.grad_enabled and not torch.is_grad_enabled()
        self.apart = before or off
        try:
            yield torch.is_grad_enabled()
        finally:
            self.apart = before

    def _describe(self, node, kind):
        super()._describe(node, kind)
        if self.apart and kind == "call_function":
            self.without_gradients.add(node)
        if kind == "call_function" and self.function is not None:
            f, count = self.function, self.uses[self.function]
            node.meta["torch_fn"] = f"{f.__name__}_{count}", f"{type(f).__name__}.{f.__name__}"

    def _flat(self, value):
        """The leaves as nodes, and how they nest."""
        leaves, spec = pytree.tree_flatten(value)
        return [self.create_arg(v) if isinstance(v, torch.Tensor) else v for v in leaves], spec


class _FunctionsSeen(TorchFunctionMode):
    """Tells the tracer which function of the library the program called."""

    def __init__(self, tracer):
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        tracer = self.tracer
        before, tracer.apart = tracer.apart, tracer.grad_enabled and not torch.is_grad_enabled()
        tracer.uses[func] = tracer.uses.get(func, 0) + 1
        outer, tracer.function = tracer.function, func
        if func is torch.tensor and isinstance(args[0], torch.SymInt):  # a constant would hold the sample
            func, args = torch.full, ((), int(args[0]))
            kwargs = {"dtype": torch.int64, **(kwargs or {})}
        try:
            return func(*args, **(kwargs or {}))
        finally:
            tracer.function, tracer.apart = outer, before


def input_names(names, args, kwargs):
    """A name for each leaf of the inputs: `x`, `x_0`, `k_q`."""
    result = []
    for name, value in zip(names, [*args, *(kwargs or {}).values()]):
        for path, _ in pytree.tree_leaves_with_path(value):
            parts = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", "")))) for key in path]
            plain = own = "_".join([name, *parts])
            count = 0
            while own in result:
                count += 1
                own = f"{plain}_{count}"
            result.append(own)
    return result


_whole_attention = False


@contextlib.contextmanager
def keeping_attention():
    """Traces hold attention as one operator, where the kernel of the CPU serves it."""
    global _whole_attention
    before, _whole_attention = _whole_attention, True
    try:
        yield
    finally:
        _whole_attention = before


def _attention(composite):
    def attention(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        given = query, key, value
        heads = {t.shape[:-2] for t in given}
        fits = query.dim() == 4 and query.is_floating_point() and all(t.numel() for t in given)
        if not fits or len(heads) > 1 or dropout_p or (is_causal and attn_mask is not None):
            last = {"scale": scale, "enable_gqa": enable_gqa}
            return composite(query, key, value, attn_mask, dropout_p, is_causal, **last)
        whole = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return whole(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]

    return attention


RECURRENT = "gru", "rnn_tanh", "rnn_relu"  # layers that take all steps, whose functions take padded sequences


def _recurrence(mode, overload, composite):
    def recurrence(*args):
        if isinstance(args[1], torch.Tensor) and len(args) == 9 and not isinstance(args[2], torch.Tensor):
            with _pop_mode_temporarily():
                return mode._record(overload, args, {})
        return composite(*args)

    return recurrence


def fake_inputs(fakes, leaves, places, sizes):
    """Fakes of the inputs, some at other sizes."""
    changed = {}
    for place in places:
        changed.setdefault(place.leaf, {})[place.dim] = place.factor * sizes[place.symbol] + place.offset
    seen, made = set(), []
    for i, leaf in enumerate(leaves):
        if (
            isinstance(leaf, torch.Tensor) and id(leaf) in seen
        ):  # one example for two inputs, which differ later
            leaf = leaf.detach().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        made.append(_fake(fakes, leaf, changed.get(i)))
    return made


def _fake_mode(values):
    """The mode that made the fakes among the values, or a new one."""
    known = next((v.fake_mode for v in values if isinstance(v, FakeTensor)), None)
    return FakeTensorMode(allow_non_fake_inputs=True) if known is None else known


def _fake(fakes, leaf, changed):
    if not isinstance(leaf, torch.Tensor):
        return changed[None] if changed else leaf
    if not changed or all(leaf.shape[d] == size for d, size in changed.items()):
        return fakes.from_tensor(leaf)
    shape = [changed.get(d, size) for d, size in enumerate(leaf.shape)]
    with fakes, torch.no_grad():
        made = torch.empty(shape, dtype=leaf.dtype, device=leaf.device)
    return made.requires_grad_(leaf.requires_grad)


def trace_module(
    module, leaves, in_spec, names, places=(), sizes=None, whole_recurrence=False, preserved=(), numbers=None
):
    """The graph of ``module(*args, **kwargs)`` at the given sizes.

    With ``whole_recurrence`` recurrent layers over padded sequences are one step, not a step for each time.
    Of the modules in ``preserved`` it is kept how they were called.
    """
    tracer = _ExportTracer(module, preserved)
    trace = Trace(tracer.graph, held_tensors(module))
    fakes = _fake_mode([*leaves, *(held.tensor for held in trace.held)])
    plain = _plain_attributes(module)
    swapped = {}
    for held in trace.held:
        held.avoid(names)
        swapped[held.target] = fakes.from_tensor(held.tensor)
        _placeholder(tracer, held.name, swapped[held.target], fakes)
    inputs = fake_inputs(fakes, leaves, places, sizes or {})
    for name, value in zip(names, inputs):
        _placeholder(tracer, name, value, fakes)
    args, kwargs = pytree.tree_unflatten(inputs, in_spec)
    mode = ProxyTorchDispatchMode(tracer, "fake")
    mode.fakes = fakes
    trace.numbers = _read_with(fakes, tracer, numbers)
    tied = _reparametrize_module(module, swapped, tie_weights=True)
    with _Patcher() as patcher, compiler._exporting_program(), tied, fakes, mode, _FunctionsSeen(tracer):
        _patch_calls(patcher, tracer)
        if whole_recurrence:
            for name in RECURRENT:
                overload = getattr(torch.ops.aten, name).input
                patcher.patch_method(torch, name, _recurrence(mode, overload, getattr(torch, name)))
        result = module(*args, **kwargs)
    fakes.data_numbers = None
    outputs, trace.out_spec = pytree.tree_flatten(result)
    tracer.create_node("output", "output", (tuple(tracer.create_arg(v) for v in outputs),), {})
    _lift_constants(trace, tracer, plain, names)
    mark(tracer.without_gradients)
    trace.signature = _signature(trace, names, leaves)
    return trace


def _read_with(fakes, tracer, numbers):
    """Let fakes give samples of the numbers that a program reads from its data."""
    if numbers is not None:
        numbers.tracer = tracer
        fakes.data_numbers = numbers
    return numbers


def _placeholder(tracer, name, value, fakes):
    proxy = tracer.create_proxy("placeholder", name, (), {})
    if isinstance(value, torch.Tensor):
        tracer.track(value, proxy)
    _describe(proxy.node, value, fakes)


def _patch_calls(patcher, tracer):
    module_call = torch.nn.Module.__call__

    def call(mod, *args, **kwargs):
        return tracer.call_module(mod, lambda *a, **k: module_call(mod, *a, **k), args, kwargs)

    patcher.patch_method(torch.nn.Module, "__call__", call, deduplicate=False)
    if _whole_attention:
        functional = torch.nn.functional
        composite = functional.scaled_dot_product_attention
        patcher.patch_method(functional, "scaled_dot_product_attention", _attention(composite))


def _lift_constants(trace, tracer, plain, names):
    """Tensors that the program made or held by other means become inputs, after the buffers."""
    graph, made = trace.graph, {}
    first_input = next((n for n in graph.nodes if n.op != "placeholder"), None)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    if len(placeholders) > len(trace.held):
        first_input = placeholders[len(trace.held)]
    for node in list(graph.nodes):
        if node.op != "get_attr" or "region" in node.meta:
            continue
        if node.target not in made:
            made[node.target] = _lift(trace, getattr(tracer.root, node.target), plain, first_input)
        node.replace_all_uses_with(made[node.target])
        graph.erase_node(node)
    for call, (inputs, in_spec, outputs, out_spec) in tracer.calls.items():
        trace.calls[call] = _arguments(inputs, made), in_spec, _arguments(outputs, made), out_spec


def _arguments(values, lifted):
    nodes = [
        lifted.get(v.target, v) if isinstance(v, torch.fx.Node) and v.op == "get_attr" else v for v in values
    ]
    return [
        TensorArgument(v.name) if isinstance(v, torch.fx.Node) else ConstantArgument("", v) for v in nodes
    ]


def _lift(trace, tensor, plain, before):
    literals = sum(name.startswith("lifted_tensor_") for name in trace.constants)
    target = plain.get(id(tensor), f"lifted_tensor_{literals}")
    if tensor.requires_grad and not isinstance(tensor, torch.nn.Parameter):
        tensor = tensor.detach()  # a constant of the graph
    trace.constants[target] = tensor
    held = Held(InputKind.CONSTANT_TENSOR, target, tensor).avoid({n.name for n in trace.graph.nodes})
    trace.held.append(held)
    with trace.graph.inserting_before(before):
        node = trace.graph.placeholder(held.name)
    _describe(node, tensor, FakeTensorMode(allow_non_fake_inputs=True))
    if target not in plain.values() and _is_of_numbers(tensor):
        node.meta["constant"] = tensor
    return node


def _is_of_numbers(tensor):
    """Whether a program can have made a tensor of numbers."""
    if tensor is None:
        return False
    known = not (isinstance(tensor, FakeTensor) or tensor.is_meta) and tensor.layout is torch.strided
    return known and type(tensor) is torch.Tensor and not tensor.is_quantized


def _signature(trace, names, leaves):
    nodes = [n for n in trace.graph.nodes if n.op == "placeholder"]
    specs = []
    for node, held in zip(nodes, trace.held):
        specs.append(InputSpec(held.kind, TensorArgument(node.name), held.target, held.persistent))
    for node, leaf in zip(nodes[len(trace.held) :], leaves):
        argument = (
            TensorArgument(node.name) if isinstance(leaf, torch.Tensor) else ConstantArgument(node.name, leaf)
        )
        specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
    return ExportGraphSignature(specs, output_specs(trace.graph))


def output_specs(graph):
    """What the graph returns."""
    return [OutputSpec(OutputKind.USER_OUTPUT, _argument(v), None) for v in graph.output_node().args[0]]


def _argument(value):
    if not isinstance(value, torch.fx.Node):
        return ConstantArgument("", value)
    known = value.meta.get("val")
    is_number = isinstance(known, int) and not isinstance(known, bool)
    return (SymIntArgument if is_number else TensorArgument)(value.name)


def name_sizes(trace, places):
    """Let the signature name the nodes of inputs that are numbers, and of returned sizes."""
    inputs = [spec for spec in trace.signature.input_specs if spec.kind == InputKind.USER_INPUT]
    for place in places:
        if place.dim is None:
            inputs[place.leaf].arg = SymIntArgument(inputs[place.leaf].arg.name)
    for spec, value in zip(trace.signature.output_specs, trace.graph.output_node().args[0]):
        if isinstance(spec.arg, ConstantArgument) and isinstance(value, torch.fx.Node):
            spec.arg = _argument(value)
