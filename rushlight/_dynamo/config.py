"""Settings of graph capture. Of effect: recompile_limit and cache_size_limit (the smaller),
suppress_errors, disable, fake_tensor_cache_enabled (which gains nothing) and its crosscheck. The others are
PyTorch's; programs may set them."""

import sys

from rushlight.utils._config_module import install_config_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `install_config_module` gives
    from typing import Any

    patch: Any

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = False
verbose = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
force_parameter_static_shapes = True
optimize_ddp = True
inline_inbuilt_nn_modules = True
guard_nn_modules = True
compiled_autograd = False
disable = False
allow_unspec_int_on_nn_module = False
specialize_int = specialize_float = False
error_on_recompile = fail_on_recompile_limit_hit = fail_on_cache_limit_hit = False
skip_code_recursive_on_recompile_limit_hit = skip_code_recursive_on_cache_limit_hit = True
skip_nnmodule_hook_guards = skip_fsdp_guards = enable_cpp_guard_manager = True
allow_rnn = allow_ignore_mark_dynamic = prepare_freezing = False
force_nn_module_property_static_shapes = True
rewrite_assert_with_torch_assert = dead_code_elimination = replay_side_effects = True
trace_numpy = enable_trace_contextlib = capture_func_transforms = capture_autograd_function = True
capture_sparse_compute = use_lazy_graph_module = only_allow_pt2_compliant_ops = False
report_guard_failures = cprofile = verify_correctness = nested_graph_breaks = False
repro_after = None
repro_level = 2
debug_dir_root = None
optimize_ddp_lazy_compile = do_not_emit_runtime_asserts = log_compilation_metrics = False
numpy_default_float = "float64"
numpy_default_complex = "complex128"
numpy_default_int = "int64"
reorderable_logging_functions: set = set()
fake_tensor_cache_enabled = fake_tensor_cache_crosscheck_enabled = False
ignore_logger_methods: set = set()
compiled_autograd_kwargs_override: dict = {}

_keep_captures = False  # for explain()

install_config_module(sys.modules[__name__])
