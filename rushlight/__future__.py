"""Switches for behaviour of modules that may become the default."""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value):
    """Whether converting a module (`.to`, `.half` …) gives it new parameters instead of changing the old
    ones."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion():
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value):
    """Whether converting a module and loading its state swap the content of each parameter with the new
    value's (`torch.utils.swap_tensors`) instead of writing to it. Goes before overwriting."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion():
    return _swap_module_params_on_conversion
