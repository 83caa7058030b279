"""What the processor can do, by the files in which Linux says so and by the processor's own word."""

import functools
import glob
import os
import platform
import re
import types

from rushlight import _C

# PyTorch's names, and the flags of /proc/cpuinfo where those differ.
_X86 = (
    "sse sse2 sse3 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx512_f avx512_cd avx512_dq avx512_bw "
    "avx512_vl avx512_ifma avx512_vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq avx512_vnni avx512_bf16 "
    "avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_1 avx10_2 avx_vnni_int8 "
    "avx_vnni_int16 avx_ne_convert amx_bf16 amx_tile amx_int8 amx_fp16 fma3 fma4 f16c bmi bmi2 "
    "popcnt lzcnt aes sha clflush clflushopt clwb"
)
_X86_FLAGS = {
    "sse3": "pni", "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw", "avx512_vl": "avx512vl", "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi", "fma3": "fma", "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni",
}  # fmt: skip
_ARM = "neon fp16_arith bf16 i8mm dot sve sve2 sve_bf16 sme sme2 atomics fhm rdm crc32 aes sha1 sha2 pmull"
_ARM_FLAGS = {
    "neon": "asimd", "fp16_arith": "asimdhp", "dot": "asimddp", "sve_bf16": "svebf16", "fhm": "asimdfhm",
    "rdm": "asimdrdm",
}  # fmt: skip


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _fields(text, key):
    return re.findall(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)


def _cache_size(level):
    """Bytes of one core's data cache of this level."""
    for index in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        found, kind, size = (_read(f"{index}/{name}").strip() for name in ("level", "type", "size"))
        if found == str(level) and kind != "Instruction" and size[:-1].isdigit():
            return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]
    return 0


def from_text(info, machine):
    """The mapping for the text of /proc/cpuinfo on a machine of this architecture."""
    arm = machine in ("aarch64", "arm64")
    names, other = (_ARM, _ARM_FLAGS) if arm else (_X86, _X86_FLAGS) if machine == "x86_64" else ("", {})
    flags = frozenset(" ".join(_fields(info, "Features" if arm else "flags")[:1]).split())
    known = {name: other.get(name, name) in flags for name in names.split()}
    sockets = _fields(info, "physical id")
    cores = set(zip(sockets, _fields(info, "core id"), strict=False))
    processors = len(_fields(info, "processor")) or os.cpu_count() or 1
    return {
        **known,
        "architecture": machine,
        "cpu_name": (_fields(info, "model name") or [""])[0],
        "num_sockets": len(set(sockets)) or 1,
        "num_physical_cores": len(cores) or processors,
        "num_logical_cores": processors,
    }


@functools.cache
def capabilities():
    version = _C._avx10_version()  # which older kernels do not list
    return types.MappingProxyType(
        {
            **from_text(_read("/proc/cpuinfo"), platform.machine()),
            **{f"avx10_{i}": version >= i for i in (1, 2) if platform.machine() == "x86_64"},
            "l1d_cache_size": _cache_size(1),
            "l2_cache_size": _cache_size(2),
        }
    )
