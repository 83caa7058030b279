"""The modules of ``torch.backends``, made from tables: their settings and their answers."""

import enum
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import rushlight
from rushlight import _C
from rushlight.backends._attention import SDPAParams


class _LinalgBackend(enum.Enum):
    """Libraries of linear algebra on CUDA. cuSOLVER is the only one here, and what the default is."""

    Default = 0
    Cusolver = 1
    Magma = 2

    def __str__(self):
        return f"_LinalgBackend.{self.name}"


_preferred = _LinalgBackend.Default


def _preferred_linalg_library(backend=None):
    """The preferred library, after ``backend`` ("default", "cusolver" or a value of this) became it."""
    global _preferred
    if isinstance(backend, str):
        if backend.capitalize() not in _LinalgBackend.__members__:
            names = ", ".join(name.lower() for name in _LinalgBackend.__members__)
            raise RuntimeError(f"Unknown input value. Choose from: {names}.")
        backend = _LinalgBackend[backend.capitalize()]
    if backend is None:
        return _preferred
    if not isinstance(backend, _LinalgBackend):
        raise RuntimeError("Unknown input value type.")
    if backend is _LinalgBackend.Magma:
        raise RuntimeError(
            "Cannot set preferred backend to MAGMA: linear algebra on CUDA is computed by cuSOLVER here"
        )
    _preferred = backend
    return _preferred


def _answer(value):
    def answer(*args, **kwargs):
        return value

    example = "Example:\n    >>> torch.backends.mps.is_available()\n    False"
    answer.__doc__ = f"{value}, whatever is asked." + f"\n\n{example}" * (value is False)
    return answer


@contextmanager
def _flags(module, **settings):
    before = {name: getattr(module, name) for name in settings if hasattr(module, name)}
    for name, value in settings.items():
        if value is not None:
            setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


# Settings that are switches of the core.
_SWITCHES = {
    ("cudnn", "enabled"): "cudnn",
    ("cudnn", "benchmark"): "benchmark",
    ("cudnn", "deterministic"): "deterministic",
    ("cudnn", "allow_tf32"): "convolution_tf32",
    ("cuda.matmul", "allow_tf32"): "matmul_tf32",
    ("cuda.matmul", "allow_fp16_reduced_precision_reduction"): "half_sums",
    ("cuda.matmul", "allow_bf16_reduced_precision_reduction"): "bfloat16_sums",
    ("cuda.matmul", "allow_fp16_accumulation"): "half_accumulation",
}


class _Settings(ModuleType):
    """A module, or a part of one, whose switches are the core's."""

    def __init__(self, name, doc=None, **members):
        super().__init__(f"rushlight.backends.{name}", doc)
        vars(self).update(members)
        switches = {attribute: key for (owner, attribute), key in _SWITCHES.items() if owner == name}
        vars(self)["_switches"] = switches

    def __getattribute__(self, name):
        key = object.__getattribute__(self, "__dict__").get("_switches", {}).get(name)
        return super().__getattribute__(name) if key is None else _C._device_switch(key)

    def __setattr__(self, name, value):
        key = self._switches.get(name)
        if key is not None:
            _C._device_switch(key, bool(value))
        super().__setattr__(name, value)


def _module(name, doc, **members):
    module = _Settings(name, doc, **members)
    module.flags = lambda **settings: _flags(module, **settings)
    sys.modules[module.__name__] = module
    return module


def _switch(default):
    """A setting with an `enable` function, as cuda's attention backends have."""
    state = {"on": default}

    def enable(enabled):
        state["on"] = bool(enabled)

    return _answer_state(state), enable


def _answer_state(state):
    return lambda: state["on"]


cudnn = _module(
    "cudnn",
    "cuDNN: computes convolutions on CUDA where it is found.",
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    benchmark_limit=10,
    is_available=lambda: _C._cudnn_version() is not None,
    version=lambda: _C._cudnn_version(),
    is_acceptable=lambda tensor: _cudnn_takes(tensor),
    set_flags=lambda *settings, **named: _set_cudnn_flags(*settings, **named),
    CUDNN_TENSOR_DTYPES={rushlight.float16, rushlight.bfloat16, rushlight.float32, rushlight.float64},
    conv=SimpleNamespace(fp32_precision="none"),
    rnn=SimpleNamespace(fp32_precision="none"),
    fp32_precision="none",
)


def _cudnn_takes(tensor):
    return (
        tensor.is_cuda
        and cudnn.enabled
        and tensor.dtype in cudnn.CUDNN_TENSOR_DTYPES
        and cudnn.is_available()
    )


def _set_cudnn_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision="none",
):
    """Sets what is not None; returns the settings as they were."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
    values = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    before = tuple(getattr(cudnn, name) for name in names)
    for name, value in zip(names, values, strict=True):
        if value is not None:
            setattr(cudnn, name, value)
    return before


class _Convolutions:
    """Convolutions on the CPU. With ``fp32_precision = "ieee"`` none is computed by transforms."""

    _precision = "none"

    @property
    def fp32_precision(self):
        return self._precision

    @fp32_precision.setter
    def fp32_precision(self, value):
        self._precision = value
        _C._device_switch("direct_convolutions", value == "ieee")


cudnn_rnn = _module("cudnn.rnn", "cuDNN's recurrent networks: not in this build.")
mkldnn = _module(
    "mkldnn",
    "oneDNN.",
    enabled=True,
    deterministic=False,
    allow_tf32=False,
    is_available=_answer(True),
    set_flags=_answer(None),
    is_acl_available=_answer(False),
    verbose=lambda level: _flags(globals()["mkldnn"]),
    VERBOSE_OFF=0,
    VERBOSE_ON=1,
    VERBOSE_ON_CREATION=2,
    matmul=SimpleNamespace(fp32_precision="none"),
    conv=_Convolutions(),
    fp32_precision="none",
)
mkl = _module(
    "mkl",
    "MKL.",
    is_available=_answer(True),
    verbose=lambda enable: _flags(globals()["mkl"]),
    VERBOSE_OFF=0,
    VERBOSE_ON=1,
)
openmp = _module("openmp", "OpenMP: threads come from oneTBB here.", is_available=_answer(False))
mps = _module(
    "mps",
    "Apple's Metal: not in this build.",
    is_available=_answer(False),
    is_built=_answer(False),
    is_macos13_or_newer=_answer(False),
    is_macos_or_newer=_answer(False),
)
nnpack = _module("nnpack", "NNPACK: not in this build.", is_available=_answer(False), set_flags=_answer(None))
_ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]


class _Engine(_Settings):
    """Which engine's conventions configurations follow; all compute with the same kernels here."""

    def __setattr__(self, name, value):
        if name == "engine" and value not in _ENGINES:
            if value == "none":
                raise RuntimeError("quantized engine NoQEngine is not supported")
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        super().__setattr__(name, value)


quantized = _Engine("quantized", _Engine.__doc__, engine="x86", supported_engines=list(_ENGINES))
sys.modules[quantized.__name__] = quantized
xeon = _module("xeon", "Launchers for Xeon processors.")
xnnpack = _module("xnnpack", "XNNPACK: not in this build.", enabled=False)
kleidiai = _module("kleidiai", "KleidiAI: not in this build.", is_available=_answer(False))
miopen = _module("miopen", "MIOpen: not in this build.", immediate=False)
cusparselt = _module(
    "cusparselt", "cuSPARSELt: not in this build.", is_available=_answer(False), version=_answer(None)
)
opt_einsum = _module(
    "opt_einsum",
    "Contraction orders of einsum.",
    enabled=True,
    strategy="auto",
    is_available=_answer(False),
    get_opt_einsum=_answer(None),
)
cpu = _module("cpu", "The processor.", get_cpu_capability=_C._cpu_capability)

_flash, _efficient, _math, _cudnn_sdp = _switch(True), _switch(True), _switch(True), _switch(True)
cuda = _module(
    "cuda",
    "CUDA.",
    is_built=lambda: _C._cuda_getDeviceCount() > 0,
    matmul=_Settings(
        "cuda.matmul",
        allow_tf32=False,
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
        fp32_precision="none",
    ),
    cufft_plan_cache=SimpleNamespace(size=0, max_size=0, clear=_answer(None)),
    flash_sdp_enabled=_flash[0],
    enable_flash_sdp=_flash[1],
    mem_efficient_sdp_enabled=_efficient[0],
    enable_mem_efficient_sdp=_efficient[1],
    math_sdp_enabled=_math[0],
    enable_math_sdp=_math[1],
    cudnn_sdp_enabled=_cudnn_sdp[0],
    enable_cudnn_sdp=_cudnn_sdp[1],
    SDPAParams=SDPAParams,
    is_flash_attention_available=_answer(False),
    can_use_flash_attention=_answer(False),
    can_use_efficient_attention=_answer(False),
    can_use_cudnn_attention=_answer(False),
    preferred_linalg_library=_preferred_linalg_library,
    preferred_blas_library=_answer("default"),
)


@contextmanager
def _sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    switches = (
        (_flash, enable_flash),
        (_math, enable_math),
        (_efficient, enable_mem_efficient),
        (_cudnn_sdp, enable_cudnn),
    )
    before = [switch[0]() for switch, _ in switches]
    for switch, on in switches:
        switch[1](on)
    try:
        yield {}
    finally:
        for (switch, _), on in zip(switches, before):
            switch[1](on)


cuda.sdp_kernel = _sdp_kernel
