"""How a layer is to be quantised: a maker of observers for its results, and one for its weights."""

import copy
import warnings
from collections import namedtuple
from typing import Any

import rushlight
from rushlight.nn import Identity, Module

from . import fake_quantize as _fq
from . import observer as _ob

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig",
    "get_default_qconfig_dict",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


def _refuse_instances(*makers):
    if any(isinstance(maker, Module) for maker in makers):
        raise ValueError(
            "QConfig received observer instance, please pass observer class instead. "
            "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
        )


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Makers of the observer of results and of that of weights: classes, or what ``with_args`` returns."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        _refuse_instances(activation, weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The older configuration of layers whose operands get their scale at each call."""

    __slots__ = ()

    def __new__(cls, activation=Identity, weight=Identity):
        warnings.warn(
            "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig` instead",
            FutureWarning,
            stacklevel=2,
        )
        if isinstance(weight, Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = Any  # a QConfig, or None for what stays as it is

default_qconfig = QConfig(_ob.default_observer, _ob.default_weight_observer)
default_debug_qconfig = QConfig(_ob.default_debug_observer, _ob.default_weight_observer)
default_per_channel_qconfig = QConfig(_ob.default_observer, _ob.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(_ob.default_dynamic_quant_observer, _ob.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float16, is_dynamic=True),
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float16),
)
float16_static_qconfig = QConfig(
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float16),
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float16),
)
per_channel_dynamic_qconfig = QConfig(
    _ob.default_dynamic_quant_observer, _ob.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    _ob.default_placeholder_observer, _ob.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    _ob.default_placeholder_observer, _ob.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(_fq.default_fake_quant, _fq.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(_fq.default_dynamic_fake_quant, _fq.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, _fq.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(_fq.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(_fq.default_fused_act_fake_quant, _fq.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(_ob.default_reuse_input_observer, _ob.NoopObserver)
default_embedding_qat_qconfig = QConfig(
    _ob.NoopObserver.with_args(dtype=rushlight.float32), _fq.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    _ob.NoopObserver.with_args(dtype=rushlight.float32), _fq.default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(_ob.HistogramObserver, _ob.MinMaxObserver)
_default_fp32_placeholder_qconfig = QConfig(
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float32),
    _ob.PlaceholderObserver.with_args(dtype=rushlight.float32),
)
_default_quint8_placeholder_qconfig = QConfig(_ob.PlaceholderObserver.with_args(dtype=rushlight.quint8), None)

# Signed activations and weights from -127, with scales of at least 2**-12: what some mobile kernels need.
_signed = _ob.HistogramObserver.with_args(dtype=rushlight.qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_signed, _ob.weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _signed, _ob.per_channel_weight_observer_range_neg_127_to_127
)
_signed_trained = _fq.FusedMovingAvgObsFakeQuantize.with_args(
    observer=_ob.MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_signed_trained, _fq.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_trained, _fq.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]
# Half the range of activations where products of two bytes are summed in 16 bits; None: the default says so.
_HALF_RANGE = {"fbgemm": True, "x86": True, "qnnpack": False, "onednn": False}


def _check_backend(backend):
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")


def get_default_qconfig(backend="x86", version=0):
    """The configuration for calibration that suits an engine."""
    _check_backend(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0"
        )
    per_tensor = backend == "qnnpack"
    return QConfig(
        _ob.HistogramObserver.with_args(reduce_range=_HALF_RANGE[backend]),
        _ob.default_weight_observer if per_tensor else _ob.default_per_channel_weight_observer,
    )


def get_default_qat_qconfig(backend="x86", version=1):
    """The configuration for training that suits an engine; version 1 watches and rounds in one operator."""
    _check_backend(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version}in get_default_qat_qconfig is not supported. Version number "
            f"must be 0 or 1"
        )
    per_tensor = backend == "qnnpack"
    arguments = {"observer": _ob.MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if version == 1:
        if backend != "onednn":
            arguments["reduce_range"] = _HALF_RANGE[backend]
        maker = _fq.FusedMovingAvgObsFakeQuantize
        weight = (
            _fq.default_fused_wt_fake_quant if per_tensor else _fq.default_fused_per_channel_wt_fake_quant
        )
    else:
        if backend != "onednn":
            arguments["reduce_range"] = _HALF_RANGE[backend]
        maker = _fq.FakeQuantize
        weight = _fq.default_weight_fake_quant if per_tensor else _fq.default_per_channel_weight_fake_quant
    return QConfig(maker.with_args(**arguments), weight)


def _as_dict(qconfig, training):
    from . import qconfig_mapping

    maker = (
        qconfig_mapping.get_default_qat_qconfig_mapping
        if training
        else qconfig_mapping.get_default_qconfig_mapping
    )
    return maker(*qconfig).to_dict()


def get_default_qconfig_dict(backend="x86", version=0):
    warnings.warn(
        "torch.ao.quantization.get_default_qconfig_dict is deprecated and will be removed in a "
        "future version. "
        "Please use torch.ao.quantization.get_default_qconfig_mapping instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _as_dict((backend, version), False)


def get_default_qat_qconfig_dict(backend="x86", version=1):
    warnings.warn(
        "torch.ao.quantization.get_default_qat_qconfig_dict is deprecated and will be removed in a "
        "future version. "
        "Please use torch.ao.quantization.get_default_qat_qconfig_mapping instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _as_dict((backend, version), True)


def _assert_valid_qconfig(qconfig, mod):
    """Transposed convolutions have their channels elsewhere, which observers of channels do not know."""
    if qconfig is None:
        return
    transposed = (rushlight.nn.ConvTranspose1d, rushlight.nn.ConvTranspose2d, rushlight.nn.ConvTranspose3d)
    if isinstance(mod, transposed):
        if qconfig.weight is None:
            return
        if isinstance(
            qconfig.weight(), (_ob.PerChannelMinMaxObserver, _ob.MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _add_module_to_qconfig_obs_ctr(qconfig, module):
    """The configuration whose observers will be made on the module's device."""
    if module is None or qconfig is None or not isinstance(qconfig, QConfig):
        return qconfig

    def where():
        devices = {p.device for p in module.parameters()} | {b.device for b in module.buffers()}
        if len(devices) > 1:
            raise AssertionError(
                f"a module on several devices cannot be quantised: {sorted(map(str, devices))}"
            )
        device = next(iter(devices)) if devices else None
        return None if device is None else {"device": device}

    def placed(maker):
        # Whether it takes the argument only its class knows, which may sit inside other makers.
        try:
            maker.with_args(factory_kwargs=None)()
        except (AttributeError, TypeError):
            return maker
        return maker.with_callable_args(factory_kwargs=where)

    activation, weight = placed(qconfig.activation), placed(qconfig.weight)
    return QConfig(activation, weight)


def _obs_or_fq_ctr_equals(one, other):
    """Whether two makers make equal observers."""
    if isinstance(one, _ob._PartialWrapper) and isinstance(other, _ob._PartialWrapper):
        return _partial_wrapper_equals(one, other)
    return one == other


def _partial_wrapper_equals(one, other):
    first, second = copy.copy(one.p.keywords), copy.copy(other.p.keywords)
    # Observers of fake quantisers are makers themselves.
    if "observer" in first and "observer" in second:
        if not _obs_or_fq_ctr_equals(first.pop("observer"), second.pop("observer")):
            return False
    return one.p.func == other.p.func and one.p.args == other.p.args and first == second


def qconfig_equals(q1, q2):
    """Whether two configurations ask for the same."""
    if q1 is None or q2 is None:
        return q1 == q2
    try:
        return _obs_or_fq_ctr_equals(q1.activation, q2.activation) and _obs_or_fq_ctr_equals(
            q1.weight, q2.weight
        )
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig):
    """Whether the scale of results depends on the last call only."""
    seen = qconfig.activation()
    if isinstance(seen, _fq.FakeQuantizeBase) and hasattr(seen, "activation_post_process"):
        seen = seen.activation_post_process
    return getattr(seen, "averaging_constant", None) == 1


def _is_reuse_input_qconfig(qconfig):
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), _ob.ReuseInputObserver)
        and isinstance(qconfig.weight(), _ob.NoopObserver)
    )
