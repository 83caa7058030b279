"""Weight normalization in its older form, with a hook before forward."""

import warnings

import rushlight as torch

__all__ = ["weight_norm", "remove_weight_norm", "WeightNorm"]

__capture__ = "through"  # Note [Capture marks]


class WeightNorm:
    """Recomputes the weight from weight_g and weight_v before each forward."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / torch.norm_except_dim(v, 2, self.dim))

    @staticmethod
    def apply(module, name, dim):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if torch.nn.parameter.is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the "
                "dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(
            name + "_g", torch.nn.Parameter(torch.norm_except_dim(weight, 2, fn.dim).data)
        )
        module.register_parameter(name + "_v", torch.nn.Parameter(weight.data))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module):
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, torch.nn.Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Split a weight into length and direction; `parametrizations.weight_norm` is the newer form.

    Args:
        module (Module): whose parameter is replaced.
        name (str): the parameter.
        dim (int or None): the dimension along which each slice has a norm of its own; None is one for all.

    Formula: weight = g * v / norm(v)

    Example:
        >>> sorted(name for name, _ in torch.nn.utils.weight_norm(torch.nn.Linear(2, 2)).named_parameters())
        ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Make the weight an ordinary parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
