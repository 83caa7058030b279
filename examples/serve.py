"""A model behind HTTP: concurrent requests share batches, with limits, health, metrics and a page.

    python serve.py                                    # trains for a moment, then serves on 127.0.0.1:8000
    curl 127.0.0.1:8000/v2/models/digits/infer \
        -d '{"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0, 0.5, ...]}]}'

The data are 64 numbers from 0 to 1 for each image.

The server is rushlight-serve, on a file that is made of the model.
"""

from classify_digits import make_model, train
from common import arguments

import rushlight as torch
from rushlight import nn, serve
from rushlight.demo import digits
from rushlight.export import Dim
from rushlight.utils.data import DataLoader


def served(model):
    """What the server takes of a model: it gives probabilities for any number of images."""
    module = nn.Sequential(model, nn.Softmax(1)).eval()
    return module, (torch.zeros(2, 1, 8, 8),), ({0: Dim("N", max=64)},)


def main():
    given = arguments((__doc__ or "").splitlines()[0], steps=300, port=8000)
    torch.manual_seed(0)
    model = make_model()
    train(model, DataLoader(digits.split()[0], batch_size=64, shuffle=True), given.steps)
    module, example, dynamic_shapes = served(model)
    serve.run(module, example, name="digits", dynamic_shapes=dynamic_shapes, port=given.port)


if __name__ == "__main__":
    main()
