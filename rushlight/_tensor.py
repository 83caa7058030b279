"""``torch.Tensor``: the members that are written in Python, on top of the C type."""

import math

import rushlight
from rushlight import _C
from rushlight._C import _disabled_torch_dispatch_impl, _has_torch_function_unary
from rushlight._utils import _rebuild_from_type_v2  # noqa: F401 (files and packages look for it here)

__all__ = ["Tensor"]

__capture__ = "through"  # Note [Capture marks]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import Self

    _F = TypeVar("_F", bound=Callable[..., Any])


def _overridable(method: "_F") -> "_F":
    """A method written in Python that asks ``__torch_function__`` first, as those written in C do."""
    return _C._overridable(method, False)


def _convert(result, cls):
    """Results of functions over a subclass become that subclass."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


_nowrap: set = set()


def _nowrap_functions():
    if not _nowrap:
        from rushlight.overrides import get_default_nowrap_functions

        _nowrap.update(get_default_nowrap_functions())
    return _nowrap


class Tensor(_C.TensorBase):
    """A multi-dimensional array of one element type; see ``torch.tensor`` for making one.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, x[0, 1].item()
        (torch.Size([2, 2]), torch.float32, 2.0)
    """

    __module__ = rushlight.__name__

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            if type(func).__name__ == "method-wrapper" and func in _nowrap_functions():
                return result
            return _convert(result, cls)

    __torch_dispatch__ = _disabled_torch_dispatch_impl

    # --- text ------------------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents=None):
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
        from rushlight._tensor_str import _str

        with _C.DisableTorchFunctionSubclass():
            return _str(self, tensor_contents=tensor_contents)

    def _repr_html_(self):
        """What notebooks show: shape, range, a picture of matrices; None where only the text will do."""
        from rushlight.viz._notebook import tensor_html

        return tensor_html(self) if type(self) in (rushlight.Tensor, rushlight.nn.Parameter) else None

    def __format__(self, spec):
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__format__, (self,), self, spec)
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self):
        names = set(dir(type(self))) | set(self.__dict__)
        if not self.is_cuda or self.is_sparse:
            names.discard("__cuda_array_interface__")
        return sorted(name for name in names if name.isidentifier())

    @property
    def volatile(self):
        """Always False: what it asked for is ``torch.no_grad()`` now."""
        import warnings

        warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
        return False

    @volatile.setter
    def volatile(self, value):
        import warnings

        warnings.warn(
            "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
        )

    def __div__(self, other):  # Python 2's
        return self.__truediv__(other)

    def __idiv__(self, other):
        return self.__itruediv__(other)

    def _fix_weakref(self):
        """What a weak reference gives is whole: there is nothing to mend, where PyTorch may have to."""

    # --- copying and pickling --------------------------------------------------------------------

    def __deepcopy__(self, memo):
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__deepcopy__, (self,), self, memo)
        from rushlight._serialization.deep_copy import deep_copy

        return deep_copy(self, memo)

    def __reduce_ex__(self, protocol):
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__reduce_ex__, (self,), self, protocol)
        from rushlight._utils import _reduce_tensor

        return _reduce_tensor(self, protocol)

    def __setstate__(self, state):
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__setstate__, (self,), self, state)
        self.__dict__.update(state)

    @_overridable
    def storage(self) -> "Any":
        from rushlight.storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    def _typed_storage(self):
        return self.storage()

    @_overridable
    def storage_type(self) -> "Any":
        """The class that storages of this type had of old, where there was one."""
        from rushlight.storage import TypedStorage, _name_of_dtype, _storage_class

        return _storage_class(self.dtype) if self.dtype in _name_of_dtype() else TypedStorage

    @_overridable
    def _coalesced_(self, coalesced: bool) -> "Tensor":
        """Say of a COO tensor whether its elements are listed once each and in order; nothing is checked."""
        made = rushlight._sparse_coo_tensor_unsafe(
            self._indices(), self._values(), list(self.shape), is_coalesced=coalesced
        )
        with rushlight.no_grad():
            return self.copy_(made)

    @_overridable
    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self.untyped_storage().is_shared()

    @_overridable
    def share_memory_(self) -> "Self":
        """Move the memory to where other processes can see it."""
        self.untyped_storage().share_memory_()
        return self

    # --- containers ------------------------------------------------------------------------------

    @_overridable
    def __contains__(self, element):
        if isinstance(element, (Tensor, int, float, complex, rushlight.SymInt)):
            return bool((element == self).any().item())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )

    def _iterated_rows(self):
        """What a loop over this tensor goes through where modes or subclasses follow what is done with it."""
        if rushlight.jit.is_tracing():
            from rushlight.jit._tracer_warnings import warn_of_iteration

            warn_of_iteration()
        return self.unbind(0)

    @_overridable
    def __reversed__(self):
        return self if self.dim() == 0 else self.flip(0)

    # --- autograd --------------------------------------------------------------------------------

    @_overridable
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """Compute the gradients of the graph's leaves, summed into their ``.grad``."""
        rushlight.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    # --- forms that differ from the function's ---------------------------------------------------

    @_overridable
    def split(self, split_size, dim=0) -> "tuple[Tensor, ...]":
        """Consecutive pieces of ``split_size``, or of the sizes in the list.

        Args:
            split_size (int or sequence of int): elements of each piece, or of all.
            dim (int): the dimension.

        Shape: a tuple of views; the last may be smaller.

        Example:
            >>> torch.arange(5).split([1, 4])
            (tensor([0]), tensor([1, 2, 3, 4]))
        """
        return rushlight.functional.split(self, split_size, dim)

    @_overridable
    def norm(self, p="fro", dim=None, keepdim=False, dtype=None) -> "Tensor":
        """The matrix or vector norm; see ``torch.norm``.

        Args:
            p (float or str): the order: 'fro', 'nuc', inf or a number.
            dim (int, sequence of int or None): the dimensions; None is all.
            keepdim (bool): whether they stay, with size 1.
            dtype (dtype or None): what is computed with.

        Formula: (sum over i of |x_i|**p)**(1 / p)

        Example:
            >>> torch.tensor([3.0, 4.0]).norm()
            tensor(5.)
        """
        return rushlight.functional.norm(self, p, dim, keepdim, dtype=dtype)

    @_overridable
    def to_padded_tensor(self, padding, output_size=None) -> "Tensor":
        """The components of a nested tensor in a dense one; see ``torch.nested.to_padded_tensor``."""
        raise RuntimeError("to_padded_tensor: expected a nested tensor")

    @_overridable
    def smm(self, mat) -> "Tensor":
        """A sparse matrix times a dense one, as a sparse tensor."""
        return rushlight.smm(self, mat)

    @_overridable
    def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1) -> "Tensor":
        """``beta * self + alpha * (mat1 @ mat2)`` with sparse `self` and `mat1`, as a sparse tensor."""
        return rushlight.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)

    @_overridable
    def eig(self, eigenvectors=False):
        """Removed from PyTorch; says what to use."""
        return rushlight.eig(self, eigenvectors)

    def symeig(self, eigenvectors=False):
        """Removed from PyTorch; says what to use."""
        return rushlight.symeig(self, eigenvectors)

    def solve(self, other):
        """Removed from PyTorch; says what to use."""
        return rushlight.solve(self, other)

    def lstsq(self, other):
        """Removed from PyTorch; says what to use."""
        return rushlight.lstsq(self, other)

    @_overridable
    def lu(self, pivot=True, get_infos=False) -> "tuple[Tensor, ...]":
        """The former name of ``torch.linalg.lu_factor``; see ``torch.lu``."""
        return rushlight.functional.lu(self, pivot, get_infos)

    @_overridable
    def is_distributed(self) -> bool:
        """Always False: what it asked for was never there."""
        return False

    @_overridable
    def _dimI(self) -> int:
        """The number of sparse dimensions."""
        return self.sparse_dim()

    @_overridable
    def _dimV(self) -> int:
        """The number of dense dimensions of a sparse tensor."""
        return self.dense_dim()

    @_overridable
    def nonzero(self, *, as_tuple=False) -> "Any":
        """Indices of the elements that are not zero; see ``torch.nonzero``.

        Args:
            as_tuple (bool): whether the result is one vector for each dimension, which can be an index.

        Shape: (number of elements, dimensions).

        Example:
            >>> torch.tensor([0, 3, 0, 4]).nonzero()
            tensor([[1],
                    [3]])
        """
        return rushlight.functional.nonzero(self, as_tuple=as_tuple)

    @_overridable
    def unflatten(self, dim, sizes) -> "Tensor":
        """Splits a dimension into several.

        Args:
            dim (int): the dimension that is split.
            sizes (sequence of int): what it is split into; one may be -1.

        Shape: (.., n, ..) becomes (.., *sizes, ..).

        Example:
            >>> torch.arange(6).unflatten(0, (2, -1)).shape
            torch.Size([2, 3])
        """
        return rushlight.unflatten(self, dim, tuple(sizes))

    @_overridable
    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None) -> "Any":
        """The distinct elements; see ``torch.unique``.

        Args:
            sorted (bool): whether elements come in order; they always do.
            return_inverse (bool): whether to tell where each element went.
            return_counts (bool): whether to tell how often each occurs.
            dim (int or None): slices along a dimension instead of elements.

        Example:
            >>> torch.tensor([2, 1, 2]).unique(return_counts=True)
            (tensor([1, 2]), tensor([1, 2]))
        """
        return rushlight.functional.unique(self, sorted, return_inverse, return_counts, dim)

    @_overridable
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None) -> "Any":
        """The elements without consecutive repetitions; see ``torch.unique_consecutive``."""
        return rushlight.functional.unique_consecutive(self, return_inverse, return_counts, dim)

    def __array_namespace__(self, *, api_version=None):
        """The functions of the Array API standard for tensors: `rushlight.array_api`."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"Unrecognized array API version: {api_version!r}")
        from rushlight import array_api

        return array_api

    def __complex__(self):
        return complex(self.item())

    @_overridable
    def to_device(self, device, /, *, stream=None):
        """This tensor on another device, as the Array API standard spells `to`."""
        if stream is not None:
            raise ValueError(f"to_device: streams are not supported, but got {stream!r}")
        return self.to(device)

    @_overridable
    def new(self, *args, **kwargs) -> "Tensor":
        """A tensor of this dtype, made as the legacy constructors make theirs; of a sparse tensor one of the
        indices and values given, or of a size without elements."""
        if self.is_quantized:
            raise RuntimeError(
                "new(): expected key in DispatchKeySet(CPU, CUDA, Meta) but got: QuantizedCPU; a quantized "
                "tensor needs a scale: use torch.quantize_per_tensor or torch.empty_like"
            )
        if self.layout is rushlight.sparse_coo:
            return rushlight.sparse_coo_tensor(*(args or ((0,),)), dtype=self.dtype, **kwargs)
        return _C._legacy_tensor(self.dtype, args, kwargs or None)

    @_overridable
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False) -> "Tensor":
        """A copy of the data in this tensor's dtype and device."""
        if isinstance(data, Tensor):
            data = data.detach()
        result = rushlight.as_tensor(data, dtype=dtype or self.dtype, device=device or self.device)
        shared = isinstance(data, Tensor) or type(data).__module__ == "numpy"
        return (result.clone() if shared else result).requires_grad_(requires_grad)

    @_overridable
    def type_as(self, other) -> "Tensor":
        """This tensor in the other's dtype and device.

        Args:
            other (Tensor): whose dtype and device are taken over.

        Example:
            >>> torch.tensor([1]).type_as(torch.ones(1))
            tensor([1.])
        """
        return self.to(device=other.device, dtype=other.dtype)

    @_overridable
    def apply_(self, function) -> "Tensor":
        """Replace every element by ``function(element)``; slow, one Python call each."""
        return self.copy_(_tensor_of_numbers([function(v) for v in self.flatten().tolist()], self))

    @_overridable
    def map_(self, other, callable) -> "Tensor":
        """Replace every element by ``callable(element, other's element)``; slow."""
        _refuse_gradients("map_", self, other)
        pairs = zip(self.flatten().tolist(), other.expand_as(self).flatten().tolist())
        return self.copy_(_tensor_of_numbers([callable(a, b) for a, b in pairs], self))

    @_overridable
    def map2_(self, x, y, callable) -> "Tensor":
        """Replace every element by ``callable(element, x's element, y's element)``; slow."""
        _refuse_gradients("map2_", self, x, y)
        triples = zip(*(t.expand_as(self).flatten().tolist() for t in (self, x, y)), strict=True)
        return self.copy_(_tensor_of_numbers([callable(*t) for t in triples], self))

    def __rdiv__(self, other):
        return self.reciprocal() * other

    def resize(self, *sizes) -> "Tensor":
        """The same elements in another shape, of as many elements."""
        shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        if math.prod(shape) != self.numel():
            wanted, own = ("x".join(map(str, size)) for size in (shape, self.shape))
            raise RuntimeError(
                f"requested resize to {wanted} ({math.prod(shape)} elements in total), but the given tensor "
                f"has a size of {own} ({self.numel()} elements). autograd's resize can only change the shape "
                "of a given tensor, while preserving the number of elements "
            )
        return self.reshape(shape)

    @_overridable
    def resize_as_sparse_(self, template) -> "Tensor":
        """Gives a COO tensor the size of another in place; what is listed stays."""
        if self.layout is not rushlight.sparse_coo or template.layout is not rushlight.sparse_coo:
            raise RuntimeError("resize_as_sparse_: self and other must be sparse")
        return self.resize_as_(template)

    @_overridable
    def _to_dense(self, dtype=None, masked_grad=None) -> "Tensor":
        return self.to_dense(dtype, masked_grad=masked_grad)

    # Names of Python 2, which classes that take functions over still ask for.
    @_overridable
    def __long__(self):
        return int(self)

    @_overridable
    def __nonzero__(self):
        return bool(self)

    def resize_as(self, tensor) -> "Tensor":
        """The same elements in the shape of `tensor`."""
        return self.reshape(tensor.shape)

    @_overridable
    def module_load(self, other, assign=False):
        """What ``load_state_dict`` keeps: this tensor with `other`'s values, or `other` with `assign`."""
        return other.detach() if assign else self.copy_(other).detach()

    @property
    def __cuda_array_interface__(self):
        """The array interface of Numba, version 2: for libraries that read CUDA memory."""
        if _has_torch_function_unary(self):
            return _C._handle_torch_function(Tensor.__cuda_array_interface__.__get__, (self,), self)
        from rushlight.cuda._array_interface import array_interface

        return array_interface(self)

    def const_data_ptr(self):
        """The address of the first element, to read from."""
        return self.data_ptr()

    @_overridable
    def is_nonzero(self) -> bool:
        return bool(self)

    @_overridable
    def pin_memory(self, device=None) -> "Tensor":
        """A copy in page-locked memory, from which an accelerator copies while the program goes on."""
        from rushlight.cuda import memory as _memory

        return _memory.pinned(self)

    @_overridable
    def record_stream(self, stream) -> None:
        """Keep the memory, once this tensor is gone, until what the stream was given by then is done."""
        from rushlight.cuda import memory as _memory

        _memory.record_stream(self, stream)

    @_overridable
    def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
        """The dimensions from the outermost to the innermost in memory.

        With `ambiguity_check` an order that dimensions of size 1 leave open is a RuntimeError; a list of
        memory formats settles it where the tensor fits exactly one of them.
        """
        order = tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))
        if ambiguity_check is False:
            return order
        formats = [] if ambiguity_check is True else ambiguity_check
        if not isinstance(formats, list) or not all(isinstance(f, rushlight.memory_format) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
        fitting = [f for f in formats if self.is_contiguous(memory_format=f)]
        strides = [self.stride(d) for d in order]
        if len(fitting) == 1:
            last = range(2, self.dim())
            return tuple(range(self.dim())) if fitting[0] is rushlight.contiguous_format else (0, *last, 1)
        if 1 in self.shape or len(set(strides)) < len(strides):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
                "formats."
            )
        return order


def _refuse_gradients(name, *tensors):
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )


def _tensor_of_numbers(values, like):
    """What `apply_` and `map_` got, as a tensor: real numbers only, as the element by element form has it."""
    if not (like.is_complex() or all(isinstance(v, (int, float)) or hasattr(v, "__float__") for v in values)):
        wrong = next(v for v in values if not hasattr(v, "__float__"))
        raise TypeError(f"must be real number, not {type(wrong).__name__}")
    return rushlight.tensor(values, dtype=like.dtype).view(like.shape)


_C._set_tensor_type(Tensor)
