"""Optimizers and learning-rate schedules. Programs walk this module's dict, so the optimizers are loaded
with it."""

from importlib import import_module

from rushlight._command.submodules import submodule as _submodule
from rushlight.optim.adadelta import Adadelta
from rushlight.optim.adafactor import Adafactor
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adam import Adam
from rushlight.optim.adamax import Adamax
from rushlight.optim.adamw import AdamW
from rushlight.optim.asgd import ASGD
from rushlight.optim.lbfgs import LBFGS
from rushlight.optim.muon import Muon
from rushlight.optim.nadam import NAdam
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.radam import RAdam
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.rprop import Rprop
from rushlight.optim.sgd import SGD
from rushlight.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]
_MODULES = ("_functional", "lr_scheduler", "swa_utils")


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.optim import lr_scheduler as lr_scheduler
    from rushlight.optim import swa_utils as swa_utils
    from rushlight.optim._stateless import (
        swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state,
    )


def __getattr__(name):
    if name == "swap_in_optimizer_params_and_state":
        from rushlight.optim._stateless import swap_in_optimizer_params_and_state as value
    elif name in _MODULES:
        value = import_module(f"rushlight.optim.{name}")
    else:
        value = _submodule(__name__, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
