"""Settings of PyTorch's joint graphs. Programs may set them; what is kept is decided otherwise here."""

import sys

from rushlight.utils._config_module import install_config_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `install_config_module` gives
    from typing import Any

    patch: Any

functionalize_rng_ops = False
fake_tensor_allow_meta = True  # whether fake tensors may be on the device "meta"
fake_tensor_propagate_real_tensors = False  # whether operators run on real tensors beside the fake ones
debug_assert = False
check_custom_op_aliasing = True  # custom operators refuse results that share an argument's memory, always
error_on_custom_op_aliasing = True
donated_buffer = False
enable_autograd_cache = True
treat_parameters_as_free_to_save = True
activation_memory_budget = 1.0
recompute_views = False
ban_recompute_used_far_apart = True

install_config_module(sys.modules[__name__], open=True)
