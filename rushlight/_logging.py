"""Levels of logging by part: of ``torch.compile`` mostly, so few of them say anything here."""

import functools
import logging
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


_set: list = []  # names of loggers that have a level from here


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
