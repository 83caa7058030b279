"""Whole programs as graphs of operators: `export` runs a module on fake tensors and keeps what runs.

Sizes are plain numbers: those that `dynamic_shapes` lets change are found by tracing at several sizes.
"""

import operator

import rushlight as torch
from rushlight import fx
from rushlight.utils import _pytree as pytree

from . import dynamic_shapes as _shapes
from ._files import load, save
from ._lower import UnsupportedError
from ._one_file import FileModel, load_file, save_file
from ._sizes import _Specialized, apply, ends, plan, sizes_to_try, verify
from ._trace import input_names, trace_module
from .dynamic_shapes import Constraint, Dim, ShapesCollection, UserError, ValueRanges, dims
from .exported_program import (
    CallSpec,
    ExportedProgram,
    InputGuard,
    ModuleCallEntry,
    ModuleCallSignature,
)
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "Constraint",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FileModel",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnsupportedError",
    "default_decompositions",
    "dims",
    "export",
    "load",
    "load_file",
    "register_dataclass",
    "save",
    "save_file",
]


def _checked(mod, args, kwargs):
    if not isinstance(mod, torch.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise UserError(f"Expecting `kwargs` to be a dict of example inputs, got {type(kwargs)}")


def export(
    mod,
    args,
    kwargs=None,
    *,
    dynamic_shapes=None,
    strict=False,
    preserve_module_call_signature=(),
    prefer_deferred_runtime_asserts_over_guards=False,
):
    """Export a module as it runs on example inputs; nothing is computed and no state changes.

    ``dynamic_shapes`` says for each input which sizes may change: ``{"x": {0: Dim("batch")}}``, or is a
    `ShapesCollection` that says it for tensors wherever they are. Where the
    program depends on the example's size in another way than by sums of products of sizes, that is an error.
    """
    _checked(mod, args, kwargs)
    kwargs = kwargs or {}
    names = _shapes.argument_names(mod, args, kwargs)
    if isinstance(dynamic_shapes, ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    leaf_names = input_names(names, args, kwargs)
    symbols, places = _shapes.find_symbols(names, args, kwargs, dynamic_shapes)

    def trace(sizes):
        return trace_module(mod, leaves, in_spec, leaf_names, places, sizes)

    base = trace({name: symbol.value for name, symbol in symbols.items()})
    symbols, places = _Dynamics(base, trace, symbols, places).settle()
    return _program(mod, base, names, leaf_names, leaves, in_spec, symbols, places, (args, kwargs))


class _Dynamics:
    """Which sizes of a program may change, and the graph that holds for all of them."""

    def __init__(self, base, trace, symbols, places):
        self.base, self.trace, self.symbols, self.places = base, trace, symbols, places
        self.example = {name: symbol.value for name, symbol in symbols.items()}
        self.graphs = {}  # sizes -> graph

    def settle(self):
        """The symbols and places that stay: hinted sizes that cannot change become static."""
        if not self.symbols:
            return {}, []
        try:
            planned = self._plan(self.symbols)
        except _Specialized as error:
            if all(symbol.required for symbol in self.symbols.values()):
                raise _violated(self.symbols, error) from None
            planned = self._without_some_hints()
        apply(planned, self.base.graph, self._source_of)
        return self.symbols, [place for place in self.places if place.symbol in self.symbols]

    def _without_some_hints(self):
        kept = {name: symbol for name, symbol in self.symbols.items() if symbol.required}
        for name, symbol in self.symbols.items():
            if name in kept:
                continue
            try:
                self._plan({**kept, name: symbol})
                kept[name] = symbol
            except _Specialized:
                continue
        self.symbols = kept
        try:
            return self._plan(kept) if kept else []
        except _Specialized as error:
            raise _violated(kept, error) from None

    def _plan(self, symbols):
        corners, beyond = sizes_to_try(symbols)
        traces = [(corner, self._at(corner)) for corner in corners]
        planned = plan(self.base.graph, traces, self._at(beyond), beyond, symbols)
        for name, symbol in symbols.items():
            self._check_ends(planned, name, symbol)
        return planned

    def _check_ends(self, planned, name, symbol):
        """The smallest and the largest size too; where one is special, the range begins at two."""
        low, high = ends(symbol)
        for size in (high, low):
            sizes = {**self.example, name: size}
            try:
                verify(planned, self.base.graph, self._at(sizes), sizes, only_work=size == 1)
            except _Specialized:
                if size > 1 or symbol.value < 2:
                    raise
                symbol.lower = 2

    def _at(self, sizes):
        sizes = {**self.example, **sizes}
        key = tuple(sizes.values())
        if key not in self.graphs:
            try:
                self.graphs[key] = self.trace(sizes).graph
            except Exception as error:
                raise _Specialized(f"fails at {sizes}: {error}") from error
        return self.graphs[key]

    def _source_of(self, name):
        """A node for the size, read from the input where it stands most plainly."""
        candidates = [p for p in self.places if p.symbol == name]
        place = min(candidates, key=lambda p: (p.factor != 1 or p.offset != 0, p.leaf))
        graph, symbol = self.base.graph, self.symbols[name]
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        tensor = placeholders[len(self.base.held) + place.leaf]
        with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
            node = graph.create_node("call_method", "size", (tensor, place.dim), {}, "sym_size_int")
            node.meta["val"] = place.factor * symbol.value + place.offset
            for step, number in ((operator.sub, place.offset), (operator.floordiv, place.factor)):
                if number != (step is operator.floordiv):
                    value = step(node.meta["val"], number)
                    node = graph.call_function(step, (node, number))
                    node.meta["val"] = value
        return node


def _violated(symbols, error):
    return UserError(
        f"Constraints violated ({', '.join(symbols)})! The program {error}. Leave the size static, or write "
        "the program so that it does not depend on the example's"
    )


def _guards(leaf_names, leaves, places):
    where = {(place.leaf, place.dim): place for place in places}
    guards = []
    for i, (name, leaf) in enumerate(zip(leaf_names, leaves)):
        if isinstance(leaf, torch.Tensor):
            guards.append(InputGuard(name, [where.get((i, d), size) for d, size in enumerate(leaf.shape)]))
        else:
            guards.append(InputGuard(name, value=leaf))
    return guards


def _program(mod, base, names, leaf_names, leaves, in_spec, symbols, places, examples):
    graph_module = fx.GraphModule(torch.nn.Module(), base.graph)
    state = dict(mod.state_dict(keep_vars=True))
    constants = dict(base.constants)
    constants.update({h.target: h.tensor for h in base.held if h.persistent is False})
    signature = ModuleCallSignature([], [], in_spec, base.out_spec, names)
    calls = [ModuleCallEntry(path, None if path else signature) for path, _ in mod.named_modules()]
    return ExportedProgram(
        graph_module=graph_module,
        graph_signature=base.signature,
        state_dict={name: value for name, value in state.items() if isinstance(value, torch.Tensor)},
        constants=constants,
        call_spec=CallSpec(in_spec, base.out_spec),
        argument_names=names,
        guards=_guards(leaf_names, leaves, places),
        symbols=symbols,
        range_constraints={name: ValueRanges(s.lower, s.upper) for name, s in symbols.items()},
        example_inputs=examples,
        module_call_graph=calls,
    )


def default_decompositions():
    """A table for `run_decompositions`: empty, for exported operators have kernels."""
    return {}


def register_dataclass(cls, *, serialized_type_name=None):
    """Let instances of a dataclass be inputs and outputs, as containers of their fields."""
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
