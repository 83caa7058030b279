"""Settings of PyTorch's symbolic sizes. Programs may set them; what sizes a program depends on is found
otherwise here, so that none of them changes a result."""

import sys

from rushlight.utils._config_module import install_config_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `install_config_module` gives
    from typing import Any

    patch: Any

translation_validation = False
check_shape_env_recorded_events = False
use_duck_shape = True
backed_size_oblivious = False
no_data_dependent_graph_break = False
print_specializations = False
skip_dtype_check_in_meta_registrations = False
meta_nonzero_assume_all_nonzero = False

install_config_module(sys.modules[__name__], open=True)
