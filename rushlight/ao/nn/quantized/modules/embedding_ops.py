"""Embeddings with integer weights."""

from typing import Optional

import rushlight
from rushlight import nn

from .utils import _hide_packed_params_repr, _quantize_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]


class EmbeddingPackedParams(nn.Module):
    """A weight as the kernel wants it; in files it is a plain tensor."""

    _version = 1

    def __init__(self, num_embeddings, embedding_dim, dtype=rushlight.quint8):
        super().__init__()
        self.dtype = dtype
        if dtype not in (rushlight.quint8, rushlight.quint4x2):
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}"
            )
        ones = rushlight.ones(num_embeddings, dtype=rushlight.float)
        zeros = rushlight.zeros(num_embeddings, dtype=rushlight.float)
        self.set_weight(
            rushlight._empty_per_channel_affine_quantized(
                [num_embeddings, embedding_dim], scales=ones, zero_points=zeros, axis=0, dtype=dtype
            )
        )

    def set_weight(self, weight):
        if self.dtype not in (rushlight.quint8, rushlight.quint4x2):
            raise NotImplementedError(
                "Unsupported dtype for quantized embedding prepack! Supports quint8 and quint4x2."
            )
        self._packed_weight = rushlight.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self):
        return rushlight.ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)

    def __repr__(self):
        return repr(self._weight())


class Embedding(nn.Module):
    """Embedding with integer weights; results are numbers."""

    _version = 1

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
        dtype=rushlight.quint8,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self._packed_params.set_weight(_weight)

    def forward(self, indices):
        if self.dtype == rushlight.quint4x2:
            return rushlight.ops.quantized.embedding_4bit(self._packed_params._packed_weight, indices)
        return rushlight.ops.quantized.embedding_byte(self._packed_params._packed_weight, indices)

    def _get_name(self):
        return "QuantizedEmbedding"

    def __repr__(self):
        return _hide_packed_params_repr(self, EmbeddingPackedParams)

    def extra_repr(self):
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w):
        self._packed_params.set_weight(w)

    def weight(self):
        return self._packed_params._weight()

    @classmethod
    def _observed_weight(cls, mod, use_precomputed_fake_quant):
        """The float weight as integers, rounded as its observer or its fake quantiser asks."""
        from rushlight.ao.nn import qat

        plain, trained = (
            (nn.EmbeddingBag, qat.EmbeddingBag)
            if issubclass(cls, EmbeddingBag)
            else (nn.Embedding, qat.Embedding)
        )
        if hasattr(mod, "weight_fake_quant"):
            if type(mod) is not trained:
                raise AssertionError(
                    f"nnq.{cls.__name__}.from_float with fake quant only works for {trained.__name__}"
                )
            observer = mod.weight_fake_quant
        else:
            if type(mod) is not plain:
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {plain.__name__}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError(f"{plain.__name__} input float module must have qconfig defined")
            from rushlight.ao.quantization import float_qparams_weight_only_qconfig

            given = mod.qconfig is not None and mod.qconfig.weight is not None
            observer = mod.qconfig.weight() if given else float_qparams_weight_only_qconfig.weight()
        if observer.qscheme != rushlight.per_channel_affine_float_qparams:
            raise AssertionError(
                "Embedding quantization is only supported with float_qparams_weight_only_qconfig."
            )
        if observer.dtype not in (rushlight.quint8, rushlight.quint4x2):
            raise AssertionError(
                f"The only supported dtype for nnq.Embedding is torch.quint8 and torch.quint4x2, "
                f"got {observer.dtype}"
            )
        if not use_precomputed_fake_quant:
            observer(mod.weight)
        return _quantize_weight(mod.weight.float(), observer), observer.dtype

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        weight, dtype = cls._observed_weight(mod, use_precomputed_fake_quant)
        made = cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding):
        made = cls(
            ref_embedding.num_embeddings,
            ref_embedding.embedding_dim,
            ref_embedding.padding_idx,
            ref_embedding.max_norm,
            ref_embedding.norm_type,
            ref_embedding.scale_grad_by_freq,
            ref_embedding.sparse,
            ref_embedding.get_quantized_weight(),
            ref_embedding.weight_dtype,
        )
        return made


class EmbeddingBag(Embedding):
    """EmbeddingBag with integer weights; results are numbers."""

    _version = 1

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="sum",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        dtype=rushlight.quint8,
    ):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode = mode
        self.pruned_weights = False
        self.include_last_offset = include_last_offset
        self.dtype = dtype

    def forward(
        self,
        indices,
        offsets: Optional[rushlight.Tensor] = None,  # noqa: UP045 (a script reads it)
        per_sample_weights: Optional[rushlight.Tensor] = None,  # noqa: UP045
        compressed_indices_mapping: Optional[rushlight.Tensor] = None,  # noqa: UP045
    ):
        if self.dtype == rushlight.quint4x2:
            return rushlight.ops.quantized.embedding_bag_4bit(
                self._packed_params._packed_weight,
                indices,
                offsets,
                False,
                0,
                self.pruned_weights,
                per_sample_weights,
                compressed_indices_mapping,
                self.include_last_offset,
            )
        return rushlight.ops.quantized.embedding_bag_byte(
            self._packed_params._packed_weight,
            indices,
            offsets,
            False,
            0,
            self.pruned_weights,
            per_sample_weights,
            compressed_indices_mapping,
            self.include_last_offset,
        )

    def _get_name(self):
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        weight, dtype = cls._observed_weight(mod, use_precomputed_fake_quant)
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            max_norm=mod.max_norm,
            norm_type=mod.norm_type,
            mode=mod.mode,
            include_last_offset=mod.include_last_offset,
            dtype=dtype,
        )
        made.set_weight(weight)
        return made

    @classmethod
    def from_reference(cls, ref_embedding_bag):
        return cls(
            ref_embedding_bag.num_embeddings,
            ref_embedding_bag.embedding_dim,
            ref_embedding_bag.max_norm,
            ref_embedding_bag.norm_type,
            ref_embedding_bag.scale_grad_by_freq,
            ref_embedding_bag.mode,
            ref_embedding_bag.sparse,
            ref_embedding_bag.get_quantized_weight(),
            ref_embedding_bag.include_last_offset,
            ref_embedding_bag.weight_dtype,
        )
