"""Fake quantisation whose scale and zero point are learned."""

import rushlight
from rushlight import nn

from .fake_quantize import FakeQuantizeBase

__all__: list = []

_SYMMETRIC = (rushlight.per_channel_symmetric, rushlight.per_tensor_symmetric)
_BY_CHANNEL = (rushlight.per_channel_symmetric, rushlight.per_channel_affine)


class _LearnableFakeQuantize(FakeQuantizeBase):
    """Rounds to the grid of integers; scale and zero point follow an observer, or gradients.

    Args:
        observer: what watches the range.
        quant_min: the smallest integer.
        quant_max: the largest integer.
        scale: the first scale.
        zero_point: the first zero point.
        channel_len: how many channels have one each; -1 where there is one for all.
        use_grad_scaling: whether gradients are scaled by 1 / sqrt(elements * quant_max).
    """

    def __init__(
        self,
        observer,
        quant_min=0,
        quant_max=255,
        scale=1.0,
        zero_point=0.0,
        channel_len=-1,
        use_grad_scaling=False,
        **observer_kwargs,
    ):
        super().__init__()
        if quant_min >= quant_max:
            raise AssertionError("quant_min must be strictly less than quant_max.")
        self.quant_min, self.quant_max, self.use_grad_scaling = quant_min, quant_max, use_grad_scaling
        if channel_len != -1 and not (isinstance(channel_len, int) and channel_len > 0):
            raise AssertionError("Channel size must be a positive integer.")
        count = max(channel_len, 1)
        self.scale = nn.Parameter(rushlight.tensor([scale] * count))
        self.zero_point = nn.Parameter(rushlight.tensor([zero_point] * count))
        self.activation_post_process = observer(
            **{**observer_kwargs, "quant_min": quant_min, "quant_max": quant_max}
        )
        self.dtype = self.activation_post_process.dtype
        bounds = rushlight.iinfo(self.dtype)
        if bounds.min > quant_min:
            raise AssertionError("quant_min out of bound")
        if quant_max > bounds.max:
            raise AssertionError("quant_max out of bound")
        self.qscheme = self.activation_post_process.qscheme
        self.ch_axis = getattr(self.activation_post_process, "ch_axis", -1)
        for name, on in (("fake_quant_enabled", 1), ("static_enabled", 1), ("learning_enabled", 0)):
            self.register_buffer(name, rushlight.tensor([on], dtype=rushlight.uint8))
        self.bitwidth = (quant_max - quant_min + 1).bit_length() - 1
        self.register_buffer("eps", rushlight.tensor([rushlight.finfo(rushlight.float32).eps]))

    def _modes(self, learning, rounding, watching):
        self.toggle_qparam_learning(learning).toggle_fake_quant(rounding).toggle_observer_update(watching)

    def enable_param_learning(self):
        """Scale and zero point follow gradients."""
        self._modes(True, True, False)
        return self

    def enable_static_estimate(self):
        """Scale and zero point follow the observer."""
        self._modes(False, True, True)

    def enable_static_observation(self):
        """The observer watches, and nothing is rounded."""
        self._modes(False, False, True)

    def toggle_observer_update(self, enabled=True):
        self.static_enabled[0] = int(enabled)
        return self

    def enable_observer(self, enabled=True):
        self.toggle_observer_update(enabled)

    def toggle_qparam_learning(self, enabled=True):
        self.learning_enabled[0] = int(enabled)
        self.scale.requires_grad = self.zero_point.requires_grad = enabled
        return self

    def toggle_fake_quant(self, enabled=True):
        self.fake_quant_enabled[0] = int(enabled)
        return self

    def observe_quant_params(self):
        print(f"_LearnableFakeQuantize Scale: {self.scale.detach()}")
        print(f"_LearnableFakeQuantize Zero Point: {self.zero_point.detach()}")

    def calculate_qparams(self):
        self.scale.data.clamp_(min=self.eps.item())
        zero_point = self.zero_point.detach().round().clamp(self.quant_min, self.quant_max).long()
        return self.scale.detach(), zero_point

    def forward(self, X):
        if self.static_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.activation_post_process.calculate_qparams()
            self.scale.data.copy_(scale)
            self.zero_point.data.copy_(zero_point)
        else:
            self.scale.data.clamp_(min=self.eps.item())
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.qscheme in _SYMMETRIC:
            self.zero_point.data.zero_()
        factor = (X.numel() * self.quant_max) ** -0.5 if self.use_grad_scaling else 1.0
        bounds = (self.quant_min, self.quant_max, factor)
        if self.qscheme in _BY_CHANNEL:
            return rushlight._fake_quantize_learnable_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *bounds
            )
        return rushlight._fake_quantize_learnable_per_tensor_affine(X, self.scale, self.zero_point, *bounds)
