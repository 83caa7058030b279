"""Exports one model; see the package."""

import sys
from contextlib import nullcontext
from pathlib import Path

from ..worker import import_as_torch
from . import INT8


def main(name: str, batch: int, tiny: bool, folder: Path) -> None:
    torch = import_as_torch("rushlight")
    import numpy as np

    from ..models import sequence, vision

    builders = {
        "ResNet-50": vision.resnet50,
        "MobileNetV2": vision.mobilenet,
        "VGG-19": vision.vgg19,
        "U-Net": vision.unet,
        "GPT": sequence.gpt,
        "BERT": sequence.bert,
        "GNMT": sequence.gnmt,
    }
    sizes = lambda measured, small: small if tiny else measured
    torch.manual_seed(0)
    kind = name.removesuffix(INT8)
    model = builders[kind](sizes, nullcontext).model.eval()
    inputs = make_inputs(torch, kind, batch, sizes)
    folder.mkdir(parents=True, exist_ok=True)
    if kind != name:
        model = in_bytes(torch, model, inputs, folder / "model.onnx")
    torch.export.save_file(model, folder / "model.rl", inputs)
    if kind == name:
        torch.onnx.export(model, inputs, folder / "model.onnx")
    with torch.no_grad():
        expected = model(*inputs)
    np.savez(folder / "inputs.npz", *[x.contiguous().numpy() for x in inputs], expected=expected.numpy())


def in_bytes(torch, model, inputs, path):
    """Integers as ONNX Runtime's own tool writes them, QuantizeLinear and DequantizeLinear around each layer.

    Norms are settled by some steps of training, so that layers see what they see in a trained network.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):
        def __init__(self):
            self.left = iter([{"x": x.numpy()} for x in samples])

        def get_next(self):
            return next(self.left, None)

    samples = [torch.randn(*inputs[0].shape) for _ in range(3)]
    model.train()
    with torch.no_grad():
        for x in samples:
            model(torch.cat([x, -x]))  # norms of one pixel want several images
    floats, fused = path.with_suffix(".floats.onnx"), path.with_suffix(".fused.onnx")
    torch.onnx.export(model.eval(), inputs, floats, input_names=["x"])
    quant_pre_process(floats, fused, skip_symbolic_shape=True)  # norms into convolutions
    quantize_static(
        fused,
        path,
        Samples(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return torch.onnx.load(path)


def make_inputs(torch, name, batch, sizes):
    if name in ("GPT", "BERT", "GNMT"):
        words = sizes(8000 if name == "GNMT" else 8192, 50)
        length = sizes(20, 4) if name == "GNMT" else sizes(128, 8)
        text, other = (torch.randint(0, words, (batch, length)) for _ in range(2))
        if name == "GPT":
            return (text,)
        if name == "GNMT":
            return text, other
        segments = (torch.arange(length) >= length // 2).long().repeat(batch, 1)
        padding = torch.arange(length).repeat(batch, 1) >= length - torch.arange(batch)[:, None] % length
        return text, segments, padding
    # VGG pools its last image to 7 x 7, of which ONNX can't make larger ones.
    pixels = 224 if name == "VGG-19" else sizes(128, 16) if name == "U-Net" else sizes(224, 32)
    return (torch.randn(batch, 3, pixels, pixels),)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tiny", Path(sys.argv[4]))
