"""What a report of an error should tell of the machine: ``python -m torch.utils.collect_env``."""

import locale
import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

import rushlight

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

_PACKAGES = (
    "numpy",
    "rushlight",
    "torch",
    "torchvision",
    "torchaudio",
    "lightning",
    "transformers",
    "safetensors",
)


class SystemEnv(NamedTuple):
    """The facts, as text."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cpu_info: str
    cpu_capability: str
    threads: str
    pip_packages: str


def _os():
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            facts = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
        return f"{facts.get('PRETTY_NAME', '').strip(chr(34))} ({platform.machine()})"
    except OSError:
        return f"{platform.system()} {platform.release()} ({platform.machine()})"


def processor_name():
    """As the system calls the processor's model."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"


def _cpu():
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor_name()}, {os.cpu_count()} logical, {usable} usable"


def _packages():
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def get_env_info():
    """The facts of this machine and process."""
    return SystemEnv(
        torch_version=f"{rushlight.__version__} (Rushlight)",
        is_debug_build="False",
        cuda_compiled_version=str(rushlight.version.cuda),
        os=_os(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version} ({64 if sys.maxsize > 2**32 else 32}-bit runtime)".replace("\n", " "),
        python_platform=platform.platform(),
        is_cuda_available=str(rushlight.cuda.is_available()),
        cpu_info=_cpu(),
        cpu_capability=rushlight.backends.cpu.get_cpu_capability(),
        threads=str(rushlight.get_num_threads()),
        pip_packages=_packages(),
    )


def pretty_str(envinfo):
    """The facts one below the other."""
    packages = "".join(f"[pip3] {line}\n" for line in envinfo.pip_packages.splitlines())
    return (
        f"PyTorch version: {envinfo.torch_version}\n"
        f"Is debug build: {envinfo.is_debug_build}\n"
        f"CUDA used to build PyTorch: {envinfo.cuda_compiled_version}\n\n"
        f"OS: {envinfo.os}\n"
        f"Libc version: {envinfo.libc_version}\n"
        f"Locale: {locale.getlocale()[0]}\n\n"
        f"Python version: {envinfo.python_version}\n"
        f"Python platform: {envinfo.python_platform}\n"
        f"Is CUDA available: {envinfo.is_cuda_available}\n\n"
        f"CPU: {envinfo.cpu_info}\n"
        f"CPU capability: {envinfo.cpu_capability}\n"
        f"Threads: {envinfo.threads}\n\n"
        f"Versions of relevant libraries:\n{packages or 'none'}"
    )


def get_pretty_env_info():
    return pretty_str(get_env_info())


def main():
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
