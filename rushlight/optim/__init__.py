"""Optimizers and learning-rate schedules. Each lives in a module of its own that is loaded on first use."""

from importlib import import_module

_HOME = {
    "Adadelta": "adadelta",
    "Adafactor": "adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "Adamax": "adamax",
    "AdamW": "adamw",
    "ASGD": "asgd",
    "LBFGS": "lbfgs",
    "Muon": "muon",
    "NAdam": "nadam",
    "Optimizer": "optimizer",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}
_MODULES = {*_HOME.values(), "_functional", "lr_scheduler", "swa_utils"}

__all__ = [*_HOME, "lr_scheduler", "swa_utils"]


def __getattr__(name):
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
