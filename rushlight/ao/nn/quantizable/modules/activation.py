"""Attention whose projections are linear layers, each of which can be watched and become one of integers."""

import rushlight
from rushlight import Tensor, nn
from rushlight.ao.nn._functional_modules import FloatFunctional
from rushlight.nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """Attention of plain numbers between projections that can be of integers."""

    _FLOAT_MODULE = nn.MultiheadAttention

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub

        made = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, **made
        )
        self.linear_Q = nn.Linear(embed_dim, embed_dim, bias=bias, **made)
        self.linear_K = nn.Linear(self.kdim, embed_dim, bias=bias, **made)
        self.linear_V = nn.Linear(self.vdim, embed_dim, bias=bias, **made)
        # The projection of results need not be the plain class: only that one is replaced.
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **made)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self):
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other):
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim,
            other.num_heads,
            other.dropout,
            other.in_proj_bias is not None,
            other.bias_k is not None,
            other.add_zero_attn,
            other.kdim,
            other.vdim,
            other.batch_first,
        )
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        size = made.embed_dim
        for index, (layer, name) in enumerate(
            ((made.linear_Q, "q"), (made.linear_K, "k"), (made.linear_V, "v"))
        ):
            part = slice(index * size, (index + 1) * size)
            if other._qkv_same_embed_dim:
                layer.weight = nn.Parameter(other.in_proj_weight[part, :])
            else:
                layer.weight = nn.Parameter(getattr(other, f"{name}_proj_weight"))
            layer.bias = None if other.in_proj_bias is None else nn.Parameter(other.in_proj_bias[part])
        made.eval()
        from rushlight.ao import quantization

        return quantization.prepare(made)

    @classmethod
    def from_observed(cls, other):
        from rushlight.ao.nn import quantized

        return quantized.MultiheadAttention.from_observed(other)

    def dequantize(self):
        """The plain layer with these weights."""
        plain = self._FLOAT_MODULE(
            self.embed_dim,
            self.num_heads,
            self.dropout,
            self.linear_Q._weight_bias()[1] is not None,
            self.bias_k is not None,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
        )
        if plain._qkv_same_embed_dim != self._qkv_same_embed_dim:
            raise AssertionError("both layers have one size of queries, keys and values, or none has")
        for name in ("bias_k", "bias_v"):
            value = getattr(self, name)
            if value is not None:
                setattr(plain, name, nn.Parameter(value.dequantize()))
        weight, bias = self.out_proj._weight_bias()
        plain.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            plain.out_proj.bias = nn.Parameter(bias)
        parts = [layer._weight_bias() for layer in (self.linear_Q, self.linear_K, self.linear_V)]
        if plain._qkv_same_embed_dim:
            plain.in_proj_weight = nn.Parameter(rushlight.cat([w.dequantize() for w, _ in parts]))
        else:
            for name, (w, _) in zip("qkv", parts):
                setattr(plain, f"{name}_proj_weight", nn.Parameter(w.dequantize()))
        if all(b is not None for _, b in parts):
            plain.in_proj_bias = nn.Parameter(rushlight.cat([b for _, b in parts]))
        return plain

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ):
        return self._forward_impl(
            query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
        )

    def _widened(self, mask: Tensor | None):
        """A mask that lets one more key pass."""
        return F.pad(mask, (0, 1)) if mask is not None else mask

    def _of_heads(self, x, heads: int):
        """[length, batch, size] -> [batch * heads, length, width]"""
        return x.contiguous().view(-1, x.size(1) * heads, x.size(2) // heads).transpose(0, 1)

    def _forward_impl(
        self,
        query,
        key,
        value,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ):
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        length, batch, size = query.size()
        heads, width = self.num_heads, size // self.num_heads
        if size != self.embed_dim or width * heads != size:
            raise AssertionError("embed_dim must be divisible by num_heads")
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), float(width) ** -0.5)
        k, v = self.linear_K(key), self.linear_V(value)
        if attn_mask is not None:
            if attn_mask.dtype == rushlight.uint8:
                attn_mask = attn_mask.to(rushlight.bool)
            if attn_mask.dim() == 2:
                attn_mask = attn_mask.unsqueeze(0)
        if key_padding_mask is not None and key_padding_mask.dtype == rushlight.uint8:
            key_padding_mask = key_padding_mask.to(rushlight.bool)
        if self.bias_k is not None and self.bias_v is not None:
            k = rushlight.cat([k, self.bias_k.repeat(1, batch, 1)])
            v = rushlight.cat([v, self.bias_v.repeat(1, batch, 1)])
            attn_mask, key_padding_mask = self._widened(attn_mask), self._widened(key_padding_mask)
        q = self._of_heads(self.dequant_q(q), heads)
        k = self._of_heads(self.dequant_k(k), heads)
        v = self._of_heads(self.dequant_v(v), heads)
        if self.add_zero_attn:
            none = rushlight.zeros(k.size(0), 1, width, dtype=k.dtype)
            k, v = rushlight.cat([k, none], dim=1), rushlight.cat([v, none], dim=1)
            attn_mask, key_padding_mask = self._widened(attn_mask), self._widened(key_padding_mask)
        scores = rushlight.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            scores = (
                scores.masked_fill(attn_mask, float("-inf"))
                if attn_mask.dtype == rushlight.bool
                else scores + attn_mask
            )
        if key_padding_mask is not None:
            hidden = key_padding_mask.unsqueeze(1).unsqueeze(2)
            scores = scores.view(batch, heads, length, -1).masked_fill(hidden, float("-inf")).view_as(scores)
        weights = F.dropout(F.softmax(scores, dim=-1), p=self.dropout, training=self.training)
        result = rushlight.bmm(weights, v)
        if self.batch_first:
            result = result.view(batch, heads, length, width).transpose(1, 2).reshape(batch, length, size)
        else:
            result = result.transpose(0, 1).contiguous().view(length, batch, size)
        result = self.out_proj(self.quant_attn_output(result))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return result, None
        weights = weights.view(batch, heads, length, -1)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return result, weights
