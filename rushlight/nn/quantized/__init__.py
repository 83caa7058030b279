"""Functions of residual and dense networks as modules, so that a quantizer could observe them; quantised
types themselves are not part of this build."""

import rushlight
from rushlight.nn.modules.module import Module

__all__ = ["FXFloatFunctional", "FloatFunctional"]


class FXFloatFunctional(Module):
    """Arithmetic as methods of a module."""

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the forward; call one of its functions")

    def add(self, x, y):
        return rushlight.add(x, y)

    def add_scalar(self, x, y):
        return rushlight.add(x, y)

    def mul(self, x, y):
        return rushlight.mul(x, y)

    def mul_scalar(self, x, y):
        return rushlight.mul(x, y)

    def cat(self, x, dim=0):
        return rushlight.cat(x, dim=dim)

    def add_relu(self, x, y):
        return rushlight.nn.functional.relu(rushlight.add(x, y))

    def matmul(self, x, y):
        return rushlight.matmul(x, y)


class FloatFunctional(FXFloatFunctional):
    """As above; every result passes through ``activation_post_process``, where an observer may sit."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = rushlight.nn.Identity()


def _observed(name):
    plain = getattr(FXFloatFunctional, name)

    def method(self, *args, **kwargs):
        return self.activation_post_process(plain(self, *args, **kwargs))

    method.__name__ = name
    return method


for _name in ("add", "add_scalar", "mul", "mul_scalar", "cat", "add_relu", "matmul"):
    setattr(FloatFunctional, _name, _observed(_name))
