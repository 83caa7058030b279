"""The standard's extension for Fourier transforms."""

import rushlight as torch

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _along_one(name):
    operator = getattr(torch.fft, name)

    def function(x, /, *, n=None, axis=-1, norm="backward"):
        return operator(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `rushlight.fft.{name}`."
    return function


def _along_several(name):
    operator = getattr(torch.fft, name)

    def function(x, /, *, s=None, axes=None, norm="backward"):
        return operator(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As `rushlight.fft.{name}`."
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_along_several, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of `fft`'s points."""
    return torch.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of `rfft`'s points."""
    return torch.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """Moves frequency 0 from the front to the middle."""
    return torch.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """Inverse of `fftshift`."""
    return torch.fft.ifftshift(x, axes)
