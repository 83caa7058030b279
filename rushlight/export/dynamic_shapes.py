"""Which sizes of an exported program's inputs may change, and how they hang together."""

import inspect
import math
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from rushlight._errors.capture import UserError
from rushlight.utils import _pytree as pytree

__all__ = ["Constraint", "Dim", "UserError", "ValueRanges", "dims"]

Constraint = Any


class _DimHint:
    """``Dim.AUTO``, ``Dim.DYNAMIC`` or ``Dim.STATIC``, with or without a range."""

    def __init__(self, kind, min=None, max=None):
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min=None, max=None):
        return _DimHint(self.kind, min, max)

    def __repr__(self):
        return f"DimHint({self.kind})"


class Dim:
    """A named size that may change, within a range: ``Dim("batch", min=1, max=1024)``."""

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        self._asked = min is not None, max is not None
        min, max = 0 if min is None else min, math.inf if max is None else max
        if not max >= min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not str(name).isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, min, max

    def __repr__(self):
        parts = [repr(self.__name__)]
        if self.min != 2:
            parts.append(f"min={self.min}")
        if self.max != math.inf:
            parts.append(f"max={self.max}")
        return f"Dim({', '.join(parts)})"

    # sizes that follow from this one
    root: Any = property(lambda self: self)
    factor, offset = 1, 0

    def fn(self, size):
        """The size at a size of the root."""
        return self.factor * size + self.offset

    def _derive(self, factor, offset):
        return _DerivedDim(self.root, factor, offset)

    def __add__(self, other):
        return self._derive(self.factor, self.offset + _whole(other, "+"))

    def __sub__(self, other):
        return self._derive(self.factor, self.offset - _whole(other, "-"))

    def __mul__(self, other):
        factor = _whole(other, "*")
        if factor <= 0:
            raise NotImplementedError(f"Attempted to multiply {self.__name__} by {other}: must be positive")
        return self._derive(self.factor * factor, self.offset * factor)

    __radd__, __rmul__ = __add__, __mul__


def _whole(value, operation):
    if type(value) is not int:
        raise NotImplementedError(f"Dim {operation} {value!r}: only whole numbers may be used")
    return value


class _DerivedDim(Dim):
    """``2 * batch + 1``."""

    root: Any = None

    def __init__(self, root, factor, offset):
        text = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        self.__name__ = text + (f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "")
        self.root, self.factor, self.offset = root, factor, offset
        self.min, self.max = factor * root.min + offset, factor * root.max + offset

    def __repr__(self):
        return self.__name__


def dims(*names, min=None, max=None):
    """Several `Dim`s at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclass(frozen=True)
class ValueRanges:
    """From the smallest to the largest size."""

    lower: int
    upper: float

    def __repr__(self):
        return f"VR[{self.lower}, {'int_oo' if self.upper == math.inf else self.upper}]"


@dataclass(frozen=True)
class Place:
    """A size of an input: ``factor * symbol + offset``; without a dimension the input, which is a number."""

    leaf: int
    dim: Any  # int or None
    symbol: str
    factor: int = 1
    offset: int = 0


@dataclass
class Symbol:
    """A size that may change: its value in the example, its range, and whether it must."""

    name: str
    value: int
    lower: int
    upper: float
    required: bool
    given: bool = True  # by the user's name, not by a hint
    min_given: bool = False
    max_given: bool = False
    asked_lower: int = 0  # the smallest size that may be kept
    data: bool = False  # a number that the program reads from its data


def argument_names(module, args, kwargs):
    """The names of the arguments given, in order."""
    signature = inspect.signature(module.forward)
    names = []
    for parameter in signature.parameters.values():
        if len(names) >= len(args):
            break
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(len(args) - len(names))]
        else:
            names.append(parameter.name)
    return names + list(kwargs or {})


def spread(module, args, kwargs, dynamic_shapes):
    """What is said of ``*args`` and ``**kwargs`` as a whole, given for each of their values."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    star = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), None)
    stars = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    if isinstance(dynamic_shapes, dict):
        said = dict(dynamic_shapes)
        if star is not None and parameters[star].name in said:
            each = said.pop(parameters[star].name)
            names = argument_names(module, args, {})[star:]
            said |= dict(zip(names, [None] * len(names) if each is None else each, strict=True))
        if stars is not None and stars in said and stars not in (kwargs or {}):
            said |= said.pop(stars) or {}
        return said
    if isinstance(dynamic_shapes, (tuple, list)) and star is not None and len(dynamic_shapes) > star:
        each, count = dynamic_shapes[star], len(args) + len(kwargs or {})
        if isinstance(each, (tuple, list)) and len(each) == len(args) - star:
            nested = any(isinstance(one, (dict, tuple, list)) for one in each)
            if nested or len(dynamic_shapes) != count:
                dynamic_shapes = [*dynamic_shapes[:star], *each, *dynamic_shapes[star + 1 :]]
    return _by_name(module, args, kwargs, dynamic_shapes)


def _by_name(module, args, kwargs, dynamic_shapes):
    """What is said in the order of the signature, where keywords are given in another one."""
    names = argument_names(module, args, kwargs)
    parameters = [name for name in inspect.signature(module.forward).parameters if name in names]
    sequence = isinstance(dynamic_shapes, (tuple, list)) and len(dynamic_shapes) == len(names)
    if not sequence or parameters == names or len(parameters) < len(names):
        return dynamic_shapes
    return dict(zip(parameters, dynamic_shapes))


class ShapesCollection:
    """``dynamic_shapes`` by tensor, for inputs in nested containers: ``shapes[x] = {0: Dim("batch")}``."""

    def __init__(self):
        self._shapes = {}  # id -> the tensor, which must live as long as its id counts, and its spec

    def __setitem__(self, t, shape):
        if not isinstance(t, torch.Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        known = self._shapes.setdefault(id(t), (t, shape))[1]
        if known != shape:
            raise AssertionError(f"Shapes assigned to input do not match: expected {known}, got {shape}")

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The ``dynamic_shapes`` of a call of `m`, with None for what is not in the collection."""
        found = set()

        def spec_of(leaf):
            if id(leaf) not in self._shapes:
                return None
            found.add(id(leaf))
            return self._shapes[id(leaf)][1]

        kwargs = kwargs or {}
        values = [*args, *kwargs.values()]
        specs = [pytree.tree_map(spec_of, value) for value in values]
        if len(found) < len(self._shapes):
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. "
                "Maybe such tensors were copied when passing them as args? "
                "Maybe such tensors are contained in classes that were not registered with pytree?"
            )
        return dict(zip(argument_names(m, args, kwargs), specs))


class AdditionalInputs:
    """``dynamic_shapes`` by example: what differs between inputs of a program is dynamic. The exported
    program is checked to take each of them."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The ``dynamic_shapes`` of a call of `m`: ``Dim.DYNAMIC`` for each size that differs."""
        calls = [[*a, *(k or {}).values()] for a, k in [(args, kwargs), *self._examples]]
        first, *others = (pytree.tree_flatten(call) for call in calls)
        if any(spec != first[1] for _, spec in others):
            raise ValueError("The following inputs were found to differ in how they are nested.")
        specs = [_differing(*leaves) for leaves in zip(first[0], *(leaves for leaves, _ in others))]
        return dict(zip(argument_names(m, args, kwargs), pytree.tree_unflatten(specs, first[1])))

    def verify(self, ep):
        """Raises if an exported program refuses one of the inputs."""
        for args, kwargs in self._examples:
            ep.check_inputs(args, kwargs or {})


def _differing(value, *others):
    """What is said of the sizes of an input, of which there are several examples."""
    if any(type(other) is not type(value) for other in others):
        raise ValueError(
            "The following inputs were found to have differing types, so they cannot be marked as dynamic: "
            f"{(value, *others)}."
        )
    if not isinstance(value, torch.Tensor):
        if any(other != value for other in others):
            raise ValueError(
                "The following inputs were found to have differing values, but they cannot be marked as "
                f"dynamic: {(value, *others)}."
            )
        return None
    if any(other.dim() != value.dim() for other in others):
        raise ValueError(f"The following inputs differ in dimensions: {[t.dim() for t in (value, *others)]}.")
    sizes = zip(value.shape, *(other.shape for other in others))
    return tuple(Dim.DYNAMIC if len(set(each)) > 1 else None for each in sizes)


def find_symbols(names, args, kwargs, dynamic_shapes):
    """The symbols of all inputs, and where they stand."""
    values = [*args, *(kwargs or {}).values()]
    specs = _specs_by_position(names, dynamic_shapes, values)
    symbols, places, leaf = {}, [], 0
    for i, (name, value, spec) in enumerate(zip(names, values, specs)):
        at = repr(name) if isinstance(dynamic_shapes, dict) else i
        for tensor, own, where in _pairs(value, spec, f"[{at}]"):
            if isinstance(tensor, torch.Tensor) and own is not None:
                places += _places_of(tensor, own, leaf, symbols, name, where)
            elif type(tensor) is int and isinstance(own, (_DimHint, Dim)):
                place = _place(own, leaf, None, tensor, symbols, name)
                places += [place] if place is not None else []
            leaf += 1
    return symbols, places


def _specs_by_position(names, dynamic_shapes, values):
    if dynamic_shapes is None:
        return [None] * len(values)
    if isinstance(dynamic_shapes, dict):
        if sorted(dynamic_shapes) != sorted(names):
            alone = len(values) == 1 and isinstance(values[0], dict) and set(values[0]) == set(dynamic_shapes)
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                f"{names} of `inputs`, but here they are {list(dynamic_shapes)}. "
                + (
                    "Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to "
                    "enclose `dynamic_shapes` in a list/tuple?"
                    if alone
                    else "Alternatively, you could also ignore arg names entirely and specify "
                    "`dynamic_shapes` as a list/tuple matching `inputs`."
                )
            )
        return [dynamic_shapes[name] for name in names]
    if len(dynamic_shapes) != len(values):
        raise UserError(
            f"`dynamic_shapes` has {len(dynamic_shapes)} entries, the program {len(values)} inputs: {names}"
        )
    return list(dynamic_shapes)


def _pairs(value, spec, where):
    """The leaves of an input, each with what is said of its sizes, and where that stands."""
    if isinstance(value, torch.Tensor) or pytree.tree_is_leaf(value):
        return [(value, spec, where)]
    if spec is None:
        return [(leaf, None, where) for leaf in pytree.tree_leaves(value)]
    kind = type(value)
    if not isinstance(spec, (dict, list, tuple)) and type(spec) is not kind:
        raise _mismatch(where, f"is a {kind}", "is not")
    if kind in (dict, list, tuple) and not isinstance(spec, kind):
        raise _mismatch(where, f"is a {kind}", f"is a {type(spec)}")
    if isinstance(value, dict):
        if set(spec) != set(value):
            raise _mismatch(where, f"has keys {list(value)}", f"has keys {list(spec)}")
        items = [(value[key], spec[key], f"{where}[{key!r}]") for key in value]
    else:
        items = list(pytree.tree_flatten(value, is_leaf=lambda v: v is not value)[0])
        if not isinstance(spec, (dict, list, tuple)):
            spec = pytree.tree_flatten(spec, is_leaf=lambda s: s is not spec)[0]
        if len(spec) != len(items):
            raise _mismatch(where, f"has {len(items)} elements", f"has {len(spec)} elements")
        items = [(v, s, f"{where}[{i}]") for i, (v, s) in enumerate(zip(items, spec))]
    return [pair for item in items for pair in _pairs(*item)]


def _mismatch(where, value, spec):
    return UserError(
        "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
        f"`inputs{where}` {value}, but `dynamic_shapes{where}` {spec}"
    )


def _places_of(tensor, spec, leaf, symbols, path, where):
    if not isinstance(spec, (dict, list, tuple)):
        raise UserError(
            f"Unexpected input tensor shape {spec!r} specified at `dynamic_shapes{where}` (expected either a "
            "list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is an "
            "int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )
    entries = spec.items() if isinstance(spec, dict) else enumerate(spec)
    if not isinstance(spec, dict) and len(spec) != tensor.dim():
        raise UserError(
            f"dynamic_shapes of {path} has {len(spec)} entries for a tensor of {tensor.dim()} dimensions"
        )
    found = []
    for dim, what in entries:
        if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
            raise UserError(
                f"dynamic_shapes of {path} names dimension {dim} of a tensor of shape {tuple(tensor.shape)}"
            )
        dim %= tensor.dim()
        place = _place(what, leaf, dim, tensor.shape[dim], symbols, path)
        if place is not None:
            found.append(place)
    return found


def _place(what, leaf, dim, size, symbols, path):
    if what is None or isinstance(what, int):
        if isinstance(what, int) and what != size:
            raise UserError(f"dynamic_shapes says that dimension {dim} of {path} is {what}, but it is {size}")
        return None
    if isinstance(what, _DimHint):
        return None if what.kind == "STATIC" else _hinted(what, leaf, dim, size, symbols)
    if isinstance(what, Dim):
        return _named(what, leaf, dim, size, symbols, path)
    raise UserError(
        f"Unexpected dimension mapped to index {dim} in input tensor shape specified at "
        f"`dynamic_shapes['{path}']` (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  "
        f"but got {what!r} instead)"
    )


def _hinted(hint, leaf, dim, size, symbols):
    """A size without a name; those that can only change together are found later."""
    if size < 2 and hint.kind == "AUTO":
        return None
    name = f"s{size}"
    if name in symbols:
        name = next(f"s{size}_{i}" for i in range(1, len(symbols) + 1) if f"s{size}_{i}" not in symbols)
    lower, upper = hint.min if hint.min is not None else 0, hint.max if hint.max is not None else math.inf
    if not lower <= size <= upper:
        raise UserError(f"{hint!r} has the range [{lower}, {upper}], but the size in the example is {size}")
    asked = hint.min is not None, hint.max is not None
    symbols[name] = Symbol(
        name, size, lower, upper, hint.kind == "DYNAMIC" or any(asked), False, asked[0], asked[1], lower
    )
    return Place(leaf, dim, name)


def _named(what, leaf, dim, size, symbols, path):
    root = what.root
    value, rest = divmod(size - what.offset, what.factor)
    if rest or value < 0:
        raise UserError(f"dimension {dim} of {path} is {size}, which is not {what!r} for any {root.__name__}")
    if not root.min <= value <= root.max:
        raise UserError(f"{root.__name__} = {value} in the example is outside of [{root.min}, {root.max}]")
    lower = max(root.min, 0)
    symbol = Symbol(root.__name__, value, lower, root.max, True, True, root._asked[0], root._asked[1], lower)
    known = symbols.setdefault(root.__name__, symbol)
    if (known.lower, known.upper) != (symbol.lower, symbol.upper):
        before = Dim(known.name, min=known.lower, max=None if known.upper == math.inf else int(known.upper))
        raise UserError(f"Found different definitions {before} and {root} for the same symbolic dimension")
    if known.value != value:
        raise UserError(
            f"Constraints violated ({root.__name__})! The example has {root.__name__} = {known.value} and "
            f"{value}, in dimension {dim} of {path}"
        )
    return Place(leaf, dim, root.__name__, what.factor, what.offset)


def __getattr__(name):
    if name == "refine_dynamic_shapes_from_suggested_fixes":  # which knows what errors say
        from . import _suggestions

        return _suggestions.refine_dynamic_shapes_from_suggested_fixes
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
