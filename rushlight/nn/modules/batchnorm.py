"""Batch normalization and the state it shares with instance normalization."""

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d", "LazyBatchNorm1d", "BatchNorm2d", "LazyBatchNorm2d", "BatchNorm3d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Scale and shift per channel, and running statistics."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: "float | None" = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, present in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(torch.empty(num_features, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, value)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Version 1 did not count batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                count = self.num_batches_tracked
                known = count is not None and not count.is_meta
                state_dict[key] = count if known else torch.tensor(0, dtype=torch.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def _batch_statistics(self):
        """Count the batch in training; the momentum to use, and whether to use the batch's own statistics."""
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        return momentum, use_batch

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum, use_batch = self._batch_statistics()
        keep_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep_running else None,
            self.running_var if keep_running else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        # Built without tensors first, as there is no size for them.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.long, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            tensor = getattr(self, name)
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


def _check_dims(input, *allowed):
    if input.dim() not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L).

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float or None): share of the batch in the running statistics; None is the mean
            of all batches.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels) or (batch, channels, length), kept.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over batch and length

    Raises: ValueError where the input has another number of dimensions, or one value a channel in training.

    Example:
        >>> torch.nn.BatchNorm1d(2)(torch.tensor([[0.0, 1.0], [2.0, 1.0]])).shape
        torch.Size([2, 2])
    """

    def _check_input_dim(self, input):
        _check_dims(input, 2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `BatchNorm1d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `BatchNorm1d`.

    Formula: that of `BatchNorm1d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyBatchNorm1d()
        >>> layer(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 4])
        >>> type(layer).__name__
        'BatchNorm1d'
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W).

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float or None): share of the batch in the running statistics; None is the mean
            of all batches.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, height, width), kept.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over batch, height and width

    Raises: ValueError where the input has not four dimensions.

    Example:
        >>> torch.nn.BatchNorm2d(3).eval()(torch.ones(1, 3, 2, 2)).shape
        torch.Size([1, 3, 2, 2])
    """

    def _check_input_dim(self, input):
        _check_dims(input, 4)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `BatchNorm2d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `BatchNorm2d`.

    Formula: that of `BatchNorm2d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyBatchNorm2d()
        >>> layer(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
        >>> type(layer).__name__
        'BatchNorm2d'
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class BatchNorm3d(_BatchNorm):
    """Batch normalization (Ioffe and Szegedy 2015) of (N, C, D, H, W).

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float or None): share of the batch in the running statistics; None is the mean of all
            batches.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, depth, height, width), kept.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over all but channels

    Raises: ValueError where the input has not five dimensions.

    Example:
        >>> torch.nn.BatchNorm3d(1).eval()(torch.ones(1, 1, 2, 2, 2)).shape
        torch.Size([1, 1, 2, 2, 2])
    """

    def _check_input_dim(self, input):
        _check_dims(input, 5)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `BatchNorm3d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `BatchNorm3d`.

    Formula: that of `BatchNorm3d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyBatchNorm3d()
        >>> layer(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
        >>> type(layer).__name__
        'BatchNorm3d'
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes of a group; alone, over its own batch.

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float or None): share of the batch in the running statistics; None is the mean of all
            batches.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        process_group (ProcessGroup or None): the processes; None: all.
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, ..), kept.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over all batches

    Raises: ValueError where the input has fewer than two dimensions.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2))
        >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        Sequential(
          (0): Conv2d(1, 2, kernel_size=(1, 1), stride=(1, 1))
          (1): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input):
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _world_size(self):
        distributed = getattr(torch, "distributed", None)
        if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
            return 1
        return distributed.get_world_size(self.process_group)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if not self.training or self._world_size() == 1:
            return super().forward(input)
        momentum, _ = self._batch_statistics()
        return self._synchronized(input, momentum)

    def _synchronized(self, input, momentum):
        """Normalize by the mean and variance of all processes; gradients flow back through the exchange."""
        from rushlight.distributed.nn.functional import all_reduce

        dims = [d for d in range(input.dim()) if d != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        count = input.new_full((1,), input.numel() / input.size(1), dtype=torch.float32)
        x = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        sums = all_reduce(
            torch.cat([x.sum(dims), (x * x).sum(dims), count.to(x.dtype)]), group=self.process_group
        )
        total, squares, n = sums.split([input.size(1), input.size(1), 1])
        mean = total / n
        var = squares / n - mean * mean
        if self.track_running_stats and self.running_mean is not None:
            with torch.no_grad():
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                self.running_var.lerp_((var * n / (n - 1)).to(self.running_var.dtype), momentum)
        out = (x - mean.view(shape)) * torch.rsqrt(var + self.eps).view(shape)
        if self.weight is not None:
            out = out * self.weight.view(shape)
        if self.bias is not None:
            out = out + self.bias.view(shape)
        return out.to(input.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with every batch normalization in it replaced by a SyncBatchNorm with the same state."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
