"""Embeddings with rounded weights."""

import rushlight
from rushlight import nn
from rushlight.nn import functional as F

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


def _check_scheme(kind, qconfig):
    scheme = qconfig.weight().qscheme
    if scheme != rushlight.per_channel_affine_float_qparams:
        raise AssertionError(
            f"{kind} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}"
        )


def _round_weights(layer, qconfig, device, dtype):
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    _check_scheme("Embedding" if isinstance(layer, nn.Embedding) else "Embedding Bag", qconfig)
    layer.qconfig = qconfig
    made = {} if device is None and dtype is None else {"factory_kwargs": {"device": device, "dtype": dtype}}
    layer.weight_fake_quant = qconfig.weight(**made)


def _check_float(cls, mod):
    if type(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(
            f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
            f"{type(mod).__name__}"
        )
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    _check_scheme("Embedding" if cls._FLOAT_MODULE is nn.Embedding else "Embedding Bag", mod.qconfig)


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
        _round_weights(self, qconfig, device, dtype)

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
        _check_float(cls, mod)
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
        _round_weights(self, qconfig, device, dtype)

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
        _check_float(cls, mod)
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
