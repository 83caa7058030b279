"""Names: where PyTorch's users find a function, and identifiers that do not clash in generated code."""

import builtins
import inspect
import keyword
import operator
import re
import types
from collections import defaultdict

import rushlight
from rushlight import _C
from rushlight._command.names import is_own, own_name, public_name
from rushlight._ops import OpOverload, OpOverloadPacket

_BUILTIN_OPERATOR = type(_C._VariableFunctions.add)
_METHOD = type(rushlight.Tensor.add)

# torch.nn.functional has these from the core: the rest is written in Python in PyTorch, and named so.
_NATIVE_NN = frozenset(
    """
        avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot
        scaled_dot_product_attention softplus softshrink
    """.split()
)
_NATIVE_TORCH = frozenset(
    """
        adaptive_avg_pool1d avg_pool1d celu_ channel_shuffle conv1d conv2d conv3d
        conv_transpose1d conv_transpose2d conv_transpose3d hardshrink
        native_channel_shuffle pixel_shuffle pixel_unshuffle prelu relu_ rrelu_
        selu_ threshold_
    """.split()
)
# and these are all that torch.functional has of its own
_OWN_FUNCTIONAL = frozenset(
    """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist chain_matmul einsum
        lu meshgrid norm split stft tensordot unique unique_consecutive unravel_index
    """.split()
)
_CORE_SPACES = {"special": _C._special, "fft": _C._fft, "linalg": _C._linalg}


def _public(module_name):
    """`rushlight.nn.functional._pooling` is `torch.nn.functional` to everybody outside."""
    name = public_name(module_name)
    return "torch.nn.functional" if name.startswith("torch.nn.functional.") else name


def _core_function_name(function):
    """The name of an operator of the core; None if it is known by another."""
    name = function.__name__
    space = _public(function.__module__)
    short = space.rpartition(".")[2]
    if short in _CORE_SPACES:
        return f"torch._C._{short}.{short}_{name}"
    if space == "torch.nn.functional":
        return _functional_name(name)
    if name in _OWN_FUNCTIONAL:
        return f"torch.functional.{name}"
    return f"torch.{name}" if space in ("torch", "torch._C") else None


def _functional_name(name):
    if name in _NATIVE_NN:
        return f"torch._C._nn.{'log_sigmoid' if name == 'logsigmoid' else name}"
    return f"torch.{name}" if name in _NATIVE_TORCH else f"torch.nn.functional.{name}"


def is_functional(function):
    """Whether PyTorch writes the function in Python, as part of torch.nn.functional or torch.functional."""
    if not isinstance(function, (_BUILTIN_OPERATOR, types.FunctionType)):
        return False
    space = _public(function.__module__ or "")
    if space in ("torch", "torch.functional"):
        return function.__name__ in _OWN_FUNCTIONAL
    return space == "torch.nn.functional" and _functional_name(function.__name__).startswith(space)


def is_method(function):
    """Whether the function is reached through a tensor."""
    if isinstance(function, (_METHOD, _BUILTIN_OPERATOR)):
        return isinstance(function, _METHOD)
    name = getattr(function, "__name__", None)
    return name == "__get__" or inspect.getattr_static(rushlight.Tensor, name, None) is function


def _find_module_of_method(orig_method):
    """The module in whose namespace a function without `__module__` lives."""
    module, name = orig_method.__module__, orig_method.__name__
    if module is not None:
        return module
    for guess in (rushlight, rushlight.nn.functional):
        if getattr(guess, name, None) is orig_method:
            return _public(guess.__name__)
    raise RuntimeError(f"cannot find module for {orig_method}")


def _get_qualified_name(func):
    """How generated code calls the function."""
    if getattr(builtins, getattr(func, "__name__", ""), None) is func:  # things like getattr just appear so
        return func.__name__
    if isinstance(func, _METHOD):
        return f"torch.Tensor.{func.__name__}"
    if isinstance(func, _BUILTIN_OPERATOR):
        known = _core_function_name(func)
        if known is not None:
            return known
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{func}"
    name = func.__name__
    if name == "<lambda>":
        text = inspect.getsource(func).strip()
        raise RuntimeError(f"cannot generate code for the lambda {text!r}; define a function with a name")
    if isinstance(func, types.FunctionType) and _public(func.__module__ or "") == "torch.nn.functional":
        return _functional_name(name)
    module = _public(_find_module_of_method(func))
    if module == "torch.functional" and name not in _OWN_FUNCTIONAL:
        return f"torch.{name}"
    if module.startswith("torch") and getattr(rushlight, name, None) is func and module != "torch.functional":
        return f"torch.{name}"
    return f"{module.replace('torch._ops', 'torch.ops')}.{name}"


def is_from_torch(obj):
    """Whether generated code reaches the object through the name `torch`."""
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        return is_own(own_name(module)) and not public_name(module).startswith("torch._dynamo.")
    name = getattr(obj, "__name__", None)
    if name is None or name == "torch":
        return False
    return any(getattr(guess, name, None) is obj for guess in (rushlight, rushlight.nn.functional))


def type_name(obj):
    """The name of a type as annotations write it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        module = _public(obj.__module__)
        if module.startswith("torch") and getattr(rushlight, obj.__name__, None) is obj:
            module = "torch"
        return f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


# --- identifiers ------------------------------------------------------------------------------------

magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
}
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods.update(reflectable_magic_methods)
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}


def is_operator_function(target):
    return getattr(target, "__module__", None) == "_operator" and getattr(operator, target.__name__, None)


def snake_case(text):
    """`addRelu` becomes `add_relu`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


class Namespace:
    """Hands out identifiers, each once, and remembers for which object."""

    def __init__(self):
        self._obj_to_name = {}
        self._used_names = set()
        self._base_count = defaultdict(int)

    def create_name(self, candidate, obj):
        """An unused identifier like `candidate`; the same object gets the same name again."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        candidate = base if number is None else f"{base}_{number}"
        number = number or self._base_count[base]
        while candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name, obj):
        """Bind a name that was handed out to the object made for it."""
        taken = self._obj_to_name.setdefault(obj, name)
        if taken != name:
            raise AssertionError(f"obj is already associated with name {taken}")

    def _is_illegal_name(self, name, obj):
        from ._codegen import _custom_builtins

        if keyword.iskeyword(name):
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        if name in _custom_builtins:
            return obj is not _custom_builtins[name].obj
        return False

    def _rename_object(self, obj, name):
        if obj not in self._obj_to_name:
            raise AssertionError(f"{obj} has no name to change")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
