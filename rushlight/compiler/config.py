"""Settings of all of the compiler: those of its parts, under one name."""

import sys

from rushlight.utils._config_module import Config, install_config_module

job_id = Config(default=None, env_name_default=["TORCH_COMPILE_JOB_ID", "TORCH_COMPILE_STICKY_PGO_KEY"])
force_disable_caches = Config(alias="rushlight._inductor.config.force_disable_caches")

dynamic_shapes = Config(alias="rushlight._dynamo.config.dynamic_shapes")
assume_static_by_default = Config(alias="rushlight._dynamo.config.assume_static_by_default")
automatic_dynamic_shapes = Config(alias="rushlight._dynamo.config.automatic_dynamic_shapes")
recompile_limit = Config(alias="rushlight._dynamo.config.recompile_limit")
accumulated_recompile_limit = Config(alias="rushlight._dynamo.config.accumulated_recompile_limit")
verbose = Config(alias="rushlight._dynamo.config.verbose")
capture_scalar_outputs = Config(alias="rushlight._dynamo.config.capture_scalar_outputs")
capture_dynamic_output_shape_ops = Config(alias="rushlight._dynamo.config.capture_dynamic_output_shape_ops")
fail_on_recompile_limit_hit = Config(alias="rushlight._dynamo.config.fail_on_recompile_limit_hit")
allow_unspec_int_on_nn_module = Config(alias="rushlight._dynamo.config.allow_unspec_int_on_nn_module")

install_config_module(sys.modules[__name__])
