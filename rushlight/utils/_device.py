"""``with torch.device(...)`` and the default device: a function mode that fills in ``device=``."""

import functools

import rushlight
from rushlight.overrides import TorchFunctionMode

_entered: list = []
_default = None


@functools.cache
def _constructors():
    """The functions that make tensors out of nothing."""
    names = """
        empty empty_permuted empty_strided ones zeros full arange range linspace logspace eye rand randn
        randint randperm tensor as_tensor scalar_tensor asarray tril_indices triu_indices hann_window
        hamming_window bartlett_window blackman_window kaiser_window sparse_coo_tensor sparse_csr_tensor
        sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor
    """
    others = {rushlight.fft.fftfreq, rushlight.fft.rfftfreq, rushlight.nested.nested_tensor}
    return others | {getattr(rushlight, name) for name in names.split()}


_device_constructors = _constructors


class DeviceContext(TorchFunctionMode):
    def __init__(self, device):
        self.device = rushlight.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def _enter(device):
    mode = DeviceContext(device)
    mode.__enter__()
    _entered.append(mode)
    return device


def _exit(device, *exc):
    _entered.pop().__exit__(None, None, None)


def _decorate(device, function):
    return device_decorator(device, function)


def device_decorator(device, function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with rushlight.device(device):
            return function(*args, **kwargs)

    return wrapped


def set_default(device):
    global _default
    if _default is not None:
        _default.__exit__(None, None, None)
        _default = None
    if device is not None:
        _default = DeviceContext(device)
        _default.__enter__()


def current():
    if _entered:
        return _entered[-1].device
    return _default.device if _default is not None else None
