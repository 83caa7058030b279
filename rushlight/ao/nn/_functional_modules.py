"""Functions of residual and dense networks as modules, so that an observer may sit behind them."""

import rushlight
from rushlight import nn
from rushlight._command.names import show_from
from rushlight.nn import functional as F

# Below the integer layers and those that can become them, which import each other's parents.
_HOME = "ao.nn.quantized.modules.functional_modules"


class FXFloatFunctional(nn.Module):
    """Arithmetic as methods of a module."""

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the forward. Please use the underlying operation"
        )

    def add(self, x, y):
        return rushlight.add(x, y)

    def add_scalar(self, x, y: float):
        return rushlight.add(x, y)

    def mul(self, x, y):
        return rushlight.mul(x, y)

    def mul_scalar(self, x, y: float):
        return rushlight.mul(x, y)

    def cat(self, x: list[rushlight.Tensor], dim: int = 0):
        return rushlight.cat(x, dim=dim)

    def add_relu(self, x, y):
        return F.relu(rushlight.add(x, y))

    def matmul(self, x, y):
        return rushlight.matmul(x, y)


class FloatFunctional(nn.Module):
    """Arithmetic as methods; results pass through ``activation_post_process``, where an observer may sit."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the forward. Please use the underlying operation"
        )

    def add(self, x, y):
        return self.activation_post_process(rushlight.add(x, y))

    # Sums with numbers keep the operand's scale: an observer would learn nothing.
    def add_scalar(self, x, y: float):
        return rushlight.add(x, y)

    def mul(self, x, y):
        return self.activation_post_process(rushlight.mul(x, y))

    def mul_scalar(self, x, y: float):
        return rushlight.mul(x, y)

    def cat(self, x: list[rushlight.Tensor], dim: int = 0):
        return self.activation_post_process(rushlight.cat(x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(F.relu(rushlight.add(x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(rushlight.matmul(x, y))


show_from(_HOME, FXFloatFunctional, FloatFunctional)
