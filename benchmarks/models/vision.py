"""Convolutional networks: AlexNet, VGG-19, ResNet-50, MobileNetV2, U-Net."""

import torch
import torch.nn.functional as F
from torch import nn

from . import adam, momentum, supervised


def classify(model, batch, pixels, classes, precision):
    images, labels = torch.randn(batch, 3, pixels, pixels), torch.randint(0, classes, (batch,))
    return supervised(model, momentum(model), (images,), lambda out: F.cross_entropy(out, labels), precision)


def head(features, width, classes):
    """The three large layers at the end of AlexNet and VGG."""
    layers = []
    for inputs in (features, width):
        layers += [nn.Dropout(), nn.Linear(inputs, width), nn.ReLU(inplace=True)]
    return [nn.Flatten(), *layers, nn.Linear(width, classes)]


def alexnet(sizes, precision):
    w, classes = sizes(64, 8), sizes(1000, 10)
    layers = []
    for inputs, outputs, kernel, stride, pool in [
        (3, w, 11, 4, True),
        (w, 3 * w, 5, 1, True),
        (3 * w, 6 * w, 3, 1, False),
        (6 * w, 4 * w, 3, 1, False),
        (4 * w, 4 * w, 3, 1, True),
    ]:
        padding = 2 if kernel > 3 else 1
        layers += [nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(3, 2)] if pool else []
    layers += [nn.AdaptiveAvgPool2d(6), *head(4 * w * 36, 64 * w, classes)]
    return classify(nn.Sequential(*layers), sizes(8, 2), sizes(224, 64), classes, precision)


def vgg19(sizes, precision):
    w, classes = sizes(64, 4), sizes(1000, 10)
    layers, inputs = [], 3
    for outputs, depth in ((w, 2), (2 * w, 2), (4 * w, 4), (8 * w, 4), (8 * w, 4)):
        for _ in range(depth):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(7), *head(8 * w * 49, 64 * w, classes)]
    return classify(nn.Sequential(*layers), sizes(1, 2), sizes(224, 32), classes, precision)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * self.expansion
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


def resnet50(sizes, precision):
    w, classes = sizes(64, 4), sizes(1000, 10)
    layers = [nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = w
    for stage, depth in enumerate((3, 4, 6, 3)):
        for block in range(depth):
            layers.append(Bottleneck(inputs, w << stage, 2 if stage and not block else 1))
            inputs = (w << stage) * Bottleneck.expansion
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return classify(nn.Sequential(*layers), sizes(2, 2), sizes(224, 32), classes, precision)


class ConvNormAct(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1, groups=1):
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        hidden = inputs * expansion
        layers = [ConvNormAct(inputs, hidden)] if expansion > 1 else []
        layers += [ConvNormAct(hidden, hidden, 3, stride, groups=hidden)]
        self.body = nn.Sequential(*layers, nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


MOBILENET_STAGES = [  # expansion, channels / 8, blocks, stride
    (1, 2, 1, 1),
    (6, 3, 2, 2),
    (6, 4, 3, 2),
    (6, 8, 4, 2),
    (6, 12, 3, 1),
    (6, 20, 3, 2),
    (6, 40, 1, 1),
]


def mobilenet(sizes, precision):
    w, classes = sizes(8, 1), sizes(1000, 10)
    layers, inputs = [ConvNormAct(3, 4 * w, 3, 2)], 4 * w
    for expansion, channels, blocks, stride in MOBILENET_STAGES:
        for block in range(blocks):
            layers.append(InvertedResidual(inputs, channels * w, 1 if block else stride, expansion))
            inputs = channels * w
    layers += [ConvNormAct(inputs, 160 * w), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2)]
    layers.append(nn.Linear(160 * w, classes))
    return classify(nn.Sequential(*layers), sizes(4, 2), sizes(224, 32), classes, precision)


class UNet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        channels = [width << level for level in range(depth)]
        self.down = nn.ModuleList(self.block(i, o) for i, o in zip([3, *channels], channels))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in reversed(channels[:-1]))
        self.up = nn.ModuleList(self.block(2 * c, c) for c in reversed(channels[:-1]))
        self.out = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(inputs, outputs):
        layers = []
        for channels in (inputs, outputs):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
            ]
        return nn.Sequential(*layers)

    def forward(self, x):
        skipped = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if skipped else x)
            skipped.append(x)
        for grow, block, skip in zip(self.grow, self.up, reversed(skipped[:-1])):
            x = block(torch.cat([grow(x), skip], 1))
        return self.out(x)


def unet(sizes, precision):
    model, pixels = UNet(sizes(32, 4), 4), sizes(128, 16)
    images, masks = torch.randn(2, 3, pixels, pixels), torch.randint(0, 2, (2, 1, pixels, pixels)).float()
    loss = lambda out: F.binary_cross_entropy_with_logits(out, masks)
    return supervised(model, adam(model), (images,), loss, precision)
