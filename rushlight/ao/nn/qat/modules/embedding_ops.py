"""Embeddings with rounded weights."""

import rushlight
from rushlight import nn
from rushlight.nn import functional as F

from ._rounding import check_source, round_weights

__all__ = ["Embedding", "EmbeddingBag"]

_PLAIN = (
    "num_embeddings",
    "embedding_dim",
    "padding_idx",
    "max_norm",
    "norm_type",
    "scale_grad_by_freq",
    "sparse",
)
_BAG = ("num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse")


_SCHEME = rushlight.per_channel_affine_float_qparams


def _check_scheme(table, qconfig):
    """Raise unless the qconfig rounds the table's weights row by row."""
    scheme = qconfig.weight().qscheme if qconfig else _SCHEME
    if scheme != _SCHEME:
        kind = "Embedding" if issubclass(table, nn.Embedding) else "Embedding Bag"
        raise AssertionError(
            f"{kind} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}"
        )


class Embedding(nn.Embedding):
    """Embedding with rounded weights."""

    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        device=None,
        dtype=None,
        qconfig=None,
    ):
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            device=device,
            dtype=dtype,
        )
        _check_scheme(type(self), qconfig)
        round_weights(self, qconfig, device, dtype)

    def forward(self, input):
        return F.embedding(
            input,
            self.weight_fake_quant(self.weight),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer; weights are shared."""
        check_source(cls, mod)
        _check_scheme(cls, mod.qconfig)
        return cls(
            *(getattr(mod, name) for name in _PLAIN),
            mod.weight,
            mod.weight.device,
            mod.weight.dtype,
            mod.qconfig,
        )

    def to_float(self):
        made = nn.Embedding(
            *(getattr(self, name) for name in _PLAIN), device=self.weight.device, dtype=self.weight.dtype
        )
        made.weight = nn.Parameter(self.weight.detach())
        made.train(self.training)
        return made


class EmbeddingBag(nn.EmbeddingBag):
    """EmbeddingBag with rounded weights."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        qconfig=None,
        device=None,
        dtype=None,
    ):
        super().__init__(
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight,
            include_last_offset,
            padding_idx,
            device=device,
            dtype=dtype,
        )
        _check_scheme(type(self), qconfig)
        round_weights(self, qconfig, device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(
            input,
            self.weight_fake_quant(self.weight),
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer; weights are shared."""
        check_source(cls, mod)
        _check_scheme(cls, mod.qconfig)
        return cls(
            *(getattr(mod, name) for name in _BAG),
            mod.weight,
            mod.include_last_offset,
            mod.padding_idx,
            mod.qconfig,
            mod.weight.device,
            mod.weight.dtype,
        )

    def to_float(self):
        made = nn.EmbeddingBag(
            *(getattr(self, name) for name in _BAG),
            None,
            self.include_last_offset,
            self.padding_idx,
            device=self.weight.device,
            dtype=self.weight.dtype,
        )
        made.weight = nn.Parameter(self.weight.detach())
        made.train(self.training)
        return made
