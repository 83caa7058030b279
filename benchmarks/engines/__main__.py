"""Exports one model; see the package."""

import sys
from contextlib import nullcontext
from pathlib import Path

from ..worker import import_as_torch


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
    model = builders[name](sizes, nullcontext).model.eval()
    inputs = make_inputs(torch, name, batch, sizes)
    folder.mkdir(parents=True, exist_ok=True)
    torch.export.save_file(model, folder / "model.rl", inputs)
    torch.onnx.export(model, inputs, folder / "model.onnx")
    with torch.no_grad():
        expected = model(*inputs)
    np.savez(folder / "inputs.npz", *[x.contiguous().numpy() for x in inputs], expected=expected.numpy())


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
