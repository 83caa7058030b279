"""What networks are made of, forward and with gradients: convolutions, pooling, normalisation, attention."""

import torch
import torch.nn.functional as F
from torch import nn

from ..case import Case
from .data import backward, normals

# name: module, shape of the input
CONVOLUTIONS = {
    "3x3, 64 channels": (lambda: nn.Conv2d(64, 64, 3, padding=1), (8, 64, 56, 56)),
    "3x3, 256 channels": (lambda: nn.Conv2d(256, 256, 3, padding=1), (8, 256, 14, 14)),
    "3x3 of an image": (lambda: nn.Conv2d(3, 32, 3, 2, 1), (8, 3, 224, 224)),
    "7x7 of an image": (lambda: nn.Conv2d(3, 64, 7, 2, 3), (4, 3, 224, 224)),
    "1x1": (lambda: nn.Conv2d(256, 64, 1), (8, 256, 56, 56)),
    "depthwise 3x3": (lambda: nn.Conv2d(96, 96, 3, padding=1, groups=96), (8, 96, 56, 56)),
    "depthwise 5x5, stride 2": (lambda: nn.Conv2d(96, 96, 5, 2, 2, groups=96), (8, 96, 56, 56)),
    "32 groups": (lambda: nn.Conv2d(128, 128, 3, padding=1, groups=32), (8, 128, 28, 28)),
    "dilated": (lambda: nn.Conv2d(64, 64, 3, padding=2, dilation=2), (8, 64, 28, 28)),
    "small images": (lambda: nn.Conv2d(16, 32, 3, padding=1), (64, 16, 8, 8)),
    "transposed": (lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), (8, 64, 28, 28)),
    "1d": (lambda: nn.Conv1d(64, 64, 5, padding=2), (16, 64, 512)),
    "3d": (lambda: nn.Conv3d(16, 16, 3, padding=1), (2, 16, 16, 32, 32)),
}
IMAGES = (8, 64, 56, 56)
LAYERS = {
    "max_pool2d": (lambda: nn.MaxPool2d(3, 2, 1), IMAGES),
    "max_pool2d 2x2": (lambda: nn.MaxPool2d(2), IMAGES),
    "avg_pool2d": (lambda: nn.AvgPool2d(2), IMAGES),
    "adaptive_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d(7), IMAGES),
    "global average": (lambda: nn.AdaptiveAvgPool2d(1), IMAGES),
    "batch_norm": (lambda: nn.BatchNorm2d(64), IMAGES),
    "batch_norm of vectors": (lambda: nn.BatchNorm1d(512), (2048, 512)),
    "group_norm": (lambda: nn.GroupNorm(8, 64), IMAGES),
    "instance_norm": (lambda: nn.InstanceNorm2d(64), IMAGES),
    "layer_norm": (lambda: nn.LayerNorm(768), (2048, 768)),
    "rms_norm": (lambda: nn.RMSNorm(768), (2048, 768)),
    "softmax": (lambda: nn.Softmax(-1), (2048, 2048)),
    "softmax over columns": (lambda: nn.Softmax(0), (2048, 2048)),
    "log_softmax": (lambda: nn.LogSoftmax(-1), (2048, 2048)),
    "upsample bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (4, 32, 56, 56)),
    "upsample nearest": (lambda: nn.Upsample(scale_factor=2), (4, 32, 56, 56)),
    "linear": (lambda: nn.Linear(1024, 1024), (256, 1024)),
    "linear of a vector": (lambda: nn.Linear(2048, 2048), (1, 2048)),
    "LSTM": (lambda: nn.LSTM(128, 128), (32, 16, 128)),
    "GRU": (lambda: nn.GRU(128, 128), (32, 16, 128)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), (4, 128, 256)),
}


def first(result):
    return result[0] if isinstance(result, tuple) else result


LAST = torch.channels_last


def forward(make, shape, dtype="float32", memory_format=torch.contiguous_format):
    dtype = getattr(torch, dtype)
    layer = make().eval().to(dtype=dtype, memory_format=memory_format)
    x = torch.randn(shape).to(dtype=dtype, memory_format=memory_format)

    def run():
        with torch.no_grad():
            layer(x)

    return run


def training(make, shape, dtype="float32"):
    layer, x = make().to(dtype=getattr(torch, dtype)), normals(*shape, dtype=dtype, requires_grad=True)
    return backward(lambda: first(layer(x)), x, *layer.parameters())


def attention(shape, causal=False, dtype="float32", gradients=False):
    q, k, v = (normals(*shape, dtype=dtype, requires_grad=gradients) for _ in range(3))
    run = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return backward(run, q, k, v) if gradients else run


def loss(function, shape, target):
    x = normals(*shape, requires_grad=True)
    return backward(lambda: function(x, target(x)), x)


def classes(x):
    return torch.zeros(x.shape[0], dtype=torch.int64)


def cases(sizes):
    for name, (make, full) in CONVOLUTIONS.items():
        x = sizes(full, (2, *full[1:2], *[min(8, size) for size in full[2:]]))
        yield Case(f"convolution/{name}", lambda m=make, x=x: forward(m, x))
        yield Case(f"convolution/{name}, training", lambda m=make, x=x: training(m, x))
        if name in ("3x3, 64 channels", "1x1", "depthwise 3x3", "3x3 of an image"):
            yield Case(f"convolution/{name}, bfloat16", lambda m=make, x=x: forward(m, x, "bfloat16"))
            yield Case(
                f"convolution/{name}, channels last", lambda m=make, x=x: forward(m, x, "float32", LAST)
            )
    for name, (make, full) in LAYERS.items():
        x = sizes(full, (2, *full[1:2], *[min(16, size) for size in full[2:-1]], full[-1])[: len(full)])
        yield Case(f"layer/{name}", lambda m=make, x=x: forward(m, x))
        yield Case(f"layer/{name}, training", lambda m=make, x=x: training(m, x))
        if name in ("max_pool2d", "batch_norm", "layer_norm", "softmax", "linear", "linear of a vector"):
            yield Case(f"layer/{name}, bfloat16", lambda m=make, x=x: forward(m, x, "bfloat16"))
    heads = (4, 8, sizes(256, 8), 64)
    long = (1, 4, sizes(1024, 8), 64)
    for name, full in (("256", heads), ("1024", long)):
        yield Case(f"attention/{name} positions", lambda s=full: attention(s))
        yield Case(f"attention/{name} positions, causal", lambda s=full: attention(s, causal=True))
        yield Case(f"attention/{name} positions, training", lambda s=full: attention(s, gradients=True))
        yield Case(f"attention/{name} positions, bfloat16", lambda s=full: attention(s, dtype="bfloat16"))
    wide = (sizes(512, 4), sizes(8192, 8))
    yield Case("loss/cross_entropy", lambda: loss(F.cross_entropy, wide, classes))
    yield Case("loss/mse_loss", lambda: loss(F.mse_loss, wide, torch.zeros_like))
    yield Case("loss/smooth_l1_loss", lambda: loss(F.smooth_l1_loss, wide, torch.zeros_like))
    logits = F.binary_cross_entropy_with_logits
    yield Case("loss/binary_cross_entropy_with_logits", lambda: loss(logits, wide, torch.zeros_like))
