"""Tensors that a module recognises as its own: parameters, buffers, and their not yet shaped forms."""

from collections import OrderedDict

import rushlight as torch
from rushlight import _C, Tensor
from rushlight._errors.advice import advised

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    __instancecheck__ = _C._parameter_instancecheck


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the module it is assigned to.

    Args:
        data (Tensor): the values.
        requires_grad (bool): whether gradients are computed for it.

    Example:
        >>> class Scale(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = torch.nn.Parameter(torch.ones(1))
        >>> [name for name, _ in Scale().named_parameters()]
        ['factor']
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> "Parameter":
        if data is None:
            data = torch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        param = data.detach().requires_grad_(requires_grad)
        if type(param) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() "
                "returns an "
                f"instance of the same type, but return type {type(param).__name__} was found instead. To "
                "use the type "
                "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        param._is_param = True  # type: ignore[attr-defined]
        return param  # type: ignore[return-value]

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            copied = self.data.clone(memory_format=torch.preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents=None):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from rushlight import _utils

        # Hooks are not saved. Attributes of the instance are, where there are any.
        state = _utils._get_obj_state(self)
        if state:
            args = (self.data, self.requires_grad, OrderedDict(), state)
            return _utils._rebuild_parameter_with_state, args
        return _utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())

    __torch_function__ = _C._disabled_torch_function_impl


# Operators return plain tensors for parameters, as for tensors.
_C._set_parameter_type(Parameter)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(self, instance):
        if self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to; in itself an ordinary tensor.

    Args:
        data (Tensor): the values.
        persistent (bool): whether it is part of `state_dict`.

    Example:
        >>> module = torch.nn.Module()
        >>> module.mean = torch.nn.Buffer(torch.zeros(2))
        >>> list(module.state_dict())
        ['mean']
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _C._disabled_torch_function_impl


class UninitializedTensorMixin:
    """What parameters and buffers without a shape can do: move, change type, and be materialized."""

    _allowed_methods = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to "
        "get_device __deepcopy__ detach requires_grad_ __get__ __set__".split()
    )

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor its shape (uninitialized memory) and make it an ordinary parameter or buffer."""
        self.data = torch.empty(shape, device=device or self.data.device, dtype=dtype or self.data.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the "
            "parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto):
        return self.__class__, (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        # Property setters and getters arrive as method wrappers, so both kinds of name are let through.
        allowed = func.__name__ in cls._allowed_methods or type(func).__name__ == "method-wrapper"
        if allowed:
            return super().__torch_function__(func, types, args, kwargs or {})
        raise advised(
            ValueError(
                f"Attempted to use an uninitialized parameter in {func}. This error happens when you are "
                "using a `LazyModule` or explicitly manipulating "
                "`torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call "
                "`forward` with a dummy batch to initialize the parameters before calling torch functions"
            )
        )


def is_lazy(param):
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is known only at the first forward; `materialize` gives it one.

    Args:
        requires_grad (bool): whether it gets a gradient.
        device, dtype: where and in which dtype it is made.

    Raises: ValueError where its values or shape are asked for before.

    Example:
        >>> p = torch.nn.UninitializedParameter()
        >>> p.materialize((2, 3))
        >>> p.shape
        torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is known only at the first forward; `materialize` gives it one.

    Args:
        requires_grad (bool): whether it gets a gradient.
        device, dtype: where and in which dtype it is made.
        persistent (bool): whether state dicts have it.

    Raises: ValueError where its values or shape are asked for before.

    Example:
        >>> b = torch.nn.UninitializedBuffer()
        >>> b.materialize((2, 3))
        >>> b.shape
        torch.Size([2, 3])
    """

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
