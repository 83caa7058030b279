"""Writes down the operations of a run as the text of a script.

A function mode sees every operator that the run calls and writes one statement for it. Tensors are told apart
by identity; sizes that come from tensors remember how, so that ``x.view(x.size(0), -1)`` serves others."""

import keyword

import rushlight
from rushlight import _C, Tensor
from rushlight._command.names import own_name
from rushlight.jit import _decorations
from rushlight.jit._library import library_name
from rushlight.jit._traced_sizes import TracedFloat, TracedSize, plain_number, text_of_number
from rushlight.jit._tracer_warnings import LENGTH, OTHER_VIEWS, warn, warn_of_value
from rushlight.jit._types import DTYPE_LIKE
from rushlight.jit.frontend import Late
from rushlight.overrides import TorchFunctionMode, is_operator_method, redispatch_function
from rushlight.utils._pytree import tree_map_only

# Modules whose functions a script says otherwise than by calling them.
_WITHOUT_CALLS = ("rushlight._C", "rushlight._tensor", "rushlight")


_VALUES_READ = {
    "__bool__": "Python boolean",
    "__int__": "Python integer",
    "__float__": "Python float",
    "item": "Python number",
    "tolist": "Python list",
    "numpy": "NumPy array",
    "__array__": "NumPy array",
}
_OPERATORS = {"__getitem__", "__setitem__", "__len__", "__iter__", "__contains__"}
_SILENT = {
    "requires_grad",
    "grad_fn",
    "is_leaf",
    "device",
    "dtype",
    "layout",
    "is_cuda",
    "grad",
    "names",
    "_backward_hooks",
}


def _writes_to_first(name, args):
    """Whether a call writes to its first operand, and there is an operator that does the same without."""
    return (
        name.endswith("_")
        and not name.endswith("__")
        and bool(args)
        and isinstance(args[0], Tensor)
        and hasattr(Tensor, name)
        and hasattr(Tensor, name[:-1])
    )


class Recorder(TorchFunctionMode):
    """Writes down what runs while it is the mode; with ``outplace`` a write as a result of its own."""

    def __init__(self, outplace=False):
        self.outplace = outplace
        self.lines, self.names = [], {}
        self._texts, self._alive, self._count = {}, [], 0
        self.constants = {}
        self.drawing, self._random_state = [], rushlight.get_rng_state()  # calls that draw random numbers
        self.reserved = set()

    def name(self, value, text):
        self._texts[id(value)] = text
        self._alive.append(value)

    def as_input(self, tensor):
        """An input; one that is given twice, or is a parameter too, gets a second object."""
        if id(tensor) in self._texts:
            tensor = tensor.view_as(tensor)
        self.name(tensor, "")
        return tensor

    def knows(self, value):
        return id(value) in self._texts

    def fresh(self, stem):
        stem = stem.partition(".")[0].strip("_") or "value"  # an overload's name has a dot
        stem = f"{stem}_" if keyword.iskeyword(stem) or stem in ("self", "torch", "math") else stem
        name, n = stem, 0
        while name in self.reserved:
            n += 1
            name = f"{stem}_{n}"
        self.reserved.add(name)
        return name

    # --- calls ---

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if is_operator_method(func):  # `1 - x`: a script says it by the operators
            with self:
                return redispatch_function(func, types, args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return self._attribute(func, args)
        if name in (
            "size",
            "__len__",
            "numel",
            "nelement",
            "dim",
            "ndimension",
            "stride",
        ) and not self._owned(func):
            return self._measure(name, func, args, kwargs)
        if name in _VALUES_READ:
            warn_of_value(_VALUES_READ[name])
        if name in _VALUES_READ or name == "__index__":  # of which PyTorch does not warn
            return func(*args, **kwargs)
        if self.outplace and _writes_to_first(name, args):
            return self._written(func, name, args, kwargs)
        text = self._call_text(func, name, args, kwargs)
        result = func(*args, **kwargs)
        if text is not None:
            self._note_drawing(text)
            self._record(name, text, result, args)
        return result

    def _written(self, func, name, args, kwargs):
        """A write is recorded as a new tensor, which stands for the one written to from here on."""
        target, stem = args[0], name[:-1]
        if target._base is not None:
            warn(OTHER_VIEWS.format(name))
        arguments = [*map(self.text, args[1:]), *(f"{k}={self.text(v)}" for k, v in kwargs.items())]
        text = f"{self.text(target)}.{stem}({', '.join(arguments)})"
        result = func(*args, **kwargs)
        self._note_drawing(text)
        variable = self.fresh(stem)
        self.lines.append(f"{variable} = {text}")
        self.name(target, variable)
        return result

    def _note_drawing(self, text):
        state = rushlight.get_rng_state()
        if not rushlight.equal(state, self._random_state):
            self.drawing.append(text)
            self._random_state = state

    @staticmethod
    def _owned(func):
        module = getattr(func, "__module__", None)
        return module is not None and own_name(module) not in _WITHOUT_CALLS

    def _attribute(self, func, args):
        member = getattr(func, "__self__", None)
        name = getattr(member, "__name__", None) or getattr(getattr(member, "fget", None), "__name__", "")
        result = func(*args)
        if name == "shape" and isinstance(args[0], Tensor):
            text = self.text(args[0])
            return rushlight.Size([TracedSize(n, f"{text}.size({i})") for i, n in enumerate(result)])
        if isinstance(result, Tensor) and name and name not in _SILENT and id(result) not in self._texts:
            self._record(name, f"{self.text(args[0])}.{name}", result, args)
        return result

    def _measure(self, name, func, args, kwargs):
        result = func(*args, **kwargs)
        if name == "size" and isinstance(args[0], Tensor):
            text = self.text(args[0])
            if isinstance(result, rushlight.Size):
                return rushlight.Size([TracedSize(n, f"{text}.size({i})") for i, n in enumerate(result)])
            return TracedSize(result, f"{text}.size({(*args[1:], *kwargs.values())[0]})")
        if name in ("numel", "nelement") and isinstance(args[0], Tensor):
            return TracedSize(result, f"{self.text(args[0])}.numel()")
        if name == "__len__":  # must be a number of Python's own
            warn(LENGTH)
        return result

    def _call_text(self, func, name, args, kwargs):
        arguments = [*map(self.text, args), *(f"{k}={self.text(v)}" for k, v in kwargs.items())]
        if name == "__getitem__":
            return f"{arguments[0]}[{self._index(args[1])}]"
        if name == "__setitem__":
            return f"{arguments[0]}[{self._index(args[1])}] = {arguments[2]}"
        if args and isinstance(args[0], Tensor) and getattr(Tensor, name, None) is func:
            return f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
        dotted = library_name(func)
        if dotted is None or "<" in dotted:
            if isinstance(func, (rushlight._ops.OpOverload, rushlight._ops.OpOverloadPacket)):
                dotted = f"torch.ops.{func}"
            else:
                return None  # a function of the program, whose operators are seen as they run
        self.names[dotted] = func
        return f"{dotted}({', '.join(arguments)})"

    def call_of_function(self, unit, function, args, kwargs):
        """A script is called: it stays a call, so that what it decides by values is decided again."""
        name = f"__torch__.{unit.name}"
        known = self.names.get(name)
        if known is not None and known.unit is not unit:  # another one of this name
            return function(*args, **kwargs)
        made = self._call_of_script(name, name.rpartition(".")[2], function, args, kwargs)
        if name in made[0]:
            self.names[name] = Late(unit)
        return made[1]

    def call_of_operator(self, operator, steps, args, kwargs):
        """An operator written in Python stays a call: its steps read numbers out of quantised tensors."""
        name = library_name(operator)
        self.names[name] = operator
        return self._call_of_script(name, name.rpartition(".")[2], steps, args, kwargs)[1]

    def call_of_module(self, text, forward, *args, **kwargs):
        """The same for a module that is a script."""
        return self._call_of_script(text, "output", forward, args, kwargs)[1]

    def _call_of_script(self, called, stem, function, args, kwargs):
        """(the line that was recorded, the result)."""
        try:
            arguments = [*map(self.text, args), *(f"{k}={self.text(v)}" for k, v in kwargs.items())]
        except RuntimeError:  # an argument that has no text: what the script does is recorded instead
            return "", function(*args, **kwargs)
        args, kwargs = tree_map_only((TracedSize, TracedFloat), plain_number, (args, kwargs))
        tracing = _decorations._tracing
        tracing.recorder = None
        try:
            with _C.DisableTorchFunction():
                result = tree_map_only(Tensor, self._own, function(*args, **kwargs))
        finally:
            tracing.recorder = self
        text = f"{called}({', '.join(arguments)})"
        self._record(stem, text, result, args)
        return text, result

    def _own(self, result):
        """A result of a script that has no other name: what it gives back as it is gets a second object."""
        return result.view_as(result) if id(result) in self._texts else result

    def _index(self, index):
        if isinstance(index, tuple):
            return ", ".join(map(self._index, index)) + ("," if len(index) == 1 else "") if index else "()"
        if isinstance(index, slice):
            parts = ["" if p is None else self.text(p) for p in (index.start, index.stop)]
            return ":".join(parts) + ("" if index.step is None else f":{self.text(index.step)}")
        return self.text(index)

    def _record(self, name, text, result, args):
        if name == "__setitem__" or result is None:
            self.lines.append(text)
        elif isinstance(result, Tensor):
            if any(result is a for a in args if isinstance(a, Tensor)):  # in place
                self.lines.append(text)
            else:
                variable = self.fresh(name)
                self.lines.append(f"{variable} = {text}")
                self.name(result, variable)
        elif isinstance(result, (tuple, list, dict)) and not isinstance(result, rushlight.Size):
            variable = self.fresh(name)
            self.lines.append(f"{variable} = {text}")
            self._name_parts(result, variable)

    def _name_parts(self, value, text):
        if isinstance(value, Tensor):
            self.name(value, text)
        elif isinstance(value, dict):
            for key, part in value.items():
                self._name_parts(part, f"{text}[{key!r}]")
        elif isinstance(value, (tuple, list)):
            for i, part in enumerate(value):
                self._name_parts(part, f"{text}[{i}]")

    # --- values ---

    def text_of_result(self, result):
        """The text of what the run gives, in which sizes are tensors."""
        if isinstance(result, TracedSize):
            self.names["torch.tensor"] = rushlight.tensor
            return f"torch.tensor({result.text})"
        if type(result) is tuple:
            return f"({''.join(f'{self.text_of_result(part)}, ' for part in result)})"
        return self.text(result)

    def text(self, value):
        """The text of an argument; a tensor that the program did not compute becomes a constant."""
        if isinstance(value, Tensor):
            if id(value) not in self._texts:
                if value.requires_grad:
                    raise RuntimeError(
                        "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                        f"parameter or input, or detaching the gradient\nTensor:\n{value}"
                    )
                constant = f"_constant{len(self.constants)}"
                self.constants[constant] = value.detach()
                self.name(value, f"self.{constant}")
            return self._texts[id(value)]
        if isinstance(value, (TracedSize, TracedFloat)):
            return value.text
        if isinstance(value, rushlight.ScriptObject) and id(value) in self._texts:
            return self._texts[id(value)]
        if isinstance(value, (list, tuple)):
            inside = ", ".join(map(self.text, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.text(k)}: {self.text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.text(value.start)}, {self.text(value.stop)}, {self.text(value.step)})"
        if isinstance(value, rushlight.device):
            self.names["torch.device"] = rushlight.device
            return f"torch.device({str(value)!r})"
        if isinstance(value, DTYPE_LIKE):
            self.names[str(value)] = value
            return str(value)
        if value is Ellipsis:
            return "..."
        if value is None or isinstance(value, (bool, int, complex, str, bytes)):
            return repr(value)
        if isinstance(value, float):
            return text_of_number(value)
        if isinstance(value, rushlight.Generator):
            return "None"
        raise RuntimeError(f"trace: an operator takes a {type(value).__name__}, which cannot be written down")
