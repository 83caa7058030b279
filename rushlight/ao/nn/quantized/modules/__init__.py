"""The layers; the first and the last of a model, which turn numbers into integers and back, are here."""

import rushlight
from rushlight.nn import MaxPool2d as MaxPool2d
from rushlight.nn import Module

from .activation import ELU, Hardswish, LeakyReLU, MultiheadAttention, PReLU, ReLU6, Sigmoid, Softmax
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm
from .rnn import LSTM

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LSTM",
    "MultiheadAttention",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "Dropout",
    "PReLU",
    "FloatFunctional",
    "FXFloatFunctional",
    "QFunctional",
]


class Quantize(Module):
    """Turns numbers into integers of one scale."""

    scale: rushlight.Tensor
    zero_point: rushlight.Tensor
    _numbers = ("scale", "zero_point")  # buffers that traces read as numbers

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        made = dict(factory_kwargs or {})
        made.pop("dtype", None)
        self.register_buffer("scale", rushlight.tensor([scale], **made))
        self.register_buffer("zero_point", rushlight.tensor([zero_point], dtype=rushlight.long, **made))
        self.dtype = dtype

    def forward(self, X):
        return rushlight.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError("a layer that saw no numbers cannot become Quantize: calibrate it first")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero_point.long().item(), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Turns integers back into numbers."""

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        return DeQuantize()
