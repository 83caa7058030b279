"""Pooling: what is optional in the arguments of the core's operators."""

import rushlight as torch
from rushlight import Tensor
from rushlight.nn._ntuple import _pair, _single, _triple


def _max_pool(n):
    with_indices = getattr(torch._C._nn, f"max_pool{n}d_with_indices")
    values = getattr(torch._C._VariableFunctions, f"max_pool{n}d")

    def max_pool(
        input: Tensor,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ):
        if return_indices:
            return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return values(input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{n}d"
    max_pool.__doc__ = (
        f"The maximum of each window of the last {n} dimensions; with flat indices when asked for."
    )
    return max_pool


def _filled(output_size, input):
    """output_size with the input's own size where it says None."""
    if isinstance(output_size, int):
        return output_size
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if None not in output_size:
        return output_size
    sizes = input.shape[-len(output_size) :]
    return [own if wanted is None else wanted for wanted, own in zip(output_size, sizes)]


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Means over windows that cut the last 2 dimensions into `output_size` parts."""
    return torch._C._nn._adaptive_avg_pool2d(input, _filled(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """Means over windows that cut the last 3 dimensions into `output_size` parts."""
    return torch._C._nn._adaptive_avg_pool3d(input, _filled(output_size, input))


def _adaptive_max_pool(n):
    with_indices = getattr(torch._C._nn, f"adaptive_max_pool{n}d_with_indices")

    def adaptive_max_pool(input: Tensor, output_size, return_indices: bool = False):
        found = with_indices(input, _filled(output_size, input))
        return found if return_indices else found[0]

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = f"adaptive_max_pool{n}d"
    adaptive_max_pool.__doc__ = (
        f"Maxima over windows that cut the last {n} dimensions into `output_size` parts."
    )
    return adaptive_max_pool


max_pool1d, max_pool2d, max_pool3d = (_max_pool(n) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(n) for n in (1, 2, 3))


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The given output size if it is within one stride of the default, which inverts pooling's formula."""
    n = len(kernel_size)
    default = [
        (size - 1) * s + k - 2 * p for size, s, k, p in zip(input.shape[-n:], stride, kernel_size, padding)
    ]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return list(output_size)


def _max_unpool(sides, input, indices, kernel_size, stride, padding, output_size):
    kernel = sides(kernel_size)
    n = len(sides(0))
    if len(kernel) != n:
        raise RuntimeError(f"max_unpool{n}d: kernel_size must be one int, or {n} ints, but got {kernel}")
    step = sides(kernel_size if stride is None else stride)
    size = _unpool_output_size(input, kernel, step, sides(padding), output_size)
    if stride is not None and any(s <= 0 for s in step):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(step)}")
    if n == 3:
        return torch._C._nn.max_unpool3d(input, indices, size, step, sides(padding))
    if n == 2:
        return torch._C._nn.max_unpool2d(input, indices, size)
    return torch._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Put the values of `max_pool1d` back at their indices, zero elsewhere."""
    return _max_unpool(_single, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Put the values of `max_pool2d` back at their indices, zero elsewhere."""
    return _max_unpool(_pair, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Put the values of `max_pool3d` back at their indices, zero elsewhere."""
    return _max_unpool(_triple, input, indices, kernel_size, stride, padding, output_size)


def _fractional_max_pool(sides, input, kernel_size, output_size, output_ratio, samples, name):
    n = len(sides(1))
    for what, given in ("kernel_size", kernel_size), ("output_size", output_size):
        if isinstance(given, (tuple, list)) and len(given) != n:
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of Ints")
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(sides(output_ratio)) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], sides(output_ratio))]
    if samples is None:
        batch = input.size(0) if input.dim() == n + 2 else 1
        samples = torch.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    return getattr(torch._C._nn, name)(input, sides(kernel_size), sides(output_size), samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Fractional max pooling of images: the maxima and where they stood."""
    return _fractional_max_pool(
        _pair, input, kernel_size, output_size, output_ratio, _random_samples, "fractional_max_pool2d"
    )


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Fractional max pooling of volumes: the maxima and where they stood."""
    return _fractional_max_pool(
        _triple, input, kernel_size, output_size, output_ratio, _random_samples, "fractional_max_pool3d"
    )


def fractional_max_pool2d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Max pooling over windows spaced at random; with return_indices, as a pair."""
    both = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Max pooling over windows spaced at random; with return_indices, as a pair."""
    both = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]
