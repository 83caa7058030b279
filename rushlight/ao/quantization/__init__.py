"""Quantisation: models whose layers compute with integers of eight bits and fewer.

`import rushlight` does not load this package; programs that do not quantise pay nothing for it.
"""

from .fake_quantize import *
from .fuse_modules import fuse_modules, fuse_modules_qat
from .fuser_method_mappings import *
from .observer import *
from .observer import ObserverBase, _PartialWrapper
from .qconfig import *
from .qconfig_mapping import *
from .quant_type import QuantType
from .quantization_mappings import *
from .stubs import *
from .utils import MatchAllNode, Pattern

from .quantize import *  # isort: skip: its function has the module's name, and the function stays

ObserverOrFakeQuantize = object


def default_eval_fn(model, calib_data):
    """Run a model on samples: what ``quantize`` is given to calibrate with."""
    for data, _ in calib_data:
        model(data)
