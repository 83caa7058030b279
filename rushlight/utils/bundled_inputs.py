"""Example inputs inside a scripted model: what the model needs to be tried out, in its own file.

The model gets the methods ``get_all_bundled_inputs()``, ``get_num_bundled_inputs()`` and
``get_bundled_inputs_functions_and_info()``. Tensors that would be large are written as expressions.
"""

from __future__ import annotations

import copy
import textwrap
from typing import Any, NamedTuple

import rushlight as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rushlight.jit import ScriptModule

__all__ = [
    "MAX_RAW_TENSOR_SIZE",
    "InflatableArg",
    "augment_many_model_functions_with_bundled_inputs",
    "augment_model_with_bundled_inputs",
    "bundle_inputs",
    "bundle_large_tensor",
    "bundle_randn",
]

MAX_RAW_TENSOR_SIZE = 16  # elements that are stored without a question

_HELPER = "_inflate_helper_for_"  # begins the names of the methods that make single inputs
_STORED = "_bundled_input_"


class InflatableArg(NamedTuple):
    """An input that is stored as `value` and made by an expression or a method of it.

    ``fmt`` is TorchScript with ``{}`` where the value stands; ``fmt_fn`` is the text of a method of one
    argument, with ``{}`` for its name, and takes the value instead.
    """

    value: Any
    fmt: str = "{}"
    fmt_fn: str = ""


def bundle_randn(*size: int, dtype: torch.dtype | None = None) -> InflatableArg:
    """A tensor of random numbers, drawn anew whenever the inputs are asked for."""
    return InflatableArg(torch.zeros(1, dtype=dtype).expand(*size), "torch.randn_like({})")


def bundle_large_tensor(t: torch.Tensor) -> InflatableArg:
    """A tensor that is to be stored, large as it is."""
    return InflatableArg(t, "{}")


def bundle_inputs(
    model: ScriptModule,
    inputs: Sequence[tuple[Any, ...]] | dict[Callable, Sequence[tuple[Any, ...]] | None] | None,
    info: list[str] | dict[Callable, list[str]] | None = None,
    *,
    _receive_inflate_expr: list[str] | None = None,
) -> ScriptModule:
    """A copy of the model that has these inputs, of ``forward`` or of several methods."""
    samples: Any = inputs if isinstance(inputs, dict) else {model.forward: inputs}
    notes: Any = info if isinstance(info, dict) or info is None else {model.forward: info}
    made = copy.copy(model)
    _Bundler(made, _receive_inflate_expr, False).run(_by_name(samples), _by_name(notes or {}))
    return made


def augment_model_with_bundled_inputs(
    model: ScriptModule,
    inputs: Sequence[tuple[Any, ...]] | None = None,
    _receive_inflate_expr: list[str] | None = None,
    info: list[str] | None = None,
    skip_size_check: bool = False,
) -> None:
    """Give the model inputs of ``forward``; without `inputs` it must make them itself, by a method
    ``_generate_bundled_inputs_for_forward``."""
    augment_many_model_functions_with_bundled_inputs(
        model,
        {model.forward: inputs},
        _receive_inflate_expr,
        None if info is None else {model.forward: info},
        skip_size_check,
    )


def augment_many_model_functions_with_bundled_inputs(
    model: ScriptModule,
    inputs: dict[Callable, Sequence[tuple[Any, ...]] | None],
    _receive_inflate_expr: list[str] | None = None,
    info: dict[Callable, list[str]] | None = None,
    skip_size_check: bool = False,
) -> None:
    """Give the model inputs of several of its methods."""
    if hasattr(model, "get_bundled_inputs_functions_and_info"):
        raise RuntimeError(
            "Models can only be augmented with bundled inputs once. This Model seems to have already been "
            "augmented with bundled inputs. Please start afresh with one that doesn't have bundled inputs."
        )
    _Bundler(model, _receive_inflate_expr, skip_size_check).run(_by_name(inputs), _by_name(info or {}))


def _get_bundled_inputs_attributes_and_methods(
    script_module: ScriptModule,
) -> tuple[list[str], list[str]]:
    """The names of the methods, and those of the attributes, that bundled inputs have added to a model."""
    if not hasattr(script_module, "get_bundled_inputs_functions_and_info"):
        return [], []
    methods = ["get_bundled_inputs_functions_and_info"]
    if hasattr(script_module, "get_all_bundled_inputs"):
        methods += ["get_all_bundled_inputs", "get_num_bundled_inputs"]
    for name in script_module.get_bundled_inputs_functions_and_info():
        methods += [f"get_all_bundled_inputs_for_{name}", f"_generate_bundled_inputs_for_{name}"]
    names = dir(script_module)
    methods += [name for name in names if name.startswith(_HELPER)]
    return methods, [name for name in names if name.startswith(_STORED)]


def _by_name(table):
    return {getattr(method, "name", None) or method.__name__: value for method, value in table.items()}


class _Bundler:
    """Writes the methods of one model."""

    def __init__(self, model, expressions, skip_size_check):
        if not isinstance(model, torch.jit.ScriptModule):
            raise TypeError(f"Only ScriptModule is supported, got {type(model).__name__}")
        self.model, self.expressions, self.skip_size_check = model, expressions, skip_size_check
        self.stored = 0

    def run(self, inputs, info):
        if not inputs:
            raise RuntimeError("Please provide inputs for at least 1 function")
        for name, samples in inputs.items():
            self._add_inputs(name, samples)
        entries = "".join(
            f"    all_inputs[{name!r}] = {{'info': {self._strings(info.get(name, []))}, "
            f"'get_inputs_function_name': ['get_all_bundled_inputs_for_{name}']}}\n"
            for name in inputs
        )
        self._define(
            "def get_bundled_inputs_functions_and_info(self):\n"
            "    none: List[str] = []\n"
            f"    all_inputs: Dict[str, Dict[str, List[str]]] = {{}}\n{entries}    return all_inputs\n"
        )
        if "forward" in inputs:
            self._define(
                "def get_all_bundled_inputs(self):\n    return self.get_all_bundled_inputs_for_forward()\n"
            )
            self._define(
                "def get_num_bundled_inputs(self):\n"
                "    return len(self.get_all_bundled_inputs_for_forward())\n"
            )

    def _strings(self, values):
        return repr(list(values)) if values else "none"

    def _define(self, text):
        self.model.define(text)

    def _add_inputs(self, name, samples):
        generator = f"_generate_bundled_inputs_for_{name}"
        if samples is not None:
            _check_samples(samples)
            if name not in getattr(self.model, "_bundled", ()) and hasattr(self.model, generator):
                raise RuntimeError(
                    f"inputs[{name}] is not None, but {generator} is already defined: give one of both"
                )
            tuples = [self._tuple(name, i, sample) for i, sample in enumerate(samples)]
            self._define(f"def {generator}(self):\n    return [{', '.join(tuples)}]\n")
            self.model.__dict__["_bundled"] = (*getattr(self.model, "_bundled", ()), name)
        elif not hasattr(self.model, generator):
            raise RuntimeError(f"inputs[{name}] is not given, and the model has no method {generator}")
        self._define(f"def get_all_bundled_inputs_for_{name}(self):\n    return self.{generator}()\n")

    def _tuple(self, name, i, sample):
        parts = [self._argument(name, (i, j), argument) for j, argument in enumerate(sample)]
        text = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if self.expressions is not None:
            self.expressions.append(text)
        return text

    def _argument(self, name, place, argument):
        if isinstance(argument, InflatableArg):
            value = self._literal(argument.value)
            if not argument.fmt_fn:
                return argument.fmt.format(value)
            if argument.fmt not in ("{}", ""):
                raise RuntimeError(
                    f"Bundled input argument at position {place} has both fmt_fn and fmt: give one of both"
                )
            helper = f"{_HELPER}{name}_input_{place[0]}_arg_{place[1]}"
            self._define(textwrap.dedent(argument.fmt_fn).format(helper).lstrip("\n"))
            return f"self.{helper}({value})"
        if isinstance(argument, torch.Tensor):
            return self._tensor(place, argument)
        return self._literal(argument)

    def _tensor(self, place, tensor):
        size = tensor.untyped_storage().size() // tensor.element_size()
        if size <= MAX_RAW_TENSOR_SIZE or self.skip_size_check:
            return self._store(tensor)
        if tensor.is_contiguous() and tensor.numel() <= MAX_RAW_TENSOR_SIZE:
            return self._store(tensor.clone())
        for memory_format in ("contiguous_format", "channels_last"):
            if tensor.is_contiguous(memory_format=getattr(torch, memory_format)):
                first = tensor.flatten()[0]
                if bool((tensor == first).all()):
                    stored = self._store(first.clone().expand(tensor.shape))
                    return f"{stored}.contiguous(memory_format=torch.{memory_format})"
        raise RuntimeError(
            f"Bundled input argument at position {place} has a tensor with storage size {size}. You probably "
            "don't want to bundle this as an input; if you do, use bundle_large_tensor or bundle_randn"
        )

    def _store(self, tensor):
        name = f"{_STORED}{self.stored}"
        self.stored += 1
        setattr(self.model, name, tensor)
        return f"self.{name}"

    def _literal(self, value):
        """The value as TorchScript; its tensors are attributes of the model."""
        if isinstance(value, torch.Tensor):
            return self._store(value)
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self._literal(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self._literal, value)) + "]"
        if isinstance(value, tuple):
            return "(" + "".join(self._literal(v) + ", " for v in value) + ")"
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        raise TypeError(f"a bundled input holds a {type(value).__name__}, which TorchScript cannot write")


def _check_samples(samples):
    if not isinstance(samples, (list, tuple)):
        raise TypeError(f"Only sequences of tuples of inputs are supported, got {type(samples).__name__}")
    for sample in samples:
        if not isinstance(sample, tuple):
            raise TypeError(
                f"Each bundled input must be a tuple of arguments, got {type(sample).__name__}; a single "
                "argument is (x,)"
            )
