"""Instance normalization: every channel of every sample by itself."""

import warnings

from rushlight import Tensor
from rushlight.nn import functional as F

from .batchnorm import _check_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        raise NotImplementedError

    def _check_input_dim(self, input):
        n = self._get_no_batch_dim()
        _check_dims(input, n, n + 1)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            stale = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if stale:
                names = " and ".join(f'"{k}"' for k in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may "
                    "be expected "
                    f"because {type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the "
                    "documentation of "
                    f"{type(self).__name__} for details."
                )
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        n = self._get_no_batch_dim()
        channel_dim = input.dim() - n
        if input.size(channel_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel_dim} to match num_features "
                    f"({self.num_features}), "
                    f"but got: {input.size(channel_dim)}."
                )
            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. You can silence this "
                "warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == n:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _normalize(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization (Ulyanov and others 2017): each channel of each example by itself.

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float): share of the batch in the running statistics.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, length), kept; also without a batch.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over length

    Raises: ValueError where the input has another rank.

    Example:
        >>> torch.nn.InstanceNorm1d(1)(torch.arange(4.0).view(1, 1, 4))
        tensor([[[-1.3416, -0.4472,  0.4472,  1.3416]]])
    """

    def _get_no_batch_dim(self):
        return 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization (Ulyanov and others 2017): each channel of each example by itself.

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float): share of the batch in the running statistics.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, height, width), kept; also without a batch.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over height and width

    Raises: ValueError where the input has another rank.

    Example:
        >>> torch.nn.InstanceNorm2d(1)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
    """

    def _get_no_batch_dim(self):
        return 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization (Ulyanov and others 2017): each channel of each example by itself.

    Args:
        num_features (int): channels of the input.
        eps (float): is added to the variance.
        momentum (float): share of the batch in the running statistics.
        affine (bool): whether each channel is scaled and shifted.
        track_running_stats (bool): whether running statistics are kept, and used by eval().
        device, dtype: where and in which dtype the parameters are made.
        bias (bool): whether there is a bias.

    Shape: (batch, channels, depth, height, width), kept; also without a batch.

    Formula: y = (x - mean) / sqrt(variance + eps) * weight + bias, over depth, height and width

    Raises: ValueError where the input has another rank.

    Example:
        >>> torch.nn.InstanceNorm3d(1)(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    def _get_no_batch_dim(self):
        return 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `InstanceNorm1d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `InstanceNorm1d`.

    Formula: that of `InstanceNorm1d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm1d()
        >>> layer(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 4])
        >>> type(layer).__name__
        'InstanceNorm1d'
    """

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim = InstanceNorm1d._get_no_batch_dim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `InstanceNorm2d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `InstanceNorm2d`.

    Formula: that of `InstanceNorm2d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm2d()
        >>> layer(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
        >>> type(layer).__name__
        'InstanceNorm2d'
    """

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim = InstanceNorm2d._get_no_batch_dim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input, and is one from then on.

    Args:
        eps, momentum, affine, track_running_stats, bias: see `InstanceNorm3d`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: that of `InstanceNorm3d`.

    Formula: that of `InstanceNorm3d`

    Raises: ValueError where values of parameters are used before the first input.

    Example:
        >>> layer = torch.nn.LazyInstanceNorm3d()
        >>> layer(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
        >>> type(layer).__name__
        'InstanceNorm3d'
    """

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim = InstanceNorm3d._get_no_batch_dim
