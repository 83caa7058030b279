"""How this build was made."""

import os

import rushlight

__all__ = ["parallel_info", "show"]


def show():
    """The versions and libraries of the build, one a line."""
    from rushlight import backends

    limit = os.environ.get("RUSHLIGHT_CPU_CAPABILITY")
    libraries = [
        name for name, module in (("MKL", backends.mkl), ("oneDNN", backends.mkldnn)) if module.is_available()
    ]
    return "\n".join(
        [
            "Rushlight built with:",
            "  - C++ Version: 202002",
            f"  - CPU capability usage: {backends.cpu.get_cpu_capability()}"
            + (f" (RUSHLIGHT_CPU_CAPABILITY={limit})" if limit else ""),
            f"  - Libraries: {', '.join(libraries) or 'none'}",
            f"  - Build settings: TORCH_VERSION={rushlight.__version__}, USE_CUDA=0, USE_NCCL=OFF",
            "",
        ]
    )


def _cxx_flags():
    """The flags of a release build."""
    return "-std=c++20 -O2 -DNDEBUG"


def parallel_info():
    """How many threads operators use, and who runs them."""
    return "\n".join(
        [
            "ATen/Parallel:",
            f"\trushlight.get_num_threads() : {rushlight.get_num_threads()}",
            f"\trushlight.get_num_interop_threads() : {rushlight.get_num_interop_threads()}",
            f"\tos.cpu_count() : {os.cpu_count()}",
            f"\tOMP_NUM_THREADS : {os.environ.get('OMP_NUM_THREADS', '[not set]')}",
            f"\tMKL_NUM_THREADS : {os.environ.get('MKL_NUM_THREADS', '[not set]')}",
            "",
        ]
    )
