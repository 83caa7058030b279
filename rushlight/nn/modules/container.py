"""Modules that hold other modules or parameters: in a chain, a list, or a dictionary."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from collections.abc import Iterable as _IterableABC
from itertools import chain, islice

import rushlight as torch
from rushlight._errors.advice import attach
from rushlight.nn.parameter import Parameter

from .module import Module, _addindent

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """An old name for a Module that is given its children by keyword.

    Args:
        kwargs: children by their names.

    Example:
        >>> sorted(name for name, _ in torch.nn.Container(a=torch.nn.ReLU()).named_children())
        ['a']
    """

    def __init__(self, **kwargs):
        super().__init__()
        import warnings

        warnings.warn(
            "nn.Container is deprecated. All of its functionality is now implemented in nn.Module. "
            "Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(index, length):
    """index as a position from the front, checked."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Numbered(Module):
    """Children named 0, 1, 2, …: what Sequential and ModuleList have in common."""

    def _key(self, index):
        return str(_position(index, len(self)))

    def _rename(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._rename(list(self._modules.values()))

    def append(self, module):
        """Add module at the end.

        Args:
            module (Module): what is added at the end.

        Example:
            >>> layers = torch.nn.ModuleList()
            >>> len(layers.append(torch.nn.ReLU()))
            1
        """
        self.add_module(str(len(self)), module)
        return self

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]


class Sequential(_Numbered):
    """Modules called one after the other, each with what the one before it returned.

    Args:
        *args (Module): the modules in order, or one dict from names to modules.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> model(torch.ones(1, 2)).shape, len(model)
        (torch.Size([1, 3]), 2)
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _key(self, index):
        # The names may be any, if the modules came in a dictionary.
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[index]))
        modules = self._modules
        if type(index) is int and 0 <= index < len(modules):
            return next(islice(modules.values(), index, None))
        return modules[self._key(index)]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {str(type(other))} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def _check_factor(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other):
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other):
        self._check_factor(other)
        for module in list(self) * (other - 1):
            self.append(module)
        return self

    def pop(self, key):
        """Remove the module at position key and return it."""
        module = self[key]
        del self[key]
        return module

    def insert(self, index, module):
        """Add module before position index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._rename(modules)
        return self

    def extend(self, sequential):
        """Add the modules of sequential at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def forward(self, input):
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """Modules in a list.

    Args:
        modules (iterable of Module or None): the modules.

    Example:
        >>> layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.__class__(list(self)[index])
        modules = self._modules
        if type(index) is int and 0 <= index < len(modules):
            return modules[str(index)]
        return modules[self._key(index)]

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def insert(self, index, module):
        """Add module before position index."""
        modules = list(self)
        modules.insert(index, module)
        self._rename(modules)

    def pop(self, key):
        """Remove the module at position key and return it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules):
        """Add the modules of an iterable at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self

    def __repr__(self):
        """Runs of modules that print alike are shown once, with their number."""
        runs = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return self._get_name() + "()"
        lines = []
        for first, last, text in runs:
            text = f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(_addindent(text, 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


def _key_value_pairs(items, cls, update):
    """The pairs of a mapping or of an iterable of pairs, checked."""
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{update} should be called with an iterable of key/value pairs, but got {type(items).__name__}"
        )
    if hasattr(items, "items"):
        return list(items.items())
    pairs = []
    for i, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{cls} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{cls} update sequence element #{i} has length {len(pair)}; 2 is required")
        pairs.append((pair[0], pair[1]))
    return pairs


class ModuleDict(Module):
    """Modules in a dictionary with string keys, in order of insertion.

    Args:
        modules (mapping or iterable of pairs, or None): modules by name.

    Example:
        >>> heads = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 1)})
        >>> "a" in heads, list(heads)
        (True, ['a'])
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        try:
            return self._modules[key]
        except KeyError as error:
            note = f"fix: the keys are {list(self._modules)}"
            attach(error, note)
            raise

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        self._modules.clear()

    def pop(self, key):
        module = self[key]
        del self[key]
        return module

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of an iterable of pairs."""
        for key, module in _key_value_pairs(modules, "ModuleDict", "ModuleDict.update"):
            self[key] = module


def _as_parameter(value):
    # Tensors become parameters; anything else is kept as an attribute.
    if isinstance(value, torch.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """Parameters in a list, which the module that holds it knows; values that are no tensors are kept, too.

    Args:
        values (iterable, optional): what is in it at first.

    Raises: TypeError where `values` cannot be gone through.

    Example:
        >>> rows = torch.nn.ParameterList([torch.ones(2), torch.zeros(2)])
        >>> rows.append(torch.ones(1))[2]
        Parameter containing:
        tensor([1.], requires_grad=True)
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.__class__([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, param):
        setattr(self, str(_position(index, len(self))), _as_parameter(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        """Add value at the end."""
        index = len(self)
        self._size += 1
        self[index] = value
        return self

    def extend(self, values):
        """Add the values of an iterable at the end."""
        # A tensor is iterable, but hardly ever meant as a list here.
        if not isinstance(values, _IterableABC) or isinstance(values, torch.Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        lines = []
        for i, value in enumerate(self):
            if isinstance(value, torch.Tensor):
                size = "x".join(map(str, value.size()))
                device = f" ({value.device})" if value.is_cuda else ""
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                lines.append(f"  ({i}): {kind} containing: [{value.dtype} of size {size}{device}]")
            else:
                lines.append(f"  ({i}): Object of type: {type(value).__name__}")
        return "\n".join(lines)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters in a dictionary with string keys; values that are not tensors are kept, too.

    Args:
        parameters (mapping or iterable of pairs, or None): parameters by name; tensors become parameters.

    Example:
        >>> scales = torch.nn.ParameterDict({"a": torch.ones(2)})
        >>> type(scales["a"]).__name__
        'Parameter'
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        # The keys are also kept apart, because the attributes mix with the module's own.
        attr = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, attr, _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Another ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value of key, which becomes default if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        key, _ = self._keys.popitem()
        # popitem has taken the key out already, and del needs it.
        self._keys[key] = None
        value = self[key]
        del self[key]
        return key, value

    def get(self, key, default=None):
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with the given keys, all with the value default."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add the values of a mapping or of an iterable of pairs."""
        pairs = _key_value_pairs(parameters, "ParameterDict", "ParametersDict.update")
        # A mapping without an order of its own is taken by sorted keys.
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort()
        for key, value in pairs:
            self[key] = value

    def extra_repr(self):
        lines = []
        for key, value in self.items():
            if isinstance(value, torch.Tensor):
                size = "x".join(map(str, value.size()))
                device = f" ({value.device})" if value.is_cuda else ""
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                lines.append(f"  ({key}): {kind} containing: [{value.type()} of size {size}{device}]")
            else:
                lines.append(f"  ({key}): Object of type: {type(value).__name__}")
        return "\n".join(lines)

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self
