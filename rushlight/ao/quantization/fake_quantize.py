"""Modules that round numbers as integers would: what a model in training, or being calibrated, is given."""

import re
from abc import ABC, abstractmethod

import rushlight
from rushlight.nn import Module

from . import _late, utils
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


def _is_per_channel(qscheme):
    return utils.is_per_channel(qscheme)


def _is_per_tensor(qscheme):
    return utils.is_per_tensor(qscheme)


def _is_symmetric_quant(qscheme):
    return qscheme in (rushlight.per_tensor_symmetric, rushlight.per_channel_symmetric)


def _is_float_qparams(qscheme):
    return qscheme == rushlight.per_channel_affine_float_qparams


class FakeQuantizeBase(ABC, Module):
    """Base of modules that round numbers as integers would. Rounding and watching are switched apart."""

    fake_quant_enabled: rushlight.Tensor
    observer_enabled: rushlight.Tensor

    def __init__(self):
        super().__init__()
        # Buffers, because replicas and saved models keep what is switched on.
        self.register_buffer("fake_quant_enabled", rushlight.tensor([1], dtype=rushlight.uint8))
        self.register_buffer("observer_enabled", rushlight.tensor([1], dtype=rushlight.uint8))

    @abstractmethod
    def forward(self, x):
        """The rounded numbers, or the numbers themselves while disabled."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """The scale and the zero point of the integers."""

    def enable_fake_quant(self, enabled=True):
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        made = _late._with_args(cls, **kwargs)
        # Configurations are compared and printed by the module of their makers.
        made.__module__ = "torch.ao.quantization.fake_quantize"
        return made


class FakeQuantize(FakeQuantizeBase):
    """Rounds numbers with the scale that its observer finds; gradients pass within the range."""

    scale: rushlight.Tensor
    zero_point: rushlight.Tensor

    def __init__(
        self,
        observer=MovingAverageMinMaxObserver,
        quant_min=None,
        quant_max=None,
        is_dynamic=False,
        **observer_kwargs,
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            dtype = observer_kwargs.get("dtype", rushlight.quint8)
            if hasattr(observer, "p"):
                # The maker's own dtype holds; those of makers inside makers do.
                dtype = getattr(getattr(observer, "p", {}), "keywords", {}).get("dtype", dtype)
            limits = rushlight.iinfo(utils.to_underlying_dtype(dtype)) if _whole(dtype) else None
            if limits is not None:
                if limits.min > quant_min:
                    raise AssertionError("quant_min out of bound")
                if quant_max > limits.max:
                    raise AssertionError("quant_max out of bound")
            observer_kwargs.update({"quant_min": quant_min, "quant_max": quant_max})
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        seen = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        float_zero = _is_float_qparams(seen.qscheme)
        self.register_buffer("scale", rushlight.tensor([1.0], dtype=rushlight.float))
        self.register_buffer(
            "zero_point", rushlight.tensor([0], dtype=rushlight.float if float_zero else rushlight.int)
        )
        self.dtype, self.qscheme = seen.dtype, seen.qscheme
        self.ch_axis = getattr(seen, "ch_axis", -1)
        if not (_is_per_channel(self.qscheme) or _is_per_tensor(self.qscheme)):
            raise AssertionError(
                f"Only per channel and per tensor quantization are supported in fake quantize got "
                f"qscheme: {self.qscheme}"
            )
        self.is_per_channel = _is_per_channel(self.qscheme)

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def _take_qparams(self):
        """Keep what the observer asks for now."""
        scale, zero_point = self.calculate_qparams()
        scale, zero_point = scale.to(self.scale.device), zero_point.to(self.zero_point.device)
        if self.scale.shape != scale.shape:
            self.scale.resize_(scale.shape)
            self.zero_point.resize_(zero_point.shape)
        self.scale.copy_(scale)
        self.zero_point.copy_(zero_point)

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            self._take_qparams()
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return rushlight.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
            )
        return rushlight.fake_quantize_per_tensor_affine(
            X, self.scale, self.zero_point, self.quant_min, self.quant_max
        )

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, "
            f"qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Buffers whose shape is known only once numbers were seen stand in the state as they are.
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = self.scale
        destination[prefix + "zero_point"] = self.zero_point

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        for name in ("scale", "zero_point"):
            key = prefix + name
            if key in state_dict:
                getattr(self, name).resize_(state_dict[key].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)


def _whole(dtype):
    return not dtype.is_floating_point


class FixedQParamsFakeQuantize(FakeQuantize):
    """Of functions whose range is known: nothing is watched."""

    def __init__(self, observer):
        super().__init__(observer=observer)
        if type(self.activation_post_process).__name__ != "FixedQParamsObserver":
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a FixedQParamsObserver, but got: "
                f"{type(self.activation_post_process).__name__}"
            )
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point
        if not _is_per_tensor(self.qscheme):
            raise AssertionError(
                "Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:"
                + str(self.qscheme)
            )

    def calculate_qparams(self):
        return self.scale, self.zero_point

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Watches averages of the range and rounds, in one operator."""

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **observer_kwargs):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver or "
                "MovingAveragePerChannelMinMaxObserver"
            )
        self.register_buffer("fake_quant_enabled", rushlight.tensor([1], dtype=rushlight.long))
        self.register_buffer("observer_enabled", rushlight.tensor([1], dtype=rushlight.long))
        self.is_symmetric_quant = _is_symmetric_quant(self.activation_post_process.qscheme)

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )

    def forward(self, X):
        seen = self.activation_post_process
        return rushlight.fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            seen.min_val,
            seen.max_val,
            self.scale,
            self.zero_point,
            seen.averaging_constant,
            seen.quant_min,
            seen.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


# ---- what configurations name ----

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=rushlight.quint8,
    qscheme=rushlight.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
    reduce_range=False,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=rushlight.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=rushlight.per_channel_affine_float_qparams,
    dtype=rushlight.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=rushlight.per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=rushlight.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver,
    quant_min=0,
    quant_max=255,
    dtype=rushlight.quint8,
    qscheme=rushlight.per_tensor_affine,
    reduce_range=True,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=rushlight.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_tensor_symmetric,
    eps=2**-12,
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=rushlight.qint8,
    qscheme=rushlight.per_channel_symmetric,
    eps=2**-12,
)


def _is_fake_quant_script_module(mod):
    """Whether a scripted module was one of these."""
    if not isinstance(mod, rushlight.jit.ScriptModule):
        return False
    name = re.sub(r".*\.", "", str(getattr(mod, "original_name", "")))
    return name in ("FakeQuantize", "FusedMovingAvgObsFakeQuantize")


def _switch(method):
    def apply(mod):
        if isinstance(mod, FakeQuantizeBase) or _is_fake_quant_script_module(mod):
            getattr(mod, method)()

    apply.__name__ = apply.__qualname__ = method
    apply.__doc__ = f"``{method}`` of one module, if it rounds; for ``model.apply``."
    return apply


disable_fake_quant = _switch("disable_fake_quant")
enable_fake_quant = _switch("enable_fake_quant")
disable_observer = _switch("disable_observer")
enable_observer = _switch("enable_observer")
