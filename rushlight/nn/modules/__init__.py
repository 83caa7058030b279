"""The layers, each family in a file of its own."""

from .module import (  # isort: skip
    Module as Module,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .activation import *
from .adaptive import *
from .attention import MultiheadAttention as MultiheadAttention
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .linear_cross_entropy_options import *
from .loss import *
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *

TYPE_CHECKING = False
if not TYPE_CHECKING:  # type checkers take the names of all files above
    # The classes, not the files they are in: `nn` takes its names from here.
    __all__ = [name for name in dir() if name[0].isupper() and name != "TYPE_CHECKING"]

__package_capture__ = "through"  # Note [Capture marks]
