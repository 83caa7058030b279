"""Training steps and inference of whole networks, in single precision and with autocast to bfloat16."""

from contextlib import nullcontext

import torch

from ..case import Case
from ..models import sequence, small, vision

MODELS = {
    "AlexNet": vision.alexnet,
    "VGG-19": vision.vgg19,
    "ResNet-50": vision.resnet50,
    "MobileNetV2": vision.mobilenet,
    "GNMT": sequence.gnmt,
    "NCF": small.ncf,
    "GPT": sequence.gpt,
    "BERT": sequence.bert,
    "U-Net": vision.unet,
    "LSTM": sequence.lstm,
    "LSTM unrolled": sequence.unrolled_lstm,
    "MLP": small.mlp,
    "GAN": small.gan,
    "Reinforcement": small.reinforcement,
}
PRECISIONS = {
    "float32": nullcontext,
    "bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
}


def training(build, sizes, precision):
    return build(sizes, precision).train


def inference(build, sizes, precision):
    workload = build(sizes, precision)
    workload.model.eval()

    def run():
        with torch.inference_mode():
            workload.infer()

    return run


def cases(sizes):
    for name, build in MODELS.items():
        for precision, context in PRECISIONS.items():
            for mode in (training, inference):
                first = mode is training and precision == "float32"
                yield Case(
                    f"{name}/{mode.__name__} {precision}",
                    lambda mode=mode, build=build, context=context: mode(build, sizes, context),
                    process=name,
                    peak=first,
                )
