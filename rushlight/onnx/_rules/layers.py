"""Matrix products, convolutions, normalisations, pooling, resizing."""

import math

import rushlight as torch

from .._graph import Value
from ._registry import RULES, rule


def _matmul(g, a, b):
    return g.op("MatMul", a, b, shape=g.out.shape)


for _name in ("mm", "bmm", "mv", "dot", "vdot", "matmul"):
    RULES[_name] = _matmul


@rule("addmm")
def addmm(g, x, a, b, *, beta=1, alpha=1):
    return g.op("Gemm", a, b, x, alpha=float(alpha), beta=float(beta), shape=g.out.shape)


@rule("baddbmm")
def baddbmm(g, x, a, b, *, beta=1, alpha=1):
    product = g.op("MatMul", a, b, shape=g.out.shape)
    product = product if alpha == 1 else g.op("Mul", product, alpha)
    return g.op("Add", x if beta == 1 else g.op("Mul", x, beta), product, shape=g.out.shape)


@rule("linear")
def linear(g, x, weight, bias=None):
    product = g.op("MatMul", x, g.op("Transpose", weight, perm=[1, 0]), shape=g.out.shape)
    return product if bias is None else g.op("Add", product, bias)


@rule("convolution")
def convolution(g, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    kind = "ConvTranspose" if transposed else "Conv"
    extra = {"output_padding": list(output_padding)} if transposed and any(output_padding) else {}
    spatial = weight.dim - 2
    strides, pads, dilations = (
        list(v) * (spatial if len(v) == 1 else 1) for v in (stride, padding, dilation)
    )
    attributes = {"strides": strides, "pads": pads * 2, "dilations": dilations, "group": groups, **extra}
    if x.dim == spatial + 2:
        return g.op(kind, x, weight, bias, shape=g.out.shape, **attributes)
    batch = g.op("Unsqueeze", x, g.ints([0]), shape=(1, *x.shape))
    return g.op("Squeeze", g.op(kind, batch, weight, bias, **attributes), g.ints([0]), shape=g.out.shape)


@rule("native_batch_norm")
def native_batch_norm(g, x, weight, bias, mean, var, training, momentum, eps):
    if mean is None:
        return _by_own_statistics(g, x, weight, bias, eps), None, None
    if training:
        raise NotImplementedError(
            "onnx.export: batch norm by the batch's own statistics; call model.eval() before exporting"
        )
    weight = g.constant(torch.ones(mean.shape), mean.dtype) if weight is None else weight
    bias = g.constant(torch.zeros(mean.shape), mean.dtype) if bias is None else bias
    y = g.op("BatchNormalization", x, weight, bias, mean, var, epsilon=eps, momentum=1 - momentum)
    return y, None, None


def _by_own_statistics(g, x, weight, bias, eps):
    dims = g.ints([d for d in range(x.dim) if d != 1])
    off = g.op("Sub", x, g.op("ReduceMean", x, dims, keepdims=1), shape=x.shape)
    variance = g.op("ReduceMean", g.op("Mul", off, off), dims, keepdims=1)
    return _affine(g, g.op("Div", off, g.op("Sqrt", g.op("Add", variance, eps))), weight, bias)


@rule("native_layer_norm")
def native_layer_norm(g, x, shape, weight, bias, eps):
    weight = g.constant(torch.ones(tuple(shape)), x.dtype) if weight is None else weight
    y = g.op("LayerNormalization", x, weight, bias, axis=-len(shape), epsilon=eps)
    return y, None, None


def _affine(g, y, weight, bias):
    shape = [-1] + [1] * (y.dim - 2)
    if weight is not None:
        y = g.op("Mul", y, g.reshape(weight, shape), shape=y.shape)
    return y if bias is None else g.op("Add", y, g.reshape(bias, shape), shape=y.shape)


@rule("native_group_norm")
def native_group_norm(g, x, weight, bias, n, c, hxw, group, eps):
    """Instance normalisation of (batch, groups, the rest)."""
    ones = g.constant(torch.ones(group), x.dtype)
    zeros = g.constant(torch.zeros(group), x.dtype)
    flat = g.op("Reshape", x, g.ints([0, group, -1]), shape=(x.shape[0], group, 1))
    y = g.op("InstanceNormalization", flat, ones, zeros, epsilon=eps)
    y = g.op("Reshape", y, g.op("Shape", x, dtype=torch.int64, shape=(x.dim,)), shape=x.shape)
    return _affine(g, y, weight, bias), None, None


@rule("_fused_rms_norm", "rms_norm")
def rms_norm(g, x, shape, weight=None, eps=None):
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    squares = g.op("ReduceMean", g.op("Mul", x, x), g.ints(list(range(-len(shape), 0))), keepdims=1)
    y = g.op("Div", x, g.op("Sqrt", g.op("Add", squares, eps)), shape=x.shape)
    y = y if weight is None else g.op("Mul", y, weight)
    return (y, None) if isinstance(g.out, tuple) else y


def _each(value, n):
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * n if len(value) == 1 else value


def _with_batch(g, x, spatial, pool):
    """Runs the rule on an input without a batch dimension too."""
    if x.dim == spatial + 2:
        return pool(x)
    results = pool(g.op("Unsqueeze", x, g.ints([0]), shape=(1, *x.shape)))
    return [None if r is None else g.op("Squeeze", r, g.ints([0]), shape=r.shape[1:]) for r in results]


def _max_pool(spatial):
    def translate(g, x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        kernel = _each(kernel_size, spatial)
        how = {
            "kernel_shape": kernel,
            "strides": _each(stride or kernel, spatial),
            "pads": _each(padding, spatial) * 2,
            "dilations": _each(dilation, spatial),
            "ceil_mode": int(ceil_mode),
        }

        def pool(x):
            y, indices = g.op("MaxPool", x, outputs=2, **how)
            return y, _within_plane(g, x, Value(indices.name, torch.int64, y.shape), spatial)

        return _with_batch(g, x, spatial, pool)

    return translate


def _within_plane(g, x, indices, spatial):
    """ONNX counts indices through the whole tensor, PyTorch through each plane."""
    plane = g.size(x, -1)
    for d in range(2, spatial + 1):
        plane = g.op("Mul", plane, g.size(x, -d))
    return g.op("Mod", indices, plane)


def _avg_pool(spatial):
    def translate(
        g,
        x,
        kernel_size,
        stride=(),
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        kernel = _each(kernel_size, spatial)
        how = {
            "kernel_shape": kernel,
            "strides": _each(stride or kernel, spatial),
            "pads": _each(padding, spatial) * 2,
            "ceil_mode": int(ceil_mode),
            "count_include_pad": int(count_include_pad or divisor_override is not None),
        }

        def pool(x):
            y = g.op("AveragePool", x, **how)
            if divisor_override is not None:
                y = g.op("Mul", y, math.prod(kernel) / divisor_override)
            return [y]

        return _with_batch(g, x, spatial, pool)[0]

    return translate


def _pool_along(g, x, reduction, axis, count):
    """To `count` elements along an axis, by windows that may overlap and differ by one."""
    size = x.shape[axis]
    pieces = []
    for i in range(count):
        ends = g.ints([i * size // count]), g.ints([-(-(i + 1) * size // count)])
        part = g.op("Slice", x, *ends, g.ints([axis]), shape=x.shape)
        pieces.append(g.op(reduction, part, g.ints([axis]), keepdims=1))
    shape = [*x.shape]
    shape[axis] = count
    return g.op("Concat", *pieces, axis=axis, shape=tuple(shape))


def _adaptive(spatial, kind, reduction):
    """Pools to fixed sizes: all at once, by windows that are alike, or one dimension after another."""

    def translate(g, x, output_size):
        wanted, sizes = _each(output_size, spatial), x.shape[-spatial:]
        several = isinstance(g.out, (list, tuple))
        changing = any(g.changes(0, d) for d in range(-spatial, 0))
        if all(n == 1 for n in wanted) and (changing or not several):
            shape = (*x.shape[:-spatial], *wanted)
            pooled = g.op(reduction, x, g.ints(list(range(-spatial, 0))), keepdims=1, shape=shape)
            return (pooled, None) if several else pooled
        g.refuse_changing(0, range(-spatial, 0), "adaptive pooling to more than one element of")
        if any(n % w for n, w in zip(sizes, wanted, strict=True)):
            for axis, count in zip(range(-spatial, 0), wanted, strict=True):
                x = _pool_along(g, x, reduction, axis, count)
            return (x, None) if several else x
        kernel = [n // w for n, w in zip(sizes, wanted, strict=True)]
        if several:
            return _max_pool(spatial)(g, x, kernel)
        return _with_batch(
            g, x, spatial, lambda x: [g.op(kind, x, kernel_shape=kernel, strides=kernel, shape=g.out.shape)]
        )[0]

    return translate


for _n in (1, 2, 3):
    RULES[f"max_pool{_n}d_with_indices"] = _max_pool(_n)
    RULES[f"avg_pool{_n}d"] = _avg_pool(_n)
    RULES[f"adaptive_max_pool{_n}d_with_indices"] = _adaptive(_n, "MaxPool", "ReduceMax")
    RULES[f"{'_' if _n > 1 else ''}adaptive_avg_pool{_n}d"] = _adaptive(_n, "AveragePool", "ReduceMean")


@rule("col2im")
def col2im(g, x, output_size, kernel_size, dilation, padding, stride):
    how = {"dilations": dilation, "pads": [*padding, *padding], "strides": stride}
    how = {name: list(values) for name, values in how.items()}
    batched = x if x.dim == 3 else g.op("Unsqueeze", x, g.ints([0]), shape=(1, *x.shape))
    image = g.op(
        "Col2Im", batched, g.ints(list(output_size)), g.ints(list(kernel_size)), shape=g.out.shape, **how
    )
    return image if x.dim == 3 else g.op("Squeeze", image, g.ints([0]), shape=g.out.shape)


@rule("im2col")
def im2col(g, x, kernel_size, dilation, padding, stride):
    """The rows, then the columns of all windows are gathered; windows go last."""
    g.refuse_changing(0, [-2, -1], "windows over")
    x = x if x.dim == 4 else g.op("Unsqueeze", x, g.ints([0]), shape=(1, *x.shape))
    pads = [0, 0, *padding] * 2
    x = g.op("Pad", x, g.ints(pads), shape=(*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], padding))))
    for axis, k, d, s in zip((2, 4), kernel_size, dilation, stride, strict=True):
        windows = (x.shape[axis] - d * (k - 1) - 1) // s + 1
        at = torch.arange(k)[:, None] * d + torch.arange(windows) * s
        shape = (*x.shape[:axis], k, windows, *x.shape[axis + 1 :])
        x = g.op("Gather", x, g.constant(at), axis=axis, shape=shape)
    x = g.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    lead = [] if len(g.out.shape) == 2 else [g.size(x, 0)]
    return g.op("Reshape", x, g.ints([*lead, *g.out.shape[-2:]]), shape=g.out.shape)


def _resize(mode, **attributes):
    def translate(g, x, output_size, *rest):
        align = bool(rest) and isinstance(rest[0], bool) and rest[0]
        how = {"coordinate_transformation_mode": "align_corners"} if align else {}
        sizes = g.ints([*(g.size(x, d) if i else g.size(x, 0) for i, d in enumerate((0, 1))), *output_size])
        return g.op("Resize", x, None, None, sizes, mode=mode, shape=g.out.shape, **{**attributes, **how})

    return translate


for _n, _linear in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    RULES[f"upsample_nearest{_n}d"] = _resize(
        "nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    RULES[f"upsample_{_linear}"] = _resize("linear", coordinate_transformation_mode="pytorch_half_pixel")
RULES["upsample_bicubic2d"] = _resize(
    "cubic", coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75
)


for _n in (1, 2, 3):
    RULES[f"_upsample_nearest_exact{_n}d"] = _resize(
        "nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil"
    )
RULES["_upsample_bilinear2d_aa"] = _resize(
    "linear", coordinate_transformation_mode="pytorch_half_pixel", antialias=1, exclude_outside=1
)
RULES["_upsample_bicubic2d_aa"] = _resize(
    "cubic",
    coordinate_transformation_mode="pytorch_half_pixel",
    cubic_coeff_a=-0.5,
    antialias=1,
    exclude_outside=1,
)


@rule("_linalg_det")
def det(g, x, *_):
    return g.op("Det", x, shape=x.shape[:-2]), None, None


@rule("grid_sampler_3d")
def grid_sampler_3d(g, x, grid, interpolation_mode, padding_mode, align_corners):
    if g.opset < 20:
        raise NotImplementedError("onnx.export: grid_sample of volumes needs opset_version=20 or later")
    return grid_sampler(g, x, grid, interpolation_mode, padding_mode, align_corners)


@rule("grid_sampler_2d")
def grid_sampler(g, x, grid, interpolation_mode, padding_mode, align_corners):
    linear, cubic = ("linear", "cubic") if g.opset >= 20 else ("bilinear", "bicubic")
    how = {
        "mode": (linear, "nearest", cubic)[interpolation_mode],
        "padding_mode": ("zeros", "border", "reflection")[padding_mode],
        "align_corners": int(align_corners),
    }
    return g.op("GridSample", x, grid, shape=g.out.shape, **how)


# Losses; their reductions are 0: none, 1: mean, 2: sum.


def _reduced(g, loss, reduction):
    return g.op(("ReduceMean", "ReduceSum")[reduction - 1], loss, keepdims=0, shape=()) if reduction else loss


@rule("mse_loss")
def mse_loss(g, x, target, reduction=1):
    off = g.op("Sub", *g.promote(x, target), shape=x.shape)
    return _reduced(g, g.op("Mul", off, off), reduction)


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(g, x, target, weight=None, reduction=1, ignore_index=-100):
    how = ("none", "mean", "sum")[reduction]
    loss = g.op("NegativeLogLikelihoodLoss", x, target, weight, reduction=how, ignore_index=ignore_index)
    return loss, None
