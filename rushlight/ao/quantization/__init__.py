"""Quantisation: models whose layers compute with integers of eight bits and fewer.

`import rushlight` does not load this package; programs that do not quantise pay nothing for it.
"""

from .fake_quantize import *
from .fuse_modules import fuse_modules as fuse_modules
from .fuse_modules import fuse_modules_qat as fuse_modules_qat
from .fuser_method_mappings import *
from .observer import *
from .observer import ObserverBase as ObserverBase
from .observer import _PartialWrapper as _PartialWrapper
from .qconfig import *
from .qconfig_mapping import *
from .quant_type import QuantType as QuantType
from .quantization_mappings import *
from .stubs import *
from .utils import MatchAllNode as MatchAllNode
from .utils import Pattern as Pattern

from .quantize import *  # isort: skip: its function has the module's name, and the function stays

ObserverOrFakeQuantize = object


def default_eval_fn(model, calib_data):
    """Run a model on samples: what ``quantize`` is given to calibrate with."""
    for data, _ in calib_data:
        model(data)
