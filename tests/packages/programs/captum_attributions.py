"""captum: attributions whose exact values a linear model tells, and axioms on a small network."""

import torch
from captum.attr import (
    DeepLift,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    LayerActivation,
    LayerGradCam,
    LayerIntegratedGradients,
    NeuronGradient,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from torch import nn

torch.manual_seed(0)
linear = nn.Linear(4, 3)
x, baseline = torch.randn(5, 4), torch.zeros(5, 4)
exact = linear.weight[1] * x
for method in (IntegratedGradients, InputXGradient, FeatureAblation, DeepLift, ShapleyValueSampling):
    assert torch.allclose(method(linear).attribute(x, target=1), exact, atol=1e-5), method
assert torch.allclose(Saliency(linear).attribute(x, target=2), linear.weight[2].abs().expand(5, 4))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.AvgPool2d(2)
        self.out = nn.Linear(4 * 4 * 4, 3)

    def forward(self, image):
        return self.out(self.pool(self.relu(self.conv(image))).flatten(1))


network = Network().eval()
image, black = torch.randn(2, 1, 8, 8), torch.zeros(2, 1, 8, 8)
classes = torch.tensor([0, 2])
change = (network(image) - network(black)).gather(1, classes[:, None])[:, 0]

# Completeness: attributions add up to the change of the output.
for method, options in ((IntegratedGradients, {"n_steps": 200}), (DeepLift, {})):
    values, delta = method(network).attribute(
        image, black, target=classes, return_convergence_delta=True, **options
    )
    assert torch.allclose(values.sum((1, 2, 3)), change, atol=1e-2), method
    assert delta.abs().max() < 1e-2
through = LayerIntegratedGradients(network, network.conv).attribute(image, black, target=classes, n_steps=100)
assert through.shape == (2, 4, 8, 8) and torch.allclose(through.sum((1, 2, 3)), change, atol=1e-2)

assert torch.equal(LayerActivation(network, network.relu).attribute(image), network.relu(network.conv(image)))
assert LayerGradCam(network, network.conv).attribute(image, target=classes).shape == (2, 1, 8, 8)
assert GuidedBackprop(network).attribute(image, target=classes).shape == image.shape
neuron = NeuronGradient(network, network.conv).attribute(image, (1, 4, 4))
assert torch.allclose(neuron[0, 0, 3:6, 3:6], network.conv.weight[1, 0]) and neuron[0, 0, 0].abs().sum() == 0
hidden = Occlusion(network).attribute(image, sliding_window_shapes=(1, 8, 8), target=classes)
assert torch.allclose(hidden[:, 0, 0, 0], change, atol=1e-5)
shap = GradientShap(linear).attribute(x, torch.zeros(1, 4), target=1, n_samples=8, stdevs=0.0)
assert torch.allclose(shap, exact, atol=1e-5)
