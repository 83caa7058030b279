"""What saving and loading do by default, and contexts that change it."""

import enum
import mmap
import os
import threading
import warnings

from rushlight._command.names import show_public_from

__all__ = [
    "LoadEndianness",
    "check_module_version_greater_or_equal",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


class LoadEndianness(enum.Enum):
    NATIVE = 1
    LITTLE = 2
    BIG = 3


_serialization_tls = threading.local()  # `skip_data` and `materialize_fake_tensors` of this thread


def serialization_config():
    """The module that has the settings, loaded with the first file."""
    from rushlight.utils.serialization import config

    return config


def get_default_load_endianness():
    return serialization_config().load.endianness


def set_default_load_endianness(endianness):
    """The byte order of files that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    serialization_config().load.endianness = endianness


def get_crc32_options():
    return serialization_config().save.compute_crc32


def set_crc32_options(compute_crc32):
    """Whether `save` writes checksums. Without them `load` checks nothing and `unzip` complains."""
    serialization_config().save.compute_crc32 = compute_crc32


def get_default_mmap_options():
    return serialization_config().load.mmap_flags


class set_default_mmap_options:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` (the default) keeps changes to itself,
    ``mmap.MAP_SHARED`` writes them to the file. Holds from the call on, or inside of a ``with`` block."""

    def __init__(self, flags):
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                f"mmap.MAP_SHARED, but got {flags}"
            )
        settings = serialization_config().load
        self.prev, settings.mmap_flags = settings.mmap_flags, flags

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        serialization_config().load.mmap_flags = self.prev


def skips_data():
    return getattr(_serialization_tls, "skip_data", False)


def fakes_materialized():
    return getattr(_serialization_tls, "materialize_fake_tensors", False)


class skip_data:
    """Within the context ``save`` leaves the room of storages empty: what ``load`` finds there are zeros.
    With ``materialize_fake_tensors`` fake tensors are written as tensors of their device, with such room."""

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self._before = skips_data(), fakes_materialized()
        self._set(True, self.materialize_fake_tensors)

    def __exit__(self, *exc):
        self._set(*self._before)

    @staticmethod
    def _set(skip, fakes):
        _serialization_tls.skip_data, _serialization_tls.materialize_fake_tensors = skip, fakes


def decide_weights_only(weights_only, pickle_module):
    """Whether ``load`` builds only what is harmless, by the environment, the caller, the default."""
    safe, unsafe = (
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if safe and unsafe:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be "
            "set, but both were set."
        )
    if safe:
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not unsafe
        if unsafe:
            warnings.warn(
                "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` "
                "argument was not explicitly passed to `torch.load`, forcing weights_only=False.",
                UserWarning,
                stacklevel=3,
            )
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's version is at least the given one."""
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(parts[i]) for i, wanted in enumerate(req_version_tuple))
        return version >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
            f"compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


show_public_from("serialization", globals())
