"""`torch.ops.sparse`: linear layers of integers whose weights are zero in blocks.

Files have the blocks that are not zero. Products are those of the whole weight: its kernels have the bits of
PyTorch's, and leave nothing out.
"""

import rushlight as torch
from rushlight._quantized import operators
from rushlight._quantized.packed import CLASSES, LinearPackedParams, ScriptObject, held

_PREFIX = "__torch__.torch.classes."
_VERSION = 2
__capture__ = "through"  # Note [Capture marks]


def _blocks(integers, rows, columns):
    """A matrix by blocks: rows of blocks, blocks, elements. Blocks beyond the edge end in zeros."""
    height, width = integers.shape
    padded = torch.nn.functional.pad(integers, (0, -width % columns, 0, -height % rows))
    padded = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    return padded.transpose(1, 2).flatten(2)


class SparseLinearPackedParams:
    """A weight, a bias, and the shape of the blocks that are kept where one of their elements is not zero."""

    name, methods = "sparse.LinearPackedParamsBase", ()

    def __init__(self, weight, bias, rows, columns):
        if (rows, columns) not in ((1, 4), (8, 1)):
            raise RuntimeError(
                f"sparse::qlinear_prepack: blocks are of 1x4 or 8x1 elements, got {rows}x{columns}"
            )
        if weight.dim() != 2:
            raise RuntimeError(
                f"sparse::qlinear_prepack: the weight must be a matrix, got {weight.dim()} dimensions"
            )
        self.block = rows, columns
        self.dense = ScriptObject(LinearPackedParams(weight, None if bias is None else bias.detach()))

    def unpack(self):
        weight, bias = self.dense.unpack()
        return weight, bias, list(self.block)

    def state(self):
        """As PyTorch's version 2: of rows of blocks where they begin, of blocks their columns and bytes."""
        weight, bias = self.dense.unpack()
        rows, columns = self.block
        alone = weight.qscheme() == torch.per_tensor_affine
        if alone:
            scales, zeros = torch.tensor([weight.q_scale()]), torch.tensor([weight.q_zero_point()])
        else:
            scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points()
        zero = zeros.expand(weight.shape[0])[:, None]
        distance = weight.int_repr().to(torch.int64) - zero
        kept = _blocks(distance, rows, columns).ne(0).any(2)
        count = torch.nn.functional.pad(kept.sum(1).cumsum(0), (1, 0)).to(torch.int32)
        places = kept.nonzero()[:, 1].to(torch.int32)
        stored = _blocks(weight.int_repr().to(torch.int64), rows, columns) + 128
        data = stored[kept].flatten().to(torch.uint8)
        settings = (scales, zeros.to(torch.int8), alone)
        return _VERSION, bias, rows, columns, *settings, count, places, data, *weight.shape

    @classmethod
    def of_state(cls, state):
        if state[0] != _VERSION:
            raise RuntimeError(
                f"packed sparse weights of version {state[0]!r} are unknown; version 2 is read"
            )
        bias, rows, columns, scales, zeros, alone, count, places, data, height, width = state[1:]
        zeros, tall, wide = zeros.to(torch.int64), -(-height // rows), -(-width // columns)
        kept = torch.zeros(tall, wide, dtype=torch.bool)
        kept[torch.arange(tall).repeat_interleave(count.to(torch.int64).diff()), places.to(torch.int64)] = (
            True
        )
        integers = zeros.expand(height)[:, None].expand(height, width)
        blocks = _blocks(integers, rows, columns)
        blocks[kept] = data.to(torch.int64).reshape(-1, rows * columns) - 128
        integers = (
            blocks.reshape(tall, wide, rows, columns).transpose(1, 2).reshape(tall * rows, wide * columns)
        )
        integers = integers[:height, :width].to(torch.int8).contiguous()
        if alone:
            weight = torch._make_per_tensor_quantized_tensor(integers, float(scales), int(zeros))
        else:
            weight = torch._make_per_channel_quantized_tensor(integers, scales.double(), zeros, 0)
        return cls(weight, bias, rows, columns)


CLASSES[_PREFIX + SparseLinearPackedParams.name] = SparseLinearPackedParams


def _dense(packed, who):
    found = getattr(packed, "_held", None)
    if not isinstance(found, SparseLinearPackedParams):
        raise RuntimeError(f"sparse::{who}: expected a packed weight, got {type(packed).__name__}")
    return found.dense


def qlinear_prepack(W, B, out_features_block_size, in_features_block_size):
    return ScriptObject(SparseLinearPackedParams(W, B, out_features_block_size, in_features_block_size))


def qlinear_unpack(W_prepack):
    return held(W_prepack, SparseLinearPackedParams, "qlinear_unpack").unpack()


def qlinear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    return operators.linear(X, _dense(W_prepack, "qlinear"), Y_scale_i, Y_zero_point_i)


def qlinear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    return operators.linear_relu(X, _dense(W_prepack, "qlinear_relu"), Y_scale_i, Y_zero_point_i)


def qlinear_dynamic(X, W_prepack):
    return operators.linear_dynamic(X, _dense(W_prepack, "qlinear_dynamic"))


def qlinear_relu_dynamic(X, W_prepack):
    return operators.linear_relu_dynamic(X, _dense(W_prepack, "qlinear_relu_dynamic"))


for _name in [name for name in list(globals()) if name.startswith("qlinear")]:
    globals()[_name].__module__ = "rushlight.ops.sparse"  # traces show the dense operators
