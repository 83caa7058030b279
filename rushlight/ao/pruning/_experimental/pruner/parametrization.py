"""The parametrization that multiplies a weight's rows by a mask, and what keeps biases in step with it."""

import rushlight
from rushlight import nn
from rushlight.ao.pruning.sparsifier.utils import module_contains_param as module_contains_param


class FakeStructuredSparsity(nn.Module):
    """A parametrization: the rows of a tensor, each times an element of a mask. It is in no state_dict.

    Args:
        mask: a boolean for each row.
    """

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if not isinstance(self.mask, rushlight.Tensor):
            raise AssertionError("mask must be a torch.Tensor")
        if self.mask.shape[0] != x.shape[0]:
            raise AssertionError(f"mask shape[0] ({self.mask.shape[0]}) must match x shape[0] ({x.shape[0]})")
        return self.mask.reshape(-1, *[1] * (x.dim() - 1)) * x

    def state_dict(self, *args, **kwargs):
        return {}


class BiasHook:
    """A forward hook that adds a layer's ``_bias`` to its result.

    Args:
        parametrization: of the layer's weight.
        prune_bias: whether the bias of rows under the mask is zero.
    """

    def __init__(self, parametrization, prune_bias):
        self.param = parametrization
        self.prune_bias = prune_bias

    def __call__(self, module, input, output):
        if getattr(module, "_bias", None) is None:
            return output
        bias = module._bias.data
        if self.prune_bias:
            bias[~self.param.mask] = 0
        output += bias.reshape(1, -1, *[1] * (output.dim() - 2))
        return output
