"""`torch._C._cpu`: what packages ask of the processor before they choose a kernel."""

from rushlight import _C

__all__ = ["_get_cpu_capability"]


def _get_cpu_capability():
    """The instruction set that kernels run with."""
    return _C._cpu_capability()


def _is_mkldnn_acl_supported():
    """Whether oneDNN computes with Arm's library: it does not in this build."""
    return False


def _is_mkldnn_bf16_supported():
    """Whether oneDNN computes in bfloat16: where the build has it and the processor AVX-512."""
    from rushlight.backends import mkldnn

    return mkldnn.is_available() and _asks("avx512_f")()


_is_mkldnn_fp16_supported = _is_mkldnn_bf16_supported


def _asks(flag):
    def ask():
        from rushlight._extension.cpu_capabilities import capabilities

        return bool(capabilities().get(flag, False))

    ask.__doc__ = f"Whether the processor has {flag}."
    return ask


_FLAGS = {
    "_is_amx_fp16_supported": "amx_fp16",
    "_is_amx_tile_supported": "amx_tile",
    "_is_avx2_supported": "avx2",
    "_is_avx512_bf16_supported": "avx512_bf16",
    "_is_avx512_supported": "avx512_f",
    "_is_vnni_supported": "avx512_vnni",
}
for _name, _flag in _FLAGS.items():
    globals()[_name] = _asks(_flag)
    globals()[_name].__name__ = _name
