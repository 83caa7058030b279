"""Initialization of tensors in place, through `Tensor.uniform_` and `Tensor.normal_`."""

import math
import warnings

import rushlight as torch
from rushlight._operators.overridable import overridable

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_",
    "dirac_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_",
    "sparse_", "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal",
    "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse",
]  # fmt: skip

_LINEAR = {
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "sigmoid",
}  # fmt: skip


def calculate_gain(nonlinearity, param=None):
    """The factor of the standard deviation that keeps activations at unit scale behind a nonlinearity.

    Args:
        nonlinearity (str): 'linear', a convolution's name, 'sigmoid', 'tanh', 'relu', 'leaky_relu' or 'selu'.
        param (float, optional): the negative slope of 'leaky_relu'.

    Raises: ValueError for another name.

    Example:
        >>> torch.nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _no_grad_uniform_(tensor, a, b, generator=None):
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor, val):
    with torch.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    with torch.no_grad():
        return tensor.zero_()


@overridable
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fills a tensor with numbers from U(a, b).

    Args:
        tensor (Tensor): what is filled.
        a (float): lower bound.
        b (float): upper bound.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Example:
        >>> w = torch.nn.init.uniform_(torch.empty(3), 1.0, 2.0)
        >>> bool(w.min() >= 1)
        True
    """
    return _no_grad_uniform_(tensor, a, b, generator)


@overridable
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with numbers from N(mean, std²).

    Args:
        tensor (Tensor): is filled.
        mean (float): the mean.
        std (float): the standard deviation.
        generator (Generator or None): where random numbers come from.

    Formula: w ~ N(mean, std**2)

    Example:
        >>> torch.nn.init.normal_(torch.empty(2, 3), std=0.02).shape
        torch.Size([2, 3])
    """
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fills a tensor with numbers from N(mean, std**2) within [a, b].

    Args:
        tensor (Tensor): what is filled.
        mean (float): mean of the normal distribution.
        std (float): its standard deviation.
        a (float): lower bound.
        b (float): upper bound.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Example:
        >>> w = torch.nn.init.trunc_normal_(torch.empty(100), std=5.0)
        >>> bool(w.abs().max() <= 2)
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )

    with torch.no_grad():
        return _rejection_sample_(tensor, mean, std, a, b, generator)


def _rejection_sample_(tensor, mean, std, a, b, generator):
    """Draw whole tensors until each element has had a proposal that is accepted."""
    if tensor.is_meta:
        return tensor

    def cdf(x):
        return (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0

    # Normal proposals, unless most would fall outside; then uniform ones, accepted by relative density.
    if cdf(b) - cdf(a) > 0.3:
        low, high = (torch.tensor(bound, dtype=tensor.dtype).item() for bound in (a, b))

        def draw(place):
            place.normal_(mean, std, generator=generator)
            return (place < low) | (place > high)

    else:
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

        def draw(place):
            place.uniform_(a, b, generator=generator)
            density = ((place - mean) / std).pow(2).mul_(-0.5).sub_(peak)
            return torch.empty_like(tensor).uniform_(generator=generator).log_() > density

    # The first proposal is drawn in the tensor itself, in the order of its memory.
    waiting = draw(tensor)
    while waiting.any():
        proposal = torch.empty_like(tensor)
        refused = draw(proposal)
        tensor.copy_(torch.where(waiting, proposal, tensor))
        waiting = waiting & refused
    return tensor


@overridable
def constant_(tensor, val):
    """Fill with val.

    Args:
        tensor (Tensor): is filled.
        val (float): with this.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    return _no_grad_fill_(tensor, val)


def ones_(tensor):
    """Fills a tensor with ones.

    Args:
        tensor (Tensor): what is filled.

    Returns: the tensor.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor):
    """Fill with 0.

    Args:
        tensor (Tensor): is filled.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    return _no_grad_zero_(tensor)


def eye_(tensor):
    """Makes a matrix the identity, as far as it goes.

    Args:
        tensor (Tensor): a matrix.

    Returns: the tensor.

    Raises: ValueError where it has not two dimensions.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor, groups=1):
    """Makes a convolution's weight pass its channels through unchanged, as many as there are outputs.

    Args:
        tensor (Tensor): a weight of three to five dimensions.
        groups (int): groups of the convolution.

    Returns: the tensor.

    Raises: ValueError where it has another rank, or its first size is no multiple of `groups`.

    Example:
        >>> w = torch.nn.init.dirac_(torch.empty(2, 2, 3))
        >>> torch.conv1d(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), w, padding=1)
        tensor([[[1., 2.],
                 [3., 4.]]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_per_group = tensor.size(0) // groups
    center = [n // 2 for n in tensor.shape[2:]]
    with torch.no_grad():
        tensor.zero_()
        for g in range(groups):
            for c in range(min(out_per_group, tensor.size(1))):
                position = (g * out_per_group + c, c, *center)
                tensor[position] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Glorot's uniform initialization.

    Args:
        tensor (Tensor): is filled; at least two dimensions.
        gain (float): a factor.
        generator (Generator or None): where random numbers come from.

    Formula: w ~ U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out))

    Raises: ValueError where the tensor has fewer than two dimensions.

    Example:
        >>> torch.nn.init.xavier_uniform_(torch.empty(3, 3)).abs().max().item() <= 1
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Glorot's normal initialization (Glorot and Bengio 2010).

    Args:
        tensor (Tensor): a weight of two dimensions or more.
        gain (float): factor of the standard deviation.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Formula: N(0, std**2), std = gain * sqrt(2 / (fan_in + fan_out))

    Raises: ValueError where it has fewer than two dimensions.

    Example:
        >>> torch.nn.init.xavier_normal_(torch.empty(3, 5)).shape
        torch.Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """He's standard deviation, or None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's uniform initialization; a is the negative slope of a leaky ReLU.

    Args:
        tensor (Tensor): is filled; at least two dimensions.
        a (float): slope of the leaky rectifier below zero.
        mode (str): 'fan_in' keeps the variance of forward passes, 'fan_out' that of backward passes.
        nonlinearity (str): what follows, which gives the gain.
        generator (Generator or None): where random numbers come from.

    Formula: w ~ U(-b, b), b = gain * sqrt(3 / fan)

    Raises: ValueError where the tensor has fewer than two dimensions.

    Example:
        >>> torch.nn.init.kaiming_uniform_(torch.empty(3, 6)).abs().max().item() <= 1
        True
    """
    if torch.overrides.has_torch_function((tensor,)):
        return torch.overrides.handle_torch_function(
            kaiming_uniform_,
            (tensor,),
            tensor=tensor,
            a=a,
            mode=mode,
            nonlinearity=nonlinearity,
            generator=generator,
        )
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's normal initialization (He and others 2015).

    Args:
        tensor (Tensor): a weight of two dimensions or more.
        a (float): negative slope, for 'leaky_relu'.
        mode (str): 'fan_in' keeps the variance forward, 'fan_out' backward.
        nonlinearity (str): what follows, see `calculate_gain`.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Formula: N(0, std**2), std = gain / sqrt(fan)

    Raises: ValueError for another mode or nonlinearity, or fewer than two dimensions.

    Example:
        >>> torch.nn.init.kaiming_normal_(torch.empty(3, 5), nonlinearity="relu").shape
        torch.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    with torch.no_grad():
        return tensor.normal_(0, std, generator=generator)


def _orthonormal_columns(a):
    """The Q of a = QR where R has a positive diagonal: Gram-Schmidt in blocks, done twice for accuracy."""
    q = torch.empty_like(a)
    for start in range(0, a.size(1), 32):
        block, done = a[:, start : start + 32].clone(), q[:, :start]
        for _ in range(2 if start else 0):
            block -= done @ (done.t() @ block)
        for j in range(block.size(1)):
            column, before = block[:, j], block[:, :j]
            for _ in range(2 if j else 0):
                column -= before @ (before.t() @ column)
            column /= (column * column).sum().sqrt()
        q[:, start : start + 32] = block
    return q


def orthogonal_(tensor, gain=1, generator=None):
    """Fills a tensor with a (semi-)orthogonal matrix (Saxe and others 2014), the dimensions after the first
    as one.

    Args:
        tensor (Tensor): two dimensions or more.
        gain (float): a factor.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Raises: ValueError where it has fewer than two dimensions.

    Example:
        >>> w = torch.nn.init.orthogonal_(torch.empty(2, 3))
        >>> (w @ w.T).round(decimals=3).abs()
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    q = _orthonormal_columns(flat)
    if rows < cols:
        q.t_()
    with torch.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fills a matrix from N(0, std**2), a part of each column with zeros (Martens 2010).

    Args:
        tensor (Tensor): a matrix.
        sparsity (float): the part.
        std (float): standard deviation of the others.
        generator (Generator, optional): whose numbers are drawn.

    Returns: the tensor.

    Raises: ValueError where it has not two dimensions.

    Example:
        >>> w = torch.nn.init.sparse_(torch.empty(4, 3), sparsity=0.5)
        >>> (w == 0).sum(0)
        tensor([2, 2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[torch.randperm(rows)[:zeros], col] = 0
    return tensor


def _deprecated(fn):
    name = fn.__name__[:-1]

    def old(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2
        )
        return fn(*args, **kwargs)

    old.__name__ = name
    old.__doc__ = f"Old name of `{name}_`."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
