"""`unflatten`: an exported program as modules again, each with the part of the graph that ran in it."""

from __future__ import annotations

import abc
import enum

import rushlight as torch
from rushlight import fx
from rushlight.fx import _symbolic_trace
from rushlight.utils import _pytree as pytree

from ._unflatten_calls import build
from .exported_program import _Guards, _hold, _tensor_of
from .graph_signature import InputKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "FlatArgsAdapter",
    "InterpreterModule",
    "InterpreterModuleDispatcher",
    "UnflattenedModule",
    "unflatten",
]


class _AttrKind(enum.Enum):
    """What is put into a module."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    MODULE = "module"


def _assign_attr(from_obj, to_module, target, attr_kind, persistent=True):
    """Put a value at a path of a module; modules on the way are made."""
    *parents, name = target.split(".")
    for parent in parents:
        if not hasattr(to_module, parent):
            setattr(to_module, parent, torch.nn.Module())
        to_module = getattr(to_module, parent)
    if attr_kind is _AttrKind.PARAMETER:
        to_module.register_parameter(name, from_obj)
    elif attr_kind is _AttrKind.BUFFER:
        to_module.register_buffer(name, from_obj, persistent=persistent)
    else:
        setattr(to_module, name, from_obj)


class InterpreterModule(torch.nn.Module):
    """A module of an exported program; its forward is the graph of its calls."""

    def __init__(self, graph: fx.Graph, ty: str | None = None):
        super().__init__()
        self.graph, self._ty = graph, ty
        self.signature = None  # how it is called, where export was asked to keep that

    def type_name(self) -> str | None:
        """The class of the module that was exported."""
        return self._ty

    def forward(self, *args, **kwargs):
        return _run(self, self, args, kwargs)

    @property
    def code(self) -> str:
        """The graph as Python."""
        return self.graph.python_code("self").src

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """Print the code of this module and of those inside."""
        text = "\n".join(
            f"class {name or 'self'}:  # {child.type_name()}\n{child.code}"
            for name, child in self.named_modules()
            if isinstance(child, InterpreterModule)
        )
        if print_output:
            print(text)
        return text


class InterpreterModuleDispatcher(torch.nn.Module):
    """A module whose calls ran differently: every call takes the next of its graphs, over and over."""

    def __init__(self, call_modules: list[InterpreterModule]):
        super().__init__()
        self._variants, self._next = call_modules, 0

    def type_name(self) -> str | None:
        return self._variants[0].type_name()

    def call_modules(self) -> list[InterpreterModule]:
        return self._variants

    def forward(self, *args, **kwargs):
        chosen = self._variants[self._next]
        self._next = (self._next + 1) % len(self._variants)
        return _run(self, chosen, args, kwargs)


def _run(owner, module, args, kwargs):
    """Run the graph of `module` with the tensors of `owner`."""
    interpreter = fx.Interpreter(owner, graph=module.graph)
    if module.signature is not None:
        leaves = _leaves(module.signature.in_spec, args, kwargs)[0]
        results = interpreter.run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(list(results), module.signature.out_spec)
    names = [n.target for n in module.graph.nodes if n.op == "placeholder"]
    try:
        rest = [kwargs[name] for name in names[len(args) :]]
    except KeyError as error:
        raise TypeError(f"expected the inputs {', '.join(names)}, but {error.args[0]!r} is missing") from None
    return interpreter.run(*args, *rest)


def _leaves(wanted, args, kwargs):
    """The leaves of arguments and how they nest, with the keywords in the program's order."""
    order = wanted.child(1).context or []
    if set(order) == set(kwargs):
        kwargs = {name: kwargs[name] for name in order}
    return pytree.tree_flatten((args, kwargs))


class FlatArgsAdapter(abc.ABC):
    """Makes inputs that nest in another way into those of the exported program."""

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: pytree.TreeSpec,
        input_spec: pytree.TreeSpec,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any | None = None,
    ) -> list[Any]:
        """The leaves that ``target_spec`` asks for; ``input_args`` may be changed."""

    def get_flat_arg_paths(self) -> list[str]:
        """How the leaves are reached, for messages."""
        return []


class UnflattenedModule(InterpreterModule):
    """What `unflatten` returns: the program with its modules, parameters and buffers under their names."""

    def __init__(self, export_module, flat_args_adapter: FlatArgsAdapter | None = None):
        super().__init__(fx.Graph(), None)
        self.meta: dict[str, Any] = {"unflattened_module": True}
        self.module_call_graph = export_module.module_call_graph
        self.flat_args_adapter = flat_args_adapter
        self._in_spec, self._out_spec = export_module.call_spec
        self._guards = [_Guards(export_module.guards, export_module.symbols)]  # no submodule of the program's
        _add_modules(self, export_module)
        own: dict[int, Any] = {}
        for spec in export_module.graph_signature.input_specs:
            if spec.kind != InputKind.USER_INPUT:
                _hold_tensor(self, spec, _own(_tensor_of(export_module, spec), spec.kind, own))
        _add_state(self, export_module, own)
        build(self, export_module)

    def forward(self, *args, **kwargs):
        leaves = self._flat(args, kwargs)
        if not _symbolic_trace.is_fx_tracing():
            self._guards[0](*leaves)
        outputs = fx.Interpreter(self, graph=self.graph).run(*leaves, enable_io_processing=False)
        return pytree.tree_unflatten(list(outputs), self._out_spec)

    def _flat(self, args, kwargs):
        leaves, spec = _leaves(self._in_spec, args, kwargs)
        traced = _symbolic_trace.is_fx_tracing() and len(leaves) == self._in_spec.num_leaves
        if spec == self._in_spec or traced:  # a tracer's inputs stand for leaves
            return leaves
        if self.flat_args_adapter is None:
            raise TypeError(
                "There is no flat args adapter sepcified. Are you sure you are calling this with the right "
                f"arguments? The program takes {self._in_spec}, got {spec}"
            )
        leaves = self.flat_args_adapter.adapt(
            target_spec=self._in_spec,
            input_spec=spec,
            input_args=leaves,
            metadata=self.meta,
            obj=(args, kwargs),
        )
        if len(leaves) != self._in_spec.num_leaves:
            raise TypeError(
                f"Flat args adaption failed, number of args mismatch Adapted: {len(leaves)} \n"
                f"Exported module: {self._in_spec.num_leaves}"
            )
        return leaves


def _add_modules(root, program):
    """Empty modules in the program's order; one that goes by two names is one."""
    aliases = dict(program.module_aliases)
    entries = [entry.fqn for entry in program.module_call_graph if "@" not in entry.fqn]
    for path in [*entries, *aliases]:
        if path:
            parent, _, name = path.rpartition(".")
            owner = _reach(root, parent)
            if path in aliases:
                owner.add_module(name, root.get_submodule(aliases[path]))
            elif name not in owner._modules:
                owner.add_module(name, InterpreterModule(fx.Graph()))
    for path in {path.rpartition(".")[0] for path in aliases}:
        _sort_children(root.get_submodule(path), path, program.module_order)


def _sort_children(owner, path, order):
    wanted = [name.rpartition(".")[2] for name in order if name and name.rpartition(".")[0] == path]
    for name in wanted:
        owner._modules[name] = owner._modules.pop(name)


def _reach(root, path):
    for name in path.split(".") if path else []:
        if name not in root._modules:
            root.add_module(name, InterpreterModule(fx.Graph()))
        root = root._modules[name]
    return root


def _own(tensor, kind, made):
    """A copy of a parameter or buffer, one for all of its names: the program keeps its own."""
    if kind == InputKind.CONSTANT_TENSOR or not isinstance(tensor, torch.Tensor):
        return tensor
    if id(tensor) not in made:
        copied = tensor.detach().clone()
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        made[id(tensor)] = torch.nn.Parameter(copied, tensor.requires_grad) if is_parameter else copied
    return made[id(tensor)]


def _hold_tensor(root, spec, tensor):
    path, _, name = spec.target.rpartition(".")
    owner = _reach(root, path)
    if spec.kind == InputKind.CONSTANT_TENSOR:
        setattr(owner, name, tensor)
    else:
        _hold(root, spec, tensor)


def _add_state(root, program, own):
    """Names of tensors that are inputs under another name: tied parameters."""
    for target, tensor in program.state_dict.items():
        path, _, name = target.rpartition(".")
        owner = _reach(root, path)
        if not hasattr(owner, name):
            tensor = _own(tensor, None, own)
            if isinstance(tensor, torch.nn.Parameter):
                owner.register_parameter(name, tensor)
            else:
                owner.register_buffer(name, tensor)


def unflatten(module, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """An exported program as a module with its submodules, each of which can be called or replaced.

    Without ``preserve_module_call_signature`` at export a submodule takes the tensors that its part of the
    graph uses and returns those that are used outside; with it, it is called as the original was.
    """
    return UnflattenedModule(module, flat_args_adapter)
