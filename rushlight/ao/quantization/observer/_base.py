"""What observers share: arguments given ahead, ranges of integers, the scale and the zero point."""

import warnings
from abc import ABC, abstractmethod

import rushlight
from rushlight.nn import Module

from .. import _late, utils


class ObserverBase(ABC, Module):
    """Base of modules that watch numbers pass, to find a range for integers."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x):
        """Look at numbers and pass them on."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """The scale and the zero point that the numbers seen so far ask for."""

    with_args = classmethod(_late._with_args)
    with_callable_args = classmethod(_late._with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Base of observers whose integers stand at equal distances: they need the least and the greatest
    number."""

    # Version 1 had no buffer eps; before 3, per-channel buffers were min_vals and max_vals.
    _version = 3
    eps: rushlight.Tensor

    def __init__(
        self,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=rushlight.finfo(rushlight.float32).eps,
        is_dynamic=False,
        **kwargs,
    ):
        dtype = rushlight.quint8 if dtype is None else dtype
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        made = dict(factory_kwargs or {})
        self.qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. \
                    reduce_range will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", rushlight.tensor([eps], **made))
        if not (utils.is_per_tensor(self.qscheme) or utils.is_per_channel(self.qscheme)):
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, "
                "per_channel_affine, "
                "per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        t = rushlight
        allowed = (t.qint8, t.quint8, t.quint4x2, t.qint32, t.int8, t.uint8, t.int16, t.int32)
        allowed += (t.float8_e5m2, t.float8_e4m3fn, t.uint16)
        if self.dtype not in allowed:
            names = ", ".join(f"torch.{str(d).rpartition('.')[2]}" for d in allowed)
            raise AssertionError(f"Default Observer only works for ({names}) data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            utils.validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = utils.calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, self.dtype, self.reduce_range
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if local_metadata.get("version") in (None, 1):
            state_dict[prefix + "eps"] = rushlight.tensor([rushlight.finfo(rushlight.float32).eps])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _validate_qmin_qmax(self, quant_min, quant_max):
        utils.validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val, max_val):
        return utils.determine_qparams(
            min_val,
            max_val,
            self.quant_min,
            self.quant_max,
            self.dtype,
            self.eps,
            self.has_customized_qrange,
            self.qscheme,
        )

    def reset_min_max_vals(self):
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


_ObserverBase = UniformQuantizationObserverBase


def _is_observer_script_module(mod, obs_type_name):
    """Whether a scripted module was an observer of this name."""
    if isinstance(mod, rushlight.jit.ScriptModule):
        return obs_type_name == getattr(mod, "original_name", None)
    return False


def _is_activation_post_process(module):
    """Whether a module watches or rounds numbers for another one."""
    from ..fake_quantize import FakeQuantizeBase

    return isinstance(module, (ObserverBase, FakeQuantizeBase)) or _is_observer_script_module(
        module, "MinMaxObserver"
    )


def _is_per_channel_script_obs_instance(module):
    return _is_observer_script_module(module, "PerChannelMinMaxObserver") or _is_observer_script_module(
        module, "MovingAveragePerChannelMinMaxObserver"
    )


def get_observer_state_dict(mod):
    """The part of a model's state that belongs to observers."""
    kept = type(mod.state_dict())()
    for name, value in mod.state_dict().items():
        if "observer" in name or "activation_post_process" in name:
            kept[name] = value
    kept._metadata = {
        name: value
        for name, value in mod.state_dict()._metadata.items()
        if "observer" in name or "activation_post_process" in name
    }
    return kept


def load_observer_state_dict(mod, obs_dict):
    """Give a model's observers the state that ``get_observer_state_dict`` took; nothing else changes."""
    missing, unexpected, errors = [], [], []
    for name, module in mod.named_modules():
        prefix = name + "."
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, prefix, {"version": 3}, False, missing, unexpected, errors)
    for key in missing:
        if "observer" in key or "activation_post_process" in key:
            raise Exception(f"Missing keys for observer {key} in state_dict")
    for key in unexpected:
        if "observer" in key or "activation_post_process" in key:
            raise Exception(f"Unexpected keys for observer {key} in state_dict")
    if errors:
        raise RuntimeError("\n".join(errors))
