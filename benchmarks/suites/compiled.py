"""torch.compile: training steps and inference of networks, as they are written and compiled.

What is compiled is a function that runs the network and, in training, its loss. The optimizer is not.
"""

import os
import time
from contextlib import nullcontext

import torch

from ..case import Case
from ..models import compiling, sequence, small, vision
from .models import inference, training

MODELS = {
    "MLP": small.mlp,
    "LSTM unrolled": sequence.unrolled_lstm,
    "NCF": small.ncf,
    "GPT": sequence.gpt,
    "GNMT": sequence.gnmt,
    "MobileNetV2": vision.mobilenet,
    "ResNet-50": vision.resnet50,
    "AlexNet": vision.alexnet,
    "VGG-19": vision.vgg19,
    "BERT": sequence.bert,
    "U-Net": vision.unet,
    "LSTM": sequence.lstm,
}
WAYS = ("compiled", "as written")
first_calls: dict[str, float] = {}  # seconds of processor time, those of compilers that were started included

if os.environ.get("ATEN_CPU_CAPABILITY") == "avx2":  # which PyTorch's generated code does not look at
    torch._inductor.config.cpp.simdlen = 256


def processor_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def warm(run):
    """Call until nothing is compiled or tried out any more."""
    end = time.perf_counter() + 3.0
    for count in range(150):
        if count >= 20 and time.perf_counter() > end:
            break
        run()


def prepared(name, build, mode, way, sizes):
    torch.manual_seed(0)
    if way != "compiled":
        run = mode(build, sizes, nullcontext)
        warm(run)
        return run
    with compiling(torch.compile):
        run = mode(build, sizes, nullcontext)
    start = processor_seconds()
    run()
    first = processor_seconds() - start
    warm(run)
    start = processor_seconds()
    run()
    first_calls[name] = first - (processor_seconds() - start)
    return run


def cases(sizes):
    for name, build in MODELS.items():
        for mode in (training, inference):
            for way in WAYS:
                case = f"{name}/{mode.__name__}, {way}"
                yield Case(
                    case,
                    lambda case=case, build=build, mode=mode, way=way: prepared(
                        case, build, mode, way, sizes
                    ),
                    process=name,
                )
