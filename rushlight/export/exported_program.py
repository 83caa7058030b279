"""`ExportedProgram`: a graph of operators with its tensors beside it."""

import copy
import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of
from rushlight.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY, _assign_attr
from rushlight.utils import _pytree as pytree

from ._grad_regions import each_region
from ._layers import restore_layers
from .dynamic_shapes import Place
from .graph_signature import (  # noqa: F401 (PyTorch has them here too)
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]

__capture__ = "traced"  # Note [Capture marks]


class CallSpec(NamedTuple):
    """How the user's inputs and outputs nest."""

    in_spec: Any
    out_spec: Any


@dataclass
class ModuleCallSignature:
    """How a module is called."""

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list | None = None


@dataclass
class ModuleCallEntry:
    """A module of the program; the whole has a signature."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclass
class InputGuard:
    """What a user's input must be: a tensor of these sizes, this value, or a number that may change."""

    text: str  # how messages name it
    sizes: list | None = None  # for each dimension a number, a Place, or None for any
    value: Any = None  # or the Place of a number
    anything: bool = False

    def places(self):
        """{dimension: Place} of the sizes that may change; a number itself has no dimension."""
        numbers = {None: self.value} if self.sizes is None else dict(enumerate(self.sizes))
        return {dim: place for dim, place in numbers.items() if isinstance(place, Place)}


class _Guards(torch.nn.Module):
    """Raises if inputs are not such as the program was exported for."""

    _is_impure = True

    def __init__(self, guards, symbols):
        super().__init__()
        self.guards, self.symbols = guards, symbols

    def forward(self, *inputs):
        known = {}
        for guard, value in zip(self.guards, inputs):
            if guard.anything:
                continue
            if guard.sizes is not None:
                self._check_tensor(guard, value, known)
            elif isinstance(guard.value, Place):
                if type(value) is not int:
                    raise AssertionError(f"Guard failed: {guard.text} is an int, got {value!r}")
                self._check_symbol(guard.value, value, guard.text, known)
            else:
                if type(value) is not type(guard.value) or value != guard.value:
                    raise AssertionError(f"Guard failed: {guard.text} == {guard.value!r}, got {value!r}")

    def _check_tensor(self, guard, value, known):
        if not isinstance(value, torch.Tensor):
            raise AssertionError(
                f"Guard failed: isinstance({guard.text}, Tensor), got {type(value).__name__}"
            )
        if value.dim() != len(guard.sizes):
            raise AssertionError(f"Guard failed: len({guard.text}.size()) == {len(guard.sizes)}")
        for d, (expected, size) in enumerate(zip(guard.sizes, value.shape)):
            text = f"{guard.text}.size()[{d}]"
            if expected is None:
                continue
            if isinstance(expected, int):
                if size != expected:
                    raise AssertionError(f"Guard failed: {text} == {expected}")
            else:
                self._check_symbol(expected, size, text, known)

    def _check_symbol(self, place, size, text, known):
        symbol = self.symbols[place.symbol]
        value, rest = size - place.offset, 0
        if place.factor != 1:
            value, rest = divmod(value, place.factor)
        if rest:
            raise AssertionError(f"Guard failed: ({text} - {place.offset}) % {place.factor} == 0")
        if value < symbol.lower:
            raise AssertionError(f"Guard failed: {text} >= {place.factor * symbol.lower + place.offset}")
        if value > symbol.upper:
            raise AssertionError(f"Guard failed: {text} <= {place.factor * symbol.upper + place.offset}")
        first, told, by = known.setdefault(place.symbol, (value, text, place))
        if first != value:
            alike = (by.factor, by.offset) == (place.factor, place.offset)
            wanted = told if alike else f"{place.factor * first + place.offset} since {told} is known"
            raise AssertionError(f"Guard failed: {text} == {wanted}, got {size} for {place.symbol} = {first}")


@dataclass(repr=False)
class ExportedProgram:
    """What `torch.export.export` returns; `module()` gives it as a module that can be called."""

    graph_module: fx.GraphModule
    graph_signature: Any
    state_dict: dict
    constants: dict
    call_spec: CallSpec
    argument_names: list
    guards: list
    symbols: dict
    range_constraints: dict
    example_inputs: Any
    module_call_graph: list = field(default_factory=list)
    module_aliases: dict = field(default_factory=dict)  # other names of modules -> their first
    module_order: list = field(default_factory=list)  # all names, as the module that was exported has them
    dialect: str = "TRAINING"

    @property
    def graph(self):
        """The graph, whose placeholders are parameters, buffers, constants and the user's inputs."""
        return self.graph_module.graph

    @property
    def tensor_constants(self):
        return self.constants

    def _held(self, kind):
        return [spec.target for spec in self.graph_signature.input_specs if spec.kind == kind]

    def named_parameters(self):
        """Pairs of qualified name and parameter."""
        yield from ((name, self.state_dict[name]) for name in self._held(InputKind.PARAMETER))

    def parameters(self):
        yield from (p for _, p in self.named_parameters())

    def named_buffers(self):
        """Pairs of qualified name and buffer."""
        for name in self._held(InputKind.BUFFER):
            yield name, self.state_dict[name] if name in self.state_dict else self.constants[name]

    def buffers(self):
        yield from (b for _, b in self.named_buffers())

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __setattr__(self, name, value):
        if name == "example_inputs" and value is not None and "dialect" in self.__dict__:
            nested = isinstance(value, tuple) and [type(v) for v in value] == [tuple, dict]
            if not nested:
                raise ValueError(
                    "Example inputs should be a tuple containing example arguments (as a tuple), and example "
                    "kwargs (as a dictionary)."
                )
            _CallCheck(self.argument_names, self.call_spec.in_spec)(None, *value)
        object.__setattr__(self, name, value)

    def _update(self, graph_module, graph_signature, *, state_dict=None, constants=None, verifiers=None):
        """The program with another graph."""
        return dataclasses.replace(
            self,
            graph_module=graph_module,
            graph_signature=graph_signature,
            state_dict=self.state_dict if state_dict is None else state_dict,
            constants=self.constants if constants is None else constants,
        )

    def _transform_do_not_use(self, *passes):
        """The program with the graph that passes, as `PassManager` takes them, make of a copy; packages call
        it by this name."""
        from rushlight.fx.passes.infra.pass_manager import PassManager

        graph_module, signature = copy.deepcopy(self.graph_module), copy.deepcopy(self.graph_signature)
        with graph_module._set_replace_hook(signature.get_replace_hook()):
            result = PassManager(list(passes))(graph_module)
        if not result.modified:
            return self
        made = result.graph_module
        if made is not graph_module:  # whose results no hook has seen
            results = pytree.tree_leaves(made.graph.output_node().args[0])
            for spec, node in zip(signature.output_specs, results, strict=True):
                if isinstance(node, fx.Node):
                    spec.arg.name = node.name
        return self._update(made, signature)

    def validate(self):
        """Raise if the graph is not well-formed, or not what the signature says."""
        from rushlight._export.verifier import verifier_for

        verifier_for(self.dialect).check(self)

    def __str__(self):
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {_indented(str(self.graph_signature))}\n"
            f"Range constraints: {self.range_constraints}\n"
        )

    def check_inputs(self, args, kwargs):
        """Raises if the program was not exported for inputs such as these."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.call_spec.in_spec:
            raise ValueError("the inputs are nested otherwise than those that the program was exported with")
        _Guards(self.guards, self.symbols)(*leaves)

    def module(self, check_guards=True):
        """The program as a module with parameters of its names; it takes the user's inputs."""
        return _unlift(self, check_guards)

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program with some operators expressed by others: ``{operator: function}``. Without a table,
        those of `default_decompositions` leave the core ATen operators. What the program writes to buffers
        and inputs becomes outputs, which `graph_signature` names."""
        from ._decompose import decompose
        from .decomp_utils import CustomDecompTable

        return decompose(self, CustomDecompTable() if decomp_table is None else decomp_table)


class _CallCheck:
    """Before a program's module runs: whether it is called as it was exported."""

    def __init__(self, names, in_spec):
        self.names, self.in_spec = names, in_spec

    def __call__(self, module, args, kwargs):
        free = self.names[len(args) :]
        if len(args) <= len(self.names) and sorted(free) == sorted(kwargs):
            if self._nested_alike((*args, *(kwargs[name] for name in free))):
                return
        elif len(args) == self.in_spec.child(0).num_children:
            expected = list(self.in_spec.child(1).context)
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected "
                f"{expected}"
            )
        raise ValueError(
            f"Trying to flatten user inputs with exported input tree spec: \n{self.in_spec}\nbut actually "
            f"got inputs with tree spec of: \n{pytree.tree_structure((args, kwargs))}.\nPlease check that "
            "the inputs have the same number and type of args and kwargs as the ones you used when tracing."
        )

    def _nested_alike(self, values):
        positional, named = self.in_spec.child(0), self.in_spec.child(1)
        expected = [*positional.children(), *named.children()]
        return [pytree.tree_structure(value) for value in values] == expected


def _indented(text):
    return "\n".join("    " + line if line.strip() else line for line in text.split("\n")).strip(" ")


def _tensor_of(program, spec):
    return program.state_dict.get(spec.target, program.constants.get(spec.target))


def _unlift(program, check_guards):
    from ._decompose import with_writes

    program = with_writes(program)
    root, graph, env = torch.nn.Module(), fx.Graph(), {}
    specs = program.graph_signature.input_specs
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    users = [n for n, s in zip(placeholders, specs) if s.kind == InputKind.USER_INPUT]
    for node in users:
        env[node] = graph.node_copy(node)
    for node, spec in zip(placeholders, specs):
        if spec.kind != InputKind.USER_INPUT:
            _hold(root, spec, _tensor_of(program, spec))
            env[node] = graph.create_node("get_attr", spec.target, name=spec.target.replace(".", "_"))
            env[node].meta = dict(node.meta)
    if check_guards:
        root._guards_fn = _Guards(program.guards, program.symbols)
        graph.call_module("_guards_fn", tuple(env[n] for n in users))
    graph.output(graph.graph_copy(program.graph, env))
    if program.dialect != "ATEN":
        restore_layers(graph)
        each_region(graph, restore_layers)
    info = _PyTreeInfo(program.argument_names, program.call_spec.in_spec, program.call_spec.out_spec)
    graph.set_codegen(_PyTreeCodeGen(info))
    module = module_of(graph, root)
    check = _CallCheck(program.argument_names, program.call_spec.in_spec)
    module.register_forward_pre_hook(check, with_kwargs=True)
    for spec in specs:
        if spec.kind == InputKind.CONSTANT_TENSOR:  # an ordinary attribute, as it was
            path, _, name = spec.target.rpartition(".")
            owner = module.get_submodule(path)
            registered = owner._buffers if name in owner._buffers else owner._parameters
            vars(owner)[name] = registered.pop(name)
    modes = {name: functools.partial(_refuse_mode, name) for name in ("train", "eval")}
    module.meta.setdefault(_USER_PRESERVED_ATTRIBUTES_KEY, {}).update(modes)  # copies refuse, too
    vars(module).update(modes)
    return module


def _refuse_mode(name, mode=True):
    """The graph has dropout and normalisation in one mode: a flag would change nothing that it computes."""
    raise NotImplementedError(
        f"Calling {name}() is not supported yet. The program keeps the mode that its module had at export."
    )


def _hold(root, spec, tensor):
    _assign_attr(tensor, root, spec.target)
    if spec.kind == InputKind.BUFFER and not spec.persistent:
        path, _, name = spec.target.rpartition(".")
        root.get_submodule(path)._non_persistent_buffers_set.add(name)
