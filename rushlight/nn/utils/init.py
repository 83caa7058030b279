"""Modules without the cost of initializing their parameters."""

import rushlight as torch


def skip_init(module_cls, *args, **kwargs):
    """The module with uninitialized parameters; its class has to take a `device`."""
    import inspect

    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **{**kwargs, "device": "meta"}).to_empty(device=device)
