"""`Module`: a callable that owns parameters, buffers and other modules."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator

import rushlight as torch
from rushlight import Tensor
from rushlight._C import _collect_members, _init_module_tables, _set_module_class, _set_module_setattr
from rushlight._errors.advice import advised
from rushlight.nn.parameter import Buffer, Parameter

from . import _hooks
from ._conversion import ConversionMixin
from ._dotted_names import DottedNameMixin
from ._hooks import (
    HookMixin,
    TableSharing,
    _global_backward_hooks,  # noqa: F401
    _global_backward_pre_hooks,  # noqa: F401
    _global_buffer_registration_hooks,
    _global_forward_hooks,  # noqa: F401
    _global_forward_hooks_always_called,  # noqa: F401
    _global_forward_hooks_with_kwargs,  # noqa: F401
    _global_forward_pre_hooks,  # noqa: F401
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from ._module_base import CallSignature, ModuleBase
from ._state_dict import (
    _EXTRA_STATE_KEY_SUFFIX,  # noqa: F401
    StateDictMixin,
    _IncompatibleKeys,  # noqa: F401
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]


def _addindent(text, spaces):
    return text.replace("\n", "\n" + " " * spaces)


def _typename(value):
    """The name that error messages give to a value's type."""
    if isinstance(value, Tensor):
        return value.type()
    return _type_name(value.__class__)


def _type_name(cls):
    return cls.__qualname__ if cls.__module__ in ("builtins", "") else f"{cls.__module__}.{cls.__qualname__}"


def _forward_unimplemented(self, *input):
    """Define the computation of the module; every subclass overrides this."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


_PARTS = (HookMixin, StateDictMixin, ConversionMixin, DottedNameMixin)
if TYPE_CHECKING:

    class _Base(HookMixin, StateDictMixin, ConversionMixin, DottedNameMixin, ModuleBase):
        pass

else:
    _Base = ModuleBase  # not the parts, which each class of modules would search when it is made and used


class _TypeVariable:
    """For annotations: what `state_dict` writes to. Made when it is asked for."""

    def __get__(self, module, owner):
        return sys.modules[__spec__.name].T_destination


class Module(_Base):
    """Base class of all neural network modules.

    Assigning a `Parameter`, `Buffer` or `Module` to an attribute registers it; calling the module runs
    `forward` between the hooks.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(2, 1)
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> Net()(torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """

    T_destination = _TypeVariable()
    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                name = next(iter(kwargs))
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were "
                    "given"
                )
        _init_module_tables(self)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # -- calling: __call__ and __getattr__ come from the base

    _wrapped_call_impl = ModuleBase.__call__
    __signature__ = CallSignature()

    def _slow_forward(self, *input, **kwargs):
        return self.forward(*input, **kwargs)

    def compile(self, *args, **kwargs):
        """Compile forward in place with `torch.compile`."""
        self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)

    # -- registration

    def _check_name(self, kind, name, table):
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise advised(KeyError(f'{kind} name can\'t contain "."{got}'))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise advised(KeyError(f"attribute '{name}' already exists"))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None to keep the name free for one.

        Args:
            name (str): the attribute's name.
            param (Parameter or None): the parameter.

        Example:
            >>> module = torch.nn.Module()
            >>> module.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
            >>> [name for name, _ in module.named_parameters()]
            ['scale']
        """
        if "_parameters" not in self.__dict__:
            raise advised(AttributeError("cannot assign parameter before Module.__init__() call"))
        if not isinstance(name, str):
            raise TypeError(f"parameter name should be a string. Got {_typename(name)}")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise advised(
                    TypeError(
                        f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                        "(torch.nn.Parameter or None required)"
                    )
                )
            if param.grad_fn is not None:
                raise advised(
                    ValueError(
                        f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                        f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                        "the value in the forward() method."
                    )
                )
            param = registered(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; a non-persistent one stays out of the state_dict.

        Args:
            name (str): the attribute's name.
            tensor (Tensor or None): the values.
            persistent (bool): whether it is part of `state_dict`.

        Example:
            >>> module = torch.nn.Module()
            >>> module.register_buffer("mean", torch.zeros(2))
            >>> [name for name, _ in module.named_buffers()]
            ['mean']
        """
        if "_buffers" not in self.__dict__:
            raise advised(AttributeError("cannot assign buffer before Module.__init__() call"))
        if not isinstance(name, str):
            raise TypeError(f"buffer name should be a string. Got {_typename(name)}")
        self._check_name("buffer", name, self._buffers)
        if not (tensor is None or isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None "
                "required)"
            )
        self._buffers[name] = registered(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Add a child module under name.

        Args:
            name (str): the attribute's name.
            module (Module or None): the child.

        Example:
            >>> module = torch.nn.Module()
            >>> module.add_module("act", torch.nn.ReLU())
            >>> module.act
            ReLU()
        """
        if not isinstance(module, Module) and module is not None:
            what = module if isinstance(module, type) else type(module)
            raise advised(TypeError(f"{_type_name(what)} is not a Module subclass"))
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {_typename(name)}")
        if name not in self._modules and hasattr(self, name):
            raise advised(KeyError(f"attribute '{name}' already exists"))
        self._check_name("module", name, self._modules)
        self._modules[name] = registered(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: "Module | None") -> None:
        """Another name for `add_module`."""
        self.add_module(name, module)

    # -- attributes

    def _remove_elsewhere(self, name, kept):
        """Drop what name stands for, except in the table named kept."""
        own = self.__dict__
        own.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept and table in own:
                own[table].pop(name, None)
        if kept != "_buffers":
            own["_non_persistent_buffers_set"].discard(name)

    def _assign(self, name, value):
        """What `__setattr__`, which comes from the base, leaves to Python."""
        own = self.__dict__
        params, modules = own.get("_parameters"), own.get("_modules")
        if isinstance(value, Parameter):
            if params is None:
                raise advised(AttributeError("cannot assign parameters before Module.__init__() call"))
            self._remove_elsewhere(name, "_parameters")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise advised(
                    TypeError(
                        f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or "
                        "None expected)"
                    )
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if modules is None:
                raise advised(AttributeError("cannot assign module before Module.__init__() call"))
            self._remove_elsewhere(name, "_modules")
            modules[name] = registered(_global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None "
                    "expected)"
                )
            modules[name] = registered(_global_module_registration_hooks, self, name, None)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._assign_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _assign_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if getattr(self.register_buffer, "__func__", None) is not Module.register_buffer:
            from inspect import signature

            if "persistent" not in signature(self.register_buffer).parameters:
                if not persistent:
                    raise RuntimeError(
                        "Registering a non-persistent buffer on a Module subclass that implements "
                        "register_buffer() without the persistent argument is not allowed."
                    )
                self.register_buffer(name, value)
                return
        self.register_buffer(name, value, persistent)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[:1].isdigit())

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Files written by older versions lack the younger tables.
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # -- walking

    def named_modules(
        self, memo=None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """All modules of the tree with their dotted names, the module itself first.

        Args:
            memo (set or None): modules that are passed over.
            prefix (str): what names begin with.
            remove_duplicate (bool): whether a shared module comes once.

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_modules()]
            ['', '0']
        """
        if memo is None:
            found = _collect_members(self, None, True, prefix, True, remove_duplicate)
            if found is not None:
                yield from found
                return
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def modules(self, remove_duplicate: bool = True) -> Iterator["Module"]:
        """modules.

        Args:
            remove_duplicate (bool): whether a shared module comes once.

        Example:
            >>> [type(m).__name__ for m in torch.nn.Sequential(torch.nn.ReLU()).modules()]
            ['Sequential', 'ReLU']
        """
        found = _collect_members(self, None, False, "", True, remove_duplicate)
        if found is not None:
            yield from found
            return
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """named_children.

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU()).named_children()]
            ['0']
        """
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator["Module"]:
        """children.

        Example:
            >>> [type(m).__name__ for m in torch.nn.Sequential(torch.nn.ReLU()).children()]
            ['ReLU']
        """
        if type(self).named_children is not Module.named_children:
            for _, module in self.named_children():
                yield module
            return
        memo = set()
        for module in self._modules.values():
            if module is not None and module not in memo:
                memo.add(module)
                yield module

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        memo = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in memo:
                    continue
                if remove_duplicate:
                    memo.add(id(member))
                yield f"{module_prefix}.{name}" if module_prefix else name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """named_parameters.

        Args:
            prefix (str): what names begin with.
            recurse (bool): whether those of submodules come too.
            remove_duplicate (bool): whether a shared parameter comes once.

        Example:
            >>> [name for name, _ in torch.nn.Linear(3, 2).named_parameters()]
            ['weight', 'bias']
        """
        found = _collect_members(self, "_parameters", True, prefix, recurse, remove_duplicate)
        if found is None:
            found = self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)
        yield from found

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """parameters.

        Args:
            recurse (bool): whether those of submodules come too.

        Example:
            >>> sum(p.numel() for p in torch.nn.Linear(3, 2).parameters())
            8
        """
        found = _collect_members(self, "_parameters", False, "", recurse, True)
        if found is None:
            found = (param for _, param in self.named_parameters(recurse=recurse))
        yield from found

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        found = _collect_members(self, "_buffers", True, prefix, recurse, remove_duplicate)
        if found is None:
            found = self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)
        yield from found

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        found = _collect_members(self, "_buffers", False, "", recurse, True)
        if found is None:
            found = (buffer for _, buffer in self.named_buffers(recurse=recurse))
        yield from found

    # -- printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of the module's own line.

        Example:
            >>> torch.nn.Linear(2, 3).extra_repr()
            'in_features=2, out_features=3, bias=True'
        """
        return ""

    def _repr_html_(self):
        """What notebooks show: the modules as a tree that folds."""
        from rushlight.viz._notebook import module_html

        return module_html(self)

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


for _part in _PARTS:
    for _name, _value in vars(_part).items():
        if hasattr(_value, "__code__"):
            _value.__qualname__ = f"Module.{_name}"  # by which errors of Python name it
        elif _name.startswith("__"):  # what every class has
            continue
        if _name not in vars(Module):
            setattr(Module, _name, _value)

_set_module_class(Module)
_set_module_setattr(
    Module._assign,
    (Module.register_parameter, Module.register_buffer),
    (
        _global_parameter_registration_hooks,
        _global_buffer_registration_hooks,
        _global_module_registration_hooks,
    ),
)
sys.modules[__spec__.name].__class__ = TableSharing
_HOOK_TABLES = [name for name, value in Module().__dict__.items() if isinstance(value, OrderedDict)]


def __getattr__(name):
    # Type variables, for annotations; typing is not loaded for their sake.
    if name in ("T_destination", "_grad_t"):
        from typing import Any, TypeVar

        value = tuple[Tensor, ...] | Tensor if name == "_grad_t" else TypeVar(name, bound=dict[str, Any])
        globals()[name] = value
        return value
    if name.startswith("_global_") and hasattr(_hooks, name):
        return getattr(_hooks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
