"""Modules without the cost of initializing their parameters."""

import rushlight as torch


def skip_init(module_cls, *args, **kwargs):
    """A module with uninitialized parameters, for those that are loaded at once.

    Args:
        module_cls (type): a module's class that takes `device`.
        args, kwargs: its arguments.

    Returns: the module.

    Raises: RuntimeError where the class is no module's or takes no device.

    Example:
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
        torch.Size([3, 2])
    """
    import inspect

    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=device)
