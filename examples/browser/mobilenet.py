"""MobileNetV2 with torchvision's names, so that its checkpoint can be loaded."""

from rushlight import nn

STAGES = [  # expansion, channels, blocks, stride
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def convolution(inputs, outputs, kernel=3, stride=1, groups=1):
    layers = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layers, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        inner = inputs * expansion
        self.residual = stride == 1 and inputs == outputs
        widen = [] if expansion == 1 else [convolution(inputs, inner, 1)]
        self.conv = nn.Sequential(
            *widen,
            convolution(inner, inner, stride=stride, groups=inner),
            nn.Conv2d(inner, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, inputs = [convolution(3, 32, stride=2)], 32
        for expansion, outputs, blocks, stride in STAGES:
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, outputs, 1 if block else stride, expansion))
                inputs = outputs
        self.features = nn.Sequential(*layers, convolution(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, images):
        return self.classifier(self.features(images).mean((2, 3)))
