"""Utilities around training: data loading, hooks, checkpoints. Submodules are loaded on first use."""

import os
from importlib import import_module

from rushlight._command.submodules import submodule as _submodule

TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.utils import benchmark as benchmark
    from rushlight.utils import checkpoint as checkpoint
    from rushlight.utils import collect_env as collect_env
    from rushlight.utils import cpp_extension as cpp_extension
    from rushlight.utils import data as data
    from rushlight.utils import dlpack as dlpack
    from rushlight.utils import flop_counter as flop_counter
    from rushlight.utils import hooks as hooks
    from rushlight.utils import model_zoo as model_zoo
    from rushlight.utils import module_tracker as module_tracker
    from rushlight.utils import summary as summary
    from rushlight.utils import tensorboard as tensorboard
    from rushlight.utils import throughput_benchmark as throughput_benchmark
    from rushlight.utils import weak as weak
    from rushlight.utils._swap import swap_tensors as swap_tensors
    from rushlight.utils.throughput_benchmark import ThroughputBenchmark as ThroughputBenchmark


def __getattr__(name):
    if name == "swap_tensors":
        return import_module(f"{__name__}._swap").swap_tensors
    if name == "ThroughputBenchmark":
        return import_module(f"{__name__}.throughput_benchmark").ThroughputBenchmark
    if name == "cmake_prefix_path":  # for find_package(Rushlight), and for find_package(Torch)
        return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "share", "cmake")
    return _submodule(__name__, name)
