"""Functions of the top-level namespace that are compositions of operators.

Each is public as ``rushlight.NAME``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import rushlight as torch
from rushlight._C import _handle_torch_function, _has_torch_function
from rushlight._command.names import show_from
from rushlight._operators.overridable import make_overridable

__capture__ = "through"  # Note [Capture marks]

block_diag, cartesian_prod = torch.block_diag, torch.cartesian_prod

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "nonzero",
    "norm",
    "split",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]


def _shape_of(shape):
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(size, int) for size in sizes):
        raise RuntimeError(
            f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
        )
    return tuple(sizes)


def broadcast_shapes(*shapes):
    """The shape that all `shapes` (ints or sequences) broadcast to. RuntimeError where they do not.

    Args:
        shapes (sequence of int): shapes.

    Raises: RuntimeError where they do not broadcast.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    sizes = [_shape_of(s) for s in shapes]
    result = [1] * max((len(s) for s in sizes), default=0)
    for shape in sizes:
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[i] in (1, result[i]):
                continue
            if result[i] != 1:
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"{', '.join(str(s) for s in sizes)} differ at dimension {i}"
                )
            result[i] = shape[i]
    return torch.Size(result)


_broadcast_tensors = torch._C._VariableFunctions.broadcast_tensors


def broadcast_tensors(*tensors):
    """Views of all tensors, expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    return _broadcast_tensors(tensors)


def _one_or_all(tensors):
    """What ``f(t)``, ``f(t, u)`` and ``f([t, u])`` are given, as the core takes it."""
    return tensors[0] if len(tensors) == 1 else tensors


_atleast_1d = torch._C._VariableFunctions.atleast_1d
_atleast_2d = torch._C._VariableFunctions.atleast_2d
_atleast_3d = torch._C._VariableFunctions.atleast_3d


def atleast_1d(*tensors):
    """The tensors with at least one dimension."""
    return _atleast_1d(_one_or_all(tensors))


def atleast_2d(*tensors):
    """The tensors with at least two dimensions; new ones go in front."""
    return _atleast_2d(_one_or_all(tensors))


def atleast_3d(*tensors):
    """The tensors with at least three dimensions, placed as NumPy places them."""
    return _atleast_3d(_one_or_all(tensors))


def _stored(result, out, name):
    """`result`, written to `out` where one is given, which must have its dtype and device."""
    if out is None:
        return result
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out.device != result.device:
        raise RuntimeError(
            f"{name}(): expected out tensor to have device {result.device}, but got {out.device}"
        )
    if out.dtype != result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
    return out.resize_(result.shape).copy_(result)


_tensordot = torch._C._VariableFunctions.tensordot


def tensordot(a, b, dims=2, out=None):
    """Contracts dimensions of `a` with dimensions of `b`.

    `dims` is a number (the last of `a` with the first of `b`) or a pair of lists of dimensions.
    """
    if isinstance(dims, torch.Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got {dims=}, "
                f"ndim_a={a.dim()}, ndim_b={b.dim()}"
            )
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    elif isinstance(dims, (tuple, list)):
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing "
            f"two lists, but got {dims=}"
        )
    return _tensordot(a, b, dims_a, dims_b) if out is None else _tensordot(a, b, dims_a, dims_b, out=out)


def _letter(subscript):
    if subscript is Ellipsis:
        return "..."
    if not 0 <= subscript < 52:
        raise ValueError("einsum(): subscripts must be in the range [0, 52)")
    return chr(ord("A") + subscript) if subscript < 26 else chr(ord("a") + subscript - 26)


_einsum = torch._C._VariableFunctions.einsum


def einsum(*args):
    """Sum of products by Einstein's convention.

    ``einsum("ij,jk->ik", a, b)``, or ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Args:
        equation (str): letters for the dimensions of each operand, then of the result: "ij,jk->ik".
        operands (Tensor): the operands.

    Formula: the sum over all letters that the result lacks of the product of the operands

    Raises: RuntimeError where a letter stands for different sizes.

    Example:
        >>> torch.einsum("ij,j->i", torch.ones(2, 3), torch.arange(3.0))
        tensor([3., 3.])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], torch.Tensor):
        equation = ",".join("".join(map(_letter, labels)) for labels in args[1::2])
        if len(args) % 2 == 1:
            equation = ",".join("".join(map(_letter, labels)) for labels in args[1:-1:2])
            equation += "->" + "".join(map(_letter, args[-1]))
            operands = args[:-1:2]
        else:
            operands = args[::2]
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum(equation, *operands[0])
    if _has_torch_function(operands):  # which sees them side by side, however they came
        return _handle_torch_function(einsum, operands, equation, *operands)
    return _einsum(equation, operands)


_CDIST_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
_cdist = torch._C._VariableFunctions.cdist


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance between each row of x1 and each row of x2."""
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _cdist(x1, x2, p, _CDIST_MODES[compute_mode])


_chain_matmul = torch._C._VariableFunctions.chain_matmul


def chain_matmul(*matrices, out=None):
    """The product of matrices, associated in the cheapest order."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = matrices[0]
    return _chain_matmul(matrices) if out is None else _chain_matmul(matrices, out=out)


def lu(A, pivot=True, get_infos=False, out=None):
    """The former name of `linalg.lu_factor`: factors and pivots, with `get_infos` LAPACK's status too."""
    factors = torch._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    results = factors if get_infos else (factors.LU, factors.pivots)
    if out is None:
        return results
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for target, result in zip(out, results, strict=True):
        target.resize_(result.shape).copy_(result)
    return out


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The vector norm of order `p` over `dim` (or all elements); ``'fro'`` is 2, ``'nuc'`` a matrix norm.

    Args:
        input (Tensor): the tensor.
        p (float or str): the order: 'fro', 'nuc', inf or a number.
        dim (int, sequence of int or None): the dimensions; None is all.
        keepdim (bool): whether they stay, with size 1.
        out (Tensor or None): takes the result.
        dtype (dtype or None): what is computed with.

    Formula: (sum over i of |x_i|**p)**(1 / p)

    Example:
        >>> torch.norm(torch.tensor([[3.0, 4.0]]), dim=1)
        tensor([5.])
    """
    if dtype is not None:
        input = input.to(dtype)
    if p == "nuc" or isinstance(p, str) and p != "fro":  # the latter is refused there
        dims = tuple(range(input.dim())) if dim is None else dim
        result = torch.linalg.matrix_norm(input, p, dims, keepdim)
    else:
        order = 2.0 if p == "fro" or p is None else p
        result = torch._C._linalg.vector_norm(input, order, dim, keepdim)
    return _stored(result, out, "norm")


_nonzero = torch._C._VariableFunctions.nonzero


def nonzero(input, *, out=None, as_tuple=False):
    """Indices of the elements that are not zero: one row each, or one tensor a dimension with `as_tuple`."""
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple((input.unsqueeze(0) if input.dim() == 0 else input).nonzero().unbind(1))
    return _nonzero(input) if out is None else _nonzero(input, out=out)


_split = torch._C._VariableFunctions.split


def split(tensor, split_size_or_sections, dim=0):
    """Consecutive views of `split_size_or_sections` elements along `dim`, or of the sizes in that list.

    Args:
        tensor (Tensor): what is split.
        split_size_or_sections (int or sequence of int): elements of each piece, or of all.
        dim (int): the dimension.

    Shape: a tuple of views; the last may be smaller.

    Raises: RuntimeError where sections do not add up to the size.

    Example:
        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size_or_sections, torch.Tensor) and split_size_or_sections.numel() == 1:
        split_size_or_sections = int(split_size_or_sections)
    if type(tensor) is not torch.Tensor and hasattr(tensor, "check_parts"):
        tensor.check_parts(split_size_or_sections, dim)  # of numbers that a trace reads from its data
    return _split(tensor, split_size_or_sections, dim)


def _chosen(output, inverse, counts, return_inverse, return_counts):
    extra = (inverse,) * bool(return_inverse) + (counts,) * bool(return_counts)
    return (output, *extra) if extra else output


_unique_dim = torch._C._VariableFunctions.unique_dim


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements, or slices along `dim`; with where each came from and how often, if asked for.

    Args:
        input (Tensor): the tensor.
        sorted (bool): whether elements come in order; they always do.
        return_inverse (bool): whether to tell where each element went.
        return_counts (bool): whether to tell how often each occurs.
        dim (int or None): slices along a dimension instead of elements.

    Example:
        >>> torch.unique(torch.tensor([2, 1, 2]))
        tensor([1, 2])
    """
    if dim is None:
        found = torch._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _chosen(*found, return_inverse, return_counts)


def _unique(input, sorted=True, return_inverse=False):
    """The distinct elements and where each element went, which is empty unless asked for."""
    output, inverse, _ = torch._unique2(input, sorted, return_inverse, False)
    return output, inverse


_unique_consecutive = torch._C._VariableFunctions.unique_consecutive


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or slices along `dim`) without consecutive repetitions; extras as for `unique`."""
    return _chosen(
        *_unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts
    )


def unravel_index(indices, shape):
    """Coordinates, one tensor a dimension, of flat `indices` into a tensor of `shape`."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool:
        raise TypeError(f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(
            f"unravel_index(): expected 'shape' to be int or sequence of ints, but got {type(shape)}"
        )
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(
            "unravel_index(): expected 'shape' sequence to only contain ints, but got "
            f"{next(type(size) for size in sizes if not isinstance(size, int))}"
        )
    if any(s < 0 for s in sizes):
        raise ValueError(f"unravel_index(): 'shape' cannot have negative values, but got {tuple(sizes)}")
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    indices = indices.to(torch.int64)
    return tuple(
        indices.div(step, rounding_mode="floor") % size for step, size in zip(steps, sizes, strict=True)
    )


stft = torch._C._VariableFunctions.stft
istft = torch._C._VariableFunctions.istft


_meshgrid = torch._C._VariableFunctions.meshgrid


def meshgrid(*tensors, indexing=None):
    """Coordinates of the grid spanned by 0-dim or 1-dim tensors, one tensor for each axis.

    Args:
        tensors (Tensor): vectors or numbers.
        indexing (str or None): 'ij', the order of the arguments, or 'xy', with the first two swapped.

    Shape: each (n_1, n_2, ..), n_i being the size of tensor i.

    Example:
        >>> a, b = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij")
        >>> a.shape, b[0]
        (torch.Size([2, 3]), tensor([3, 4, 5]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if indexing is None:
        if tensors:
            warnings.warn(
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                stacklevel=2,
            )
        indexing = "ij"
    return _meshgrid(tensors, indexing=indexing)


make_overridable(
    globals(),
    lists="atleast_1d atleast_2d atleast_3d broadcast_tensors chain_matmul meshgrid".split(),
    skip=["broadcast_shapes", "einsum", "make_overridable"],
)


def __getattr__(name):
    if name == "F":  # programs say torch.functional.F, which PyTorch has by the way its module imports it
        return torch.nn.functional
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


show_from("", nonzero)
