"""Whether graphs pay, kept on disk: a later process need not try again what one on the same machine has.

A decision is a small text file whose name is a hash of everything that decides it: the graphs' texts, which
tell shapes and dtypes, the program's name, threads, processor and library. Files are written in one piece and
carry a checksum; whatever does not read as expected is no decision, and the trials run. Nothing of a file is
executed, and a wrong one could cost time only: both ways of running a program give the same.
"""

import contextlib
import functools
import hashlib
import os
import platform
import tempfile

import rushlight as torch
from rushlight import _C

from . import config

__all__ = ["clear", "files", "folder", "key_of", "load", "store"]

_HEAD = "rushlight decision 1"
_LARGEST = 256  # bytes of a file
_MOST = 4096  # files


def folder():
    """Where decisions are kept: ``TORCHINDUCTOR_CACHE_DIR``, or a folder of the user's cache."""
    told = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if told:
        return os.path.join(told, "decisions")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "rushlight", "decisions")


def _enabled():
    told = os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "0")
    return not config.force_disable_caches and told in ("", "0")


@functools.cache
def _machine():
    """The processor, and this build of the library."""
    from rushlight.utils.collect_env import processor_name

    built = os.stat(_C.__file__)
    return (
        processor_name(), platform.machine(), torch.backends.cpu.get_cpu_capability(), str(torch.__version__),
        built.st_size, built.st_mtime_ns,
    )  # fmt: skip


def _devices():
    """The devices besides, once the process uses them."""
    if not torch.cuda.is_initialized():
        return ()
    return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


def key_of(name, texts):
    """The name of the file for a program and the graphs it came to; None where nothing is kept."""
    if not _enabled():
        return None
    facts = (*_machine(), *_devices(), torch.get_num_threads(), name, len(texts), *texts)
    return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()


def load(key):
    """True or False as the graph paid or did not; None if that is not known."""
    try:
        with open(os.path.join(folder(), key), "rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        return None
    for pays in (True, False):
        if content == _content(key, pays):
            return pays
    return None


def store(key, pays):
    """Keep a decision. Where that cannot be, nothing happens."""
    place = folder()
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o700, exist_ok=True)
        _make_room(place)
        handle, written = tempfile.mkstemp(dir=place, prefix="new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_content(key, pays))
            os.replace(written, os.path.join(place, key))
        except BaseException:
            os.unlink(written)
            raise


def files():
    """Paths of what is kept, and of what writers that were killed left; nothing else that lies there."""
    try:
        with os.scandir(folder()) as found:
            return [e.path for e in found if _is_ours(e.name) and e.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _is_ours(name):
    return name.startswith("new-") or (len(name) == 64 and set(name) <= set("0123456789abcdef"))


def clear():
    """Delete what is kept; returns how many files that were."""
    count = 0
    for path in files():
        with contextlib.suppress(OSError):
            os.unlink(path)
            count += 1
    return count


def _content(key, pays):
    """A decision as its file; the checksum covers the name too: files must not stand in for each other."""
    body = f"{_HEAD}\n{'pays' if pays else 'does not pay'}\n"
    return f"{body}{hashlib.sha256((key + body).encode()).hexdigest()}\n".encode()


def _make_room(place):
    """Drop the older half when the folder is full."""
    with os.scandir(place) as found:
        files = [entry for entry in found if entry.is_file(follow_symlinks=False)]
    if len(files) < _MOST:
        return
    for _, path in sorted((entry.stat().st_mtime_ns, entry.path) for entry in files)[: _MOST // 2]:
        with contextlib.suppress(OSError):
            os.unlink(path)
