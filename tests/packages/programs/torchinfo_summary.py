"""torchinfo: parameter counts, shapes and multiply-adds of a convolutional and a recurrent network."""

import torch
from torch import nn
from torchinfo import summary

network = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 10)
)
result = summary(
    network, input_size=(4, 1, 28, 28), verbose=0, col_names=("input_size", "output_size", "num_params")
)
assert result.total_params == sum(p.numel() for p in network.parameters()) == 13610
assert result.trainable_params == 13610 and result.total_mult_adds == 4 * (80 * 26 * 26 + 13530)
lines = str(result).splitlines()
assert any("Conv2d: 1-1" in line and "[4, 8, 26, 26]" in line and "80" in line for line in lines), result

network[0].requires_grad_(False)
assert summary(network, verbose=0).trainable_params == 13530

encoder = nn.LSTM(5, 7, num_layers=2, batch_first=True)
result = summary(encoder, input_data=torch.zeros(3, 11, 5), verbose=0)
assert "[3, 11, 7]" in str(result) and result.total_params == sum(p.numel() for p in encoder.parameters())
try:
    summary(network, input_size=(4, 3, 28, 28), verbose=0)
except RuntimeError as error:
    assert "Failed to run torchinfo" in str(error), error
else:
    raise AssertionError("a wrong input was accepted")
