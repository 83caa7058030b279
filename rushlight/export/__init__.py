"""Whole programs as graphs of operators: `export` runs a module on fake tensors and keeps what runs.

Sizes are plain numbers: those that `dynamic_shapes` lets change are found by tracing at several sizes.
"""

import rushlight as torch
from rushlight._higher_order_ops._regions import module_of
from rushlight.utils import _pytree as pytree

from . import dynamic_shapes as _shapes
from ._data import DataTraces
from ._draft_export import draft_export
from ._files import load, save
from ._grad_regions import enclose
from ._language import TextModel, load_language_model, save_language_model
from ._lower import UnsupportedError
from ._numeric import Computation
from ._one_file import FileModel, load_file, save_file
from ._quantize import Quantized, QuantizeError, quantize_file
from ._settled import finish, forget_replaced
from ._suggestions import settled
from ._text_service import TextService
from ._trace import input_names, name_sizes, plain_state, trace_module
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import (
    AdditionalInputs,
    Constraint,
    Dim,
    ShapesCollection,
    UserError,
    ValueRanges,
    dims,
)
from .exported_program import (
    CallSpec,
    ExportedProgram,
    InputGuard,
    ModuleCallEntry,
    ModuleCallSignature,
)
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "Constraint",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FileModel",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "QuantizeError",
    "Quantized",
    "AdditionalInputs",
    "ShapesCollection",
    "TextModel",
    "TextService",
    "UnflattenedModule",
    "UnsupportedError",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "load_file",
    "load_language_model",
    "quantize_file",
    "register_dataclass",
    "save",
    "save_file",
    "save_language_model",
    "unflatten",
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

    Of the submodules named in ``preserve_module_call_signature`` it is kept how they are called, which
    `unflatten` makes use of.

    ``dynamic_shapes`` says for each input which sizes may change: ``{"x": {0: Dim("batch")}}``, or is a
    `ShapesCollection` that says it for tensors wherever they are, or `AdditionalInputs`. Where the
    program depends on the example's size in another way than by sums of products of sizes, that is an error.
    """
    _checked(mod, args, kwargs)
    kwargs = kwargs or {}
    names = _shapes.argument_names(mod, args, kwargs)
    examples = dynamic_shapes if isinstance(dynamic_shapes, AdditionalInputs) else None
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    else:
        dynamic_shapes = _shapes.spread(mod, args, kwargs, dynamic_shapes)
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    leaf_names = input_names(names, args, kwargs)
    symbols, places = _shapes.find_symbols(names, args, kwargs, dynamic_shapes)

    def trace_once(sizes, **how):
        return trace_module(
            mod, leaves, in_spec, leaf_names, places, sizes, preserved=preserve_module_call_signature, **how
        )

    trace = DataTraces(trace_once, symbols)
    base = trace.first({name: symbol.value for name, symbol in symbols.items()})
    symbols |= trace.symbols()
    if symbols:
        computation = Computation(mod, leaves, in_spec, places)
        dynamics, (base, planned, symbols, places) = settled(trace, symbols, places, computation)
        finish(base, planned, dynamics)
        name_sizes(base, places)
        forget_replaced(base)
    ranges = {name: ValueRanges(s.lower, s.upper) for name, s in symbols.items() if not s.data}
    ranges |= trace.ranges(base.numbers, symbols)
    program = _program(mod, base, names, leaf_names, leaves, in_spec, symbols, places, ranges, (args, kwargs))
    if examples is not None:
        examples.verify(program)
    return program


def _guards(leaf_names, leaves, places):
    where = {(place.leaf, place.dim): place for place in places}
    guards = []
    for i, (name, leaf) in enumerate(zip(leaf_names, leaves)):
        if isinstance(leaf, torch.Tensor):
            guards.append(InputGuard(name, [where.get((i, d), size) for d, size in enumerate(leaf.shape)]))
        else:
            guards.append(InputGuard(name, value=where.get((i, None), leaf)))
    return guards


def _program(mod, base, names, leaf_names, leaves, in_spec, symbols, places, ranges, examples):
    graph_module = module_of(enclose(base.graph))
    state = plain_state(mod)
    constants = dict(base.constants)
    constants.update({h.target: h.tensor for h in base.held if h.persistent is False})
    signature = ModuleCallSignature([], [], in_spec, base.out_spec, names)
    paths = dict(mod.named_modules())
    calls = [ModuleCallEntry("", signature)]
    for path in paths:
        if path:
            kept = base.calls.get(path)
            calls.append(ModuleCallEntry(path, kept and _call_signature(*kept)))
    calls += [
        ModuleCallEntry(path, _call_signature(*kept)) for path, kept in base.calls.items() if "@" in path
    ]
    first = {module: path for path, module in paths.items()}
    order = dict(mod.named_modules(remove_duplicate=False))
    return ExportedProgram(
        graph_module=graph_module,
        graph_signature=base.signature,
        state_dict={name: value for name, value in state.items() if isinstance(value, torch.Tensor)},
        constants=constants,
        call_spec=CallSpec(in_spec, base.out_spec),
        argument_names=names,
        guards=_guards(leaf_names, leaves, places),
        symbols=symbols,
        range_constraints=ranges,
        example_inputs=examples,
        module_call_graph=calls,
        module_aliases={path: first[module] for path, module in order.items() if path not in paths},
        module_order=list(order),
    )


def _call_signature(inputs, in_spec, outputs, out_spec):
    return ModuleCallSignature(inputs, outputs, in_spec, out_spec)


def default_decompositions():
    """The table of `run_decompositions`, to change: take an operator out to keep it whole."""
    return CustomDecompTable()


def register_dataclass(cls, *, serialized_type_name=None):
    """Let instances of a dataclass be inputs and outputs, as containers of their fields."""
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
