"""Models of one file, beside engines that run the same graph as ONNX (`benchmarks/engines`)."""

import torch

import rushlight

from ..engines import runs


def load(folder, inputs):
    model = rushlight.export.load_file(folder / "model.rl")
    tensors = [torch.from_numpy(x) for x in inputs]

    def run():
        results = model(*tensors)
        return (results[0] if isinstance(results, tuple) else results).numpy()

    return run


def cases(sizes):
    return runs.cases(sizes, load)
