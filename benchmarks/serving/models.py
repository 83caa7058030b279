"""What both servers serve, and one request to each.

python -m benchmarks.serving.models MODEL FILE    exports one of them for rushlight-serve
"""

import json
import random
import struct
import sys
import types
from contextlib import nullcontext

from ..worker import import_as_torch

SHAPES = {"mlp": (1, 64), "resnet50": (1, 3, 224, 224)}


def build(torch: types.ModuleType, name: str):
    """The module; `torch` is either library. Equal seeds give equal weights."""
    torch.manual_seed(0)
    if name == "mlp":
        nn = torch.nn
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
    from ..models import vision

    return vision.resnet50(lambda measured, tiny: measured, nullcontext).model.eval()


def numbers(name: str) -> list[float]:
    count = 1
    for size in SHAPES[name]:
        count *= size
    return [round(random.Random(i).gauss(0, 1), 4) for i in range(count)]


def protocol_request(name: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers for the Open Inference Protocol: small tensors as JSON, images as bytes."""
    data, tensor = numbers(name), {"name": "input", "datatype": "FP32", "shape": SHAPES[name]}
    if name == "mlp":
        return json.dumps({"inputs": [tensor | {"data": data}]}).encode(), {}
    raw = struct.pack(f"<{len(data)}f", *data)
    head = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": len(raw)}}]}).encode()
    return head + raw, {"Inference-Header-Content-Length": str(len(head))}


def plain_request(name: str) -> tuple[bytes, dict[str, str]]:
    """The same for a program of one's own: JSON, or the bytes alone."""
    data = numbers(name)
    if name == "mlp":
        return json.dumps({"data": data}).encode(), {}
    return struct.pack(f"<{len(data)}f", *data), {}


def export(name: str, file: str) -> None:
    torch = import_as_torch("rushlight")
    example = torch.zeros(2, *SHAPES[name][1:])
    rows = ({0: torch.export.Dim("N", max=64)},)
    torch.export.save_file(build(torch, name), file, (example,), dynamic_shapes=rows)


if __name__ == "__main__":
    export(*sys.argv[1:])
