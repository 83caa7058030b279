"""Normalizations composed of other operators."""

import math

import rushlight as torch
from rushlight._C import _nn
from rushlight.nn.functional._arguments import type_name


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Each element divided by a power of the mean square of its neighbours in the channel dimension."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    before, after = size // 2, (size - 1) // 2
    squares = input.mul(input)
    if dim == 3:
        padded = _nn.pad(squares.unsqueeze(1), (0, 0, before, after))
        mean = _nn.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.shape
        flat = squares.reshape(sizes[0], 1, sizes[1], sizes[2], -1)
        padded = _nn.pad(flat, (0, 0, 0, 0, before, after))
        mean = _nn.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(sizes)
    return input / mean.mul(alpha).add(k).pow(beta)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Batch normalization with every sample's channel as a channel of its own."""
    sizes = input.shape
    if use_input_stats and math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {sizes}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = sizes[:2]

    def each(t):
        return None if t is None else t.repeat(n)

    def statistics(t):  # in the type that the parameters have: they are copied anyway
        first = weight if weight is not None else bias
        half = input.dtype in (torch.float16, torch.bfloat16)
        dtype = first.dtype if first is not None else torch.float32 if half else input.dtype
        return None if t is None else each(t).to(dtype)

    if (
        running_mean is not None
        and running_var is not None
        and running_var.dtype not in (running_mean.dtype, input.dtype)
    ):
        raise RuntimeError(
            f"expected scalar type {type_name(running_mean)} but found {type_name(running_var)}: "
            "instance_norm got a running_var of another dtype than running_mean"
        )
    mean, var = statistics(running_mean), statistics(running_var)
    out = torch.batch_norm(
        input.contiguous().view(1, n * c, *sizes[2:]),
        each(weight),
        each(bias),
        mean,
        var,
        use_input_stats,
        momentum,
        eps,
        torch.backends.cudnn.enabled,
    )
    if use_input_stats:
        with torch.no_grad():
            for running, batch in ((running_mean, mean), (running_var, var)):
                if running is not None:
                    running.copy_(batch.view(n, c).mean(0))
    return out.view(sizes)
