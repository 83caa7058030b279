"""Loggers of parts of the library, and which of them speak. ``TORCH_LOGS="recompiles,graph_breaks"`` in the
environment does what `set_logs` does."""

import functools
import logging
import os
import sys
import warnings

__all__ = ["LazyString", "getArtifactLogger", "hide_warnings", "set_logs", "trace_structured", "warning_once"]

_PARTS = {"all": "torch", "dynamo": "torch._dynamo", "inductor": "torch._inductor", "aot": "torch._functorch"}


def set_logs(*, modules=None, **parts):
    """Set what is logged.

    Args:
        modules: levels by the name of a logger.
        parts: a level for a part (``dynamo=logging.DEBUG``), or True and False for single messages
            (``recompiles=True``). Without any, all are reset.
    """
    levels = dict(modules or {})
    for part, level in parts.items():
        if isinstance(level, bool):
            level = logging.DEBUG if level else logging.NOTSET
        elif not isinstance(level, int):
            raise ValueError(f"set_logs: the level of {part} must be a number or a bool, received {level!r}")
        levels[_PARTS.get(part, f"torch.__{part}")] = level
    for name in [*_set, *levels]:
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))
    _set[:] = levels
    if levels:
        _show_messages()


_set: list = []  # names of loggers that have a level from here


def _show_messages():
    """Messages of the parts go to the error stream, unless the program handles them itself."""
    logger = logging.getLogger("torch")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s [%(name)s] %(message)s"))
        logger.addHandler(handler)


def _read_environment():
    """Set what TORCH_LOGS asks for: names of parts, with + for more and - for less."""
    parts = {}
    for word in filter(None, os.environ.get("TORCH_LOGS", "").replace(" ", "").split(",")):
        name = word.lstrip("+-")
        if word[0] == "+":
            parts[name] = logging.DEBUG
        else:
            parts[name] = logging.ERROR if word[0] == "-" else logging.INFO
    if parts:
        set_logs(**parts)


def getArtifactLogger(module_qname, artifact_name):
    """The logger of a module's single kind of message."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def trace_structured(name, *args, **kwargs):
    """Nothing is captured, so nothing is told of it."""


@functools.cache
def warning_once(logger, *args, **kwargs):
    """Warn through a logger, once for the same arguments."""
    logger.warning(*args, **kwargs)


class LazyString:
    """A text that is made when it is printed."""

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self):
        return self.func(*self.args, **self.kwargs)


def hide_warnings(filter_fn):
    """A context without the warnings for which ``filter_fn(message, category, filename, lineno)`` is true."""
    return _HiddenWarnings(filter_fn)


class _HiddenWarnings:
    def __init__(self, filter_fn):
        self.filter_fn = filter_fn

    def __enter__(self):
        self.before = show = warnings.showwarning

        def selected(message, category, filename, lineno, file=None, line=None):
            if not self.filter_fn(message, category, filename, lineno):
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = selected

    def __exit__(self, *exc):
        warnings.showwarning = self.before
