"""Observers of the least and the greatest number, of all numbers or of each channel."""

import rushlight
from rushlight.jit._decorations import export

from .. import utils
from ._base import UniformQuantizationObserverBase

_EPS = rushlight.finfo(rushlight.float32).eps


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest number seen."""

    min_val: rushlight.Tensor
    max_val: rushlight.Tensor

    def __init__(
        self,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        if not utils.is_per_tensor(qscheme):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric \
                    and torch.per_tensor_affine."
            )
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        made = dict(factory_kwargs or {})
        self.register_buffer("min_val", rushlight.tensor(float("inf"), **made))
        self.register_buffer("max_val", rushlight.tensor(float("-inf"), **made))
        if (
            self.qscheme == rushlight.per_tensor_symmetric
            and self.reduce_range
            and self.dtype == rushlight.quint8
        ):
            raise NotImplementedError(
                "Cannot reduce range for symmetric \
                                       quantization for quint8"
            )

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        seen = x_orig.detach().to(self.min_val.dtype)
        low, high = rushlight.aminmax(seen)
        self.min_val.copy_(rushlight.min(low, self.min_val))
        self.max_val.copy_(rushlight.max(high, self.max_val))
        return x_orig

    @export
    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    @export
    def reset_min_max_vals(self):
        self.min_val.copy_(rushlight.tensor(float("inf")))
        self.max_val.copy_(rushlight.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps averages of the least and the greatest number, in which older calls fade."""

    def __init__(
        self,
        averaging_constant=0.01,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        qscheme = rushlight.per_tensor_affine if qscheme is None else qscheme
        if not utils.is_per_tensor(qscheme):
            raise NotImplementedError(
                f"MovingAverageMinMaxObserver's qscheme only support \
                    torch.per_tensor_symmetric and torch.per_tensor_affine. \
                    but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and self.averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {self.averaging_constant}"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        seen = x_orig.detach().to(self.min_val.dtype)
        low, high = rushlight.aminmax(seen)
        if not (self.min_val == float("inf") and self.max_val == float("-inf")):
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest number of each channel."""

    min_val: rushlight.Tensor
    max_val: rushlight.Tensor

    def __init__(
        self,
        ch_axis=0,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        qscheme = rushlight.per_channel_affine if qscheme is None else qscheme
        if not utils.is_per_channel(qscheme):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support                     "
                "torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs
        )
        made = dict(factory_kwargs or {})
        self.ch_axis = ch_axis
        self.register_buffer("min_val", rushlight.tensor([], **made))
        self.register_buffer("max_val", rushlight.tensor([], **made))
        if (
            self.qscheme == rushlight.per_channel_symmetric
            and self.reduce_range
            and self.dtype == rushlight.quint8
        ):
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def _extremes(self, x_orig):
        """The least and the greatest number of each channel of a tensor."""
        seen = x_orig.detach().movedim(self.ch_axis, 0).to(self.min_val.dtype)
        return rushlight.aminmax(rushlight.flatten(seen, start_dim=1), dim=1)

    def _keep(self, low, high):
        if low.shape != self.min_val.shape:
            self.min_val.resize_(low.shape)
            self.max_val.resize_(high.shape)
        self.min_val.copy_(low)
        self.max_val.copy_(high)

    def forward(self, x_orig):
        return self._forward(x_orig)

    def _forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._extremes(x_orig)
        if self.min_val.numel() and self.max_val.numel():
            low, high = rushlight.min(low, self.min_val), rushlight.max(high, self.max_val)
        self._keep(low, high)
        return x_orig

    @export
    def calculate_qparams(self):
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        """Buffers take the shape of what is loaded: how many channels there are is known only then."""
        version = local_metadata.get("version")
        if version is not None and version < 3:
            for new, old in (("min_val", "min_vals"), ("max_val", "max_vals")):
                if prefix + old in state_dict:
                    state_dict[prefix + new] = state_dict.pop(prefix + old)
        for name in ("min_val", "max_val"):
            key = prefix + name
            if key in state_dict:
                getattr(self, name).resize_(state_dict[key].shape)
            elif strict:
                missing.append(key)
        # What is missing is noted above once; the base would note it again.
        again = []
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, again, unexpected, errors)
        missing += [key for key in again if key not in missing]

    @export
    def reset_min_max_vals(self):
        # Old tensors may have been handed out, so new ones take their place.
        self.min_val = rushlight.rand(0)
        self.max_val = rushlight.rand(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps averages of the least and the greatest number of each channel, in which older calls fade."""

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=None,
        qscheme=None,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        qscheme = rushlight.per_channel_affine if qscheme is None else qscheme
        if not utils.is_per_channel(qscheme):
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver's qscheme only support                     "
                "torch.per_channel_symmetric, torch.per_channel_affine and "
                "torch.per_channel_affine_float_qparams."
            )
        if is_dynamic:
            raise NotImplementedError(
                "MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization"
            )
        super().__init__(
            ch_axis=ch_axis,
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        low, high = self._extremes(x_orig)
        if self.min_val.numel() and self.max_val.numel():
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self._keep(low, high)
        return x_orig
