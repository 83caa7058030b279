"""`trace`: a script of the operations of one run, and the check that it computes what the program does."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import warnings

from rushlight import Tensor
from rushlight._quantized.packed import ScriptObject
from rushlight.jit import _decorations, _state
from rushlight.jit._annotations import value_type
from rushlight.jit._closed_source import _dotted
from rushlight.jit._recorder import Recorder
from rushlight.jit._script import (
    ScriptFunction,
    ScriptModule,
    describe_methods,
    library_base,
    script_class,
    shell,
)
from rushlight.jit._trace_check import TracingCheckError as TracingCheckError
from rushlight.jit._trace_check import check_traced
from rushlight.jit._trace_graph import _get_trace_graph as _get_trace_graph
from rushlight.jit._trace_inputs import check_inputs as check_traceable
from rushlight.jit._traced_exports import add_exports
from rushlight.jit._traced_parts import method_tree, watching_parts
from rushlight.jit._traced_sizes import TracedSize
from rushlight.jit._tracer_warnings import TracerWarning as TracerWarning
from rushlight.jit._tracer_warnings import warn
from rushlight.jit._types import ANY, TENSOR
from rushlight.jit.frontend import Unit
from rushlight.nn import Module
from rushlight.utils._pytree import tree_map_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class TopLevelTracedModule(ScriptModule):
    """What `trace` makes of a module."""

    def _get_name(self):
        return self.original_name


def _parameters_of(function, args, kwargs):
    """Names for the inputs: those of the signature where they can be told."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [f"argument_{i}" for i in range(len(args))], dict.fromkeys(kwargs)
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in bound.arguments and name not in kwargs:
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{name}_{i}" for i in range(len(bound.arguments[name]))]
            else:
                names.append(name)
    return names[: len(args)], dict.fromkeys(kwargs)


def _record(name, function, module, args, kwargs, outplace=False):
    """Run once; the unit of what ran, and the tensors that it found lying about."""
    check_traceable(args, kwargs)
    recorder = Recorder(outplace)
    positional, by_name = _parameters_of(getattr(function, "forward", function), args, kwargs)
    names = [recorder.fresh(n) for n in positional] + list(by_name)
    recorder.reserved.update(by_name)
    for path, tensor in [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]:
        recorder.name(tensor, _path_text("self", path))
    args, kwargs = tree_map_only(Tensor, recorder.as_input, (args, kwargs))
    for path, child in module.named_modules():
        for attribute, packed in _packed_weights(child):
            recorder.name(packed, _path_text("self", f"{path}.{attribute}" if path else attribute))
    for text, value in zip(names, (*args, *kwargs.values()), strict=True):
        recorder._name_parts(value, text)
    scopes = _decorations.tracing_state() or _decorations.Scopes()
    with (
        _decorations.tracing(scopes, recorder), recorder, _scripts_by_name(module, recorder),
        watching_parts(module, recorder, _module_text, _parameters_of) as parts,
    ):  # fmt: skip
        result = function(*args, **kwargs)
    if result is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not captured in traces, so it "
            "would be a no-op."
        )
    _check_result(result)
    body = [*recorder.lines, f"return {recorder.text_of_result(result)}"]
    written = map(_with_type, names, (*args, *kwargs.values()))
    source = f"def {name}({', '.join(['self', *written])}):\n" + "".join(f"    {line}\n" for line in body)
    unit = _unit(name, ast.parse(source).body[0], recorder)
    unit.drawing = recorder.drawing
    return _Recorded(unit, recorder, parts, result)


class _Recorded:
    """What a run gave: the unit of the whole, those of its parts, the tensors it found outside."""

    def __init__(self, unit, recorder, parts, result):
        self.unit, self.constants, self.result = unit, recorder.constants, result
        self._recorder, self._parts = recorder, parts

    def units_of_parts(self):
        trees = {
            path: method_tree(part, _with_type, self._recorder.reserved) for path, part in self._parts.items()
        }
        return {
            path: _unit("forward", tree, self._recorder) for path, tree in trees.items() if tree is not None
        }


def _unit(name, tree, recorder):
    unit = Unit(name, tree, {**recorder.names, "getattr": getattr}, "<trace>")
    _Bound(unit).visit(tree)
    return unit


def _packed_weights(module):
    """Names and values of a module's attributes that are packed weights."""
    return [(name, value) for name, value in vars(module).items() if isinstance(value, ScriptObject)]


@contextlib.contextmanager
def _scripts_by_name(module, recorder):
    """Let calls of scripts among a module's children be recorded as calls, with the choices in them. Those
    with hooks are not, since hooks are seen as they run."""
    replaced = []
    for path, child in module.named_modules():
        hooks = child._forward_hooks or child._forward_pre_hooks
        scripted = isinstance(child, ScriptModule) and type(child)._script_methods
        if path and scripted and not hooks and "forward" not in vars(child):
            forward = functools.partial(recorder.call_of_module, _path_text("self", path), child.forward)
            child.__dict__["forward"] = forward
            replaced.append(child)
    try:
        yield
    finally:
        for child in replaced:
            del child.__dict__["forward"]


def _with_type(name, value):
    """An argument as the traced function declares it: what is no tensor says its type."""
    kind = value_type(value)
    return name if kind == TENSOR else f"{name}: {str(kind if kind.known else ANY)!r}"


def _module_text(text, path):
    for part in filter(None, path.split(".")):
        text = f"{text}.{part}" if part.isidentifier() else f"{text}._modules[{part!r}]"
    return text


def _path_text(text, path):
    modules, _, last = path.rpartition(".")
    text = _module_text(text, modules)
    text = f"{text}.{last}" if last.isidentifier() else f"getattr({text}, {last!r})"
    return text


class _Bound(ast.NodeTransformer):
    """Makes one name of each dotted name that the recorder knows."""

    def __init__(self, unit):
        self.unit = unit

    def visit_Attribute(self, node):
        dotted = _dotted(node)
        if dotted in self.unit.names:
            return ast.copy_location(ast.Name(id=dotted, ctx=ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in ("float", "int", "slice"):
            self.unit.names[node.id] = {"float": float, "int": int, "slice": slice}[node.id]
        return node


_ONLY_TENSORS = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
)


def _check_result(result):
    if isinstance(result, (list, tuple)):
        for part in result:
            if isinstance(result, list) and not isinstance(part, Tensor):
                raise RuntimeError(_ONLY_TENSORS)
            _check_result(part)
    elif isinstance(result, dict):
        for part in result.values():
            parts = part if isinstance(part, tuple) else (part,)
            if not all(isinstance(p, Tensor) for p in parts):
                raise RuntimeError(
                    f"output 1 ({result}) of traced region cannot be understood by the tracer, only outputs "
                    "matching dict[Union[str, Tensor], Union[Tensor, Tuple[Tensor, ...]]] can be a "
                    "dictionary output of a traced function"
                )
    elif result is not None and not isinstance(result, (Tensor, TracedSize)):
        raise RuntimeError(_ONLY_TENSORS)


_CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid "
    "if the container structure does not change based on the module's inputs. Consider using a constant "
    "container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If "
    "you absolutely need this and know the side effects, pass strict=False to trace() to allow this behavior."
)


def _strict_result(result, strict):
    if strict and isinstance(result, dict):
        raise RuntimeError(_CONTAINER.format("dict"))
    if strict and isinstance(result, list):
        warn(_CONTAINER.format("list"))


def _as_tuple(inputs):
    if isinstance(inputs, (Tensor, dict)):
        return (inputs,)
    return tuple(inputs)


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a function or Module on example inputs and keep its operations as a script.

    Choices that the program makes by value are lost, with a ``TracerWarning`` where they can be seen.
    Sizes are followed through arithmetic.

    Args:
        check_trace: run once more, compare the operations, and compare the results of script and program.
        check_inputs: more inputs (tuples) for that comparison.
        check_tolerance: what relative and absolute difference it allows.
        strict: refuse results in lists and dicts.
        example_kwarg_inputs: inputs by name, in place of ``example_inputs``.
    """
    if not _state._enabled:
        return func
    if isinstance(func, (ScriptModule, ScriptFunction)):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as "
            "is.",
            stacklevel=2,
        )
        return func
    if example_kwarg_inputs is None and example_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if isinstance(method_of := getattr(func, "__self__", None), Module):
        if func.__name__ != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\nPlease use trace_module"
            )
        func = method_of
    if isinstance(func, Module):
        inputs = example_kwarg_inputs if example_kwarg_inputs is not None else example_inputs
        return trace_module(
            func,
            {"forward": inputs},
            check_trace=check_trace,
            check_inputs=None if check_inputs is None else [{"forward": i} for i in check_inputs],
            check_tolerance=check_tolerance,
            strict=strict,
            _force_outplace=_force_outplace,
            example_inputs_is_kwarg=example_kwarg_inputs is not None,
        )
    owner = Module()
    args, kwargs = (
        ((), example_kwarg_inputs) if example_kwarg_inputs is not None else (_as_tuple(example_inputs), {})
    )
    record = functools.partial(_record, outplace=_force_outplace)
    made = _traced(owner, {"forward": func}, [(args, kwargs)], strict, record)
    if check_trace:
        more = [(_as_tuple(i), {}) for i in check_inputs or ()]
        check_traced(made, {"forward": func}, owner, [[(args, kwargs), *more]], check_tolerance, record)
    return _as_function(made, func)


class TracedFunction(ScriptFunction):
    """A traced function that found tensors outside, which belong to it."""

    _called_by_name = False

    def __init__(self, module, unit, doc) -> None:
        super().__init__(unit, doc)
        self.owner, self._function = module, module.forward


def _as_function(module, func):
    """What was recorded of a function: without `self`, if it took nothing from outside."""
    unit = type(module)._script_methods["forward"]
    name = getattr(func, "__name__", "forward")
    unit.name = name = name if name.isidentifier() else "forward"
    if unit.attributes_of_self:
        return TracedFunction(module, unit, func.__doc__)
    del unit.tree.args.args[0]
    unit.tree.name = name
    return ScriptFunction(Unit(name, unit.tree, unit.names, unit.filename), func.__doc__)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """`trace` for several methods of one module: ``inputs`` maps their names to example inputs."""
    if not _state._enabled:
        return mod
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")

    def split(example):
        return ((), example) if example_inputs_is_kwarg else (_as_tuple(example), {})

    if mod._backward_hooks:
        raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {mod}")
    functions = {name: mod if name == "forward" else getattr(mod, name) for name in inputs}
    examples = [split(example) for example in inputs.values()]
    record = functools.partial(_record, outplace=_force_outplace)
    made = _traced(mod, functions, examples, strict, record)
    if check_trace:
        checks = [
            [examples[i], *(split(more[name]) for more in check_inputs or () if name in more)]
            for i, name in enumerate(inputs)
        ]
        check_traced(made, functions, mod, checks, check_tolerance, record)
    return made


def _traced(module, functions, examples, strict, record):
    """A module with the tensors of `module` and the recorded functions as its methods."""
    units, constants, parts, shared = {}, {}, {}, {}
    for (name, function), (args, kwargs) in zip(functions.items(), examples, strict=True):
        recorded = record(name, function, module, args, kwargs)
        units[name], found = recorded.unit, recorded.constants
        if name == "forward":
            parts.update(recorded.units_of_parts())
            shared.update(found)
        if len(functions) > 1 and found:  # each method has constants of its own
            renamed = {c: f"_{name}{c}" for c in found}
            _rename(units[name], renamed)
            found = {renamed[c]: v for c, v in found.items()}
        constants.update(found)
        _strict_result(recorded.result, strict)
    methods = {name: unit.checked(True) for name, unit in units.items()}
    cls = script_class(Module, type(module).__name__, methods, units, TopLevelTracedModule)
    made = _shell_of(module, cls, {}, parts)
    for path in ("", *parts):
        describe_methods(made.get_submodule(path))
    for path, unit in parts.items():
        _give_constants(made.get_submodule(path), unit, shared)
    for name, tensor in constants.items():
        made._buffers[name] = tensor
        made._non_persistent_buffers_set.add(name)
    add_exports(made, module)
    return made


def _give_constants(part, unit, constants):
    """Give a part the tensors that its method takes from what the trace found outside."""
    for name in unit.attributes_of_self:
        if name in constants:
            part.register_buffer(name, constants[name], persistent=False)


def _rename(unit, names):
    for node in ast.walk(unit.tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            node.attr = names[node.attr]


def _shell_of(module, cls, seen, parts, path=""):
    """The tree of a module's tensors; modules of the library's own classes stay callable as they are, others
    by what was recorded of them, the units of ``parts``."""
    made = seen[id(module)] = shell(cls, dict(Module().__dict__))
    made.__dict__["training"] = module.training
    for table in ("_parameters", "_buffers"):
        made.__dict__[table] = dict(module.__dict__[table])
    made.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    made.__dict__.update(_packed_weights(module))
    for name, child in module._modules.items():
        if child is None:
            continue
        if id(child) in seen:
            made._modules[name] = seen[id(child)]
            continue
        if isinstance(child, ScriptModule) and type(child)._script_methods:
            made._modules[name] = seen[id(child)] = child  # called as it is
            continue
        base = library_base(type(child))
        of_library = type(child) is base and base is not Module
        place = f"{path}.{name}" if path else name
        units = {} if of_library or place not in parts else {"forward": parts[place]}
        methods = {name: unit.checked(True) for name, unit in units.items()}
        below = script_class(base if of_library else Module, type(child).__name__, methods, units)
        made._modules[name] = _shell_of(child, below, seen, parts, place)
        if of_library:
            own = made._modules[name].__dict__
            own.update({k: v for k, v in child.__dict__.items() if k not in own})
    return made
