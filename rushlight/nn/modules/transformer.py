"""The transformer of "Attention Is All You Need" and its layers."""

import warnings

import rushlight as torch
from rushlight import Tensor
from rushlight._command.names import program_level
from rushlight.nn import functional as F
from rushlight.nn.init import xavier_uniform_

from ._padding import leaves_out_padding, obstacle_of_layer
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]  # fmt: skip


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    return torch.triu(torch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """Whether mask is the causal one; asked of the mask itself only where the caller does not say."""
    if is_causal is not None or mask is None or torch.compiler.is_exporting():  # traces have no values
        return is_causal is True
    length = size if size is not None else mask.size(-2)
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _get_clones(module, N):
    from copy import deepcopy

    return ModuleList([deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _relu_or_gelu(activation):
    """1 for ReLU, 2 for GELU, 0 for others."""
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _get_seq_len(src, batch_first):
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0)


class Transformer(Module):
    """An encoder and a decoder (Vaswani and others 2017).

    Args:
        d_model (int): features of the input.
        nhead (int): heads, of which `d_model` is a multiple.
        num_encoder_layers (int): layers of the encoder.
        num_decoder_layers (int): layers of the decoder.
        dim_feedforward (int): features within the feedforward block.
        dropout (float): probability of dropout.
        activation (str or callable): 'relu', 'gelu' or a function, within the feedforward block.
        custom_encoder (Module or None): in place of the encoder.
        custom_decoder (Module or None): in place of the decoder.
        layer_norm_eps (float): added to variances.
        batch_first (bool): whether the batch is the first dimension.
        norm_first (bool): whether norms come before blocks and not behind residual sums.
        bias (bool): whether linear layers and norms have biases.
        device, dtype: where and in which dtype the parameters are made.

    Shape: source (length, batch, d_model) and target (target length, batch, d_model) become the target's
        shape.

    Formula: decoder(target, encoder(source))

    Raises: RuntimeError where batches or features differ.

    Example:
        >>> model = torch.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)
        >>> model(torch.ones(1, 5, 4), torch.ones(1, 3, 4)).shape
        torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        layer_args = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*layer_args, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*layer_args, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """-inf above the diagonal, 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, device=device, dtype=dtype)

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer (TransformerEncoderLayer): what is copied.
        num_layers (int): how many.
        norm (Module or None): what comes last.
        enable_nested_tensor (bool): whether padded positions may be left out in evaluation.
        mask_check (bool): whether it is made sure that padding is at the end, before they are.

    Shape: (length, batch, d_model), kept.

    Formula: y = norm(layer(..layer(x)))

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        >>> torch.nn.TransformerEncoder(layer, 2)(torch.ones(1, 3, 4)).shape
        torch.Size([1, 3, 4])
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        obstacle = enable_nested_tensor and obstacle_of_layer(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not obstacle
        if obstacle:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {obstacle}",
                stacklevel=program_level(),
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        src_key_padding_mask = F._canonical_mask(
            mask=src_key_padding_mask,
            mask_name="src_key_padding_mask",
            other_type=F._none_or_dtype(mask),
            other_name="mask",
            target_type=src.dtype,
        )
        mask = F._canonical_mask(
            mask=mask,
            mask_name="mask",
            other_type=None,
            other_name="",
            target_type=src.dtype,
            check_other=False,
        )
        length = (
            _get_seq_len(src, getattr(self.layers[0].self_attn, "batch_first", False))
            if mask is not None
            else None
        )
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask
            )
        if leaves_out_padding(self, src, mask, src_key_padding_mask):
            output = output.masked_fill(src_key_padding_mask.bool().unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer (TransformerDecoderLayer): what is copied.
        num_layers (int): how many.
        norm (Module or None): what comes last.

    Shape: (length, batch, d_model) and memory (source, batch, d_model); the first is kept.

    Formula: y = norm(layer(..layer(x, memory), memory))

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
        >>> torch.nn.TransformerDecoder(layer, 2)(torch.ones(1, 3, 4), torch.ones(1, 5, 4)).shape
        torch.Size([1, 3, 4])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        length = None
        if tgt_mask is not None:
            length = _get_seq_len(tgt, getattr(self.layers[0].self_attn, "batch_first", False))
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class _Layer(Module):
    """What encoder and decoder layers share: the feedforward block and its activation."""

    __constants__ = ["norm_first"]

    def _make_feedforward(self, d_model, dim_feedforward, dropout, bias, where):
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)

    def _feedforward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feedforward block, each with a residual sum and a norm (Vaswani and others 2017).

    Args:
        d_model (int): features of the input.
        nhead (int): heads, of which `d_model` is a multiple.
        dim_feedforward (int): features within the feedforward block.
        dropout (float): probability of dropout.
        activation (str or callable): 'relu', 'gelu' or a function, within the feedforward block.
        layer_norm_eps (float): added to variances.
        batch_first (bool): whether the batch is the first dimension.
        norm_first (bool): whether norms come before blocks and not behind residual sums.
        bias (bool): whether linear layers and norms have biases.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (length, batch, d_model), kept; or (batch, length, d_model) with `batch_first`.

    Formula: x = norm(x + attention(x)); y = norm(x + linear(activation(linear(x))))

    Example:
        >>> torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(torch.ones(1, 3, 4)).shape
        torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        where = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where
        )
        self._make_feedforward(d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation
        self.activation_relu_or_gelu = _relu_or_gelu(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        src_key_padding_mask = F._canonical_mask(
            mask=src_key_padding_mask,
            mask_name="src_key_padding_mask",
            other_type=F._none_or_dtype(src_mask),
            other_name="src_mask",
            target_type=src.dtype,
        )
        src_mask = F._canonical_mask(
            mask=src_mask,
            mask_name="src_mask",
            other_type=None,
            other_name="",
            target_type=src.dtype,
            check_other=False,
        )
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        return self.dropout2(self._feedforward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention over the encoder's output and a feedforward block, each with a residual sum
    and
    a norm (Vaswani and others 2017).

    Args:
        d_model (int): features of the input.
        nhead (int): heads, of which `d_model` is a multiple.
        dim_feedforward (int): features within the feedforward block.
        dropout (float): probability of dropout.
        activation (str or callable): 'relu', 'gelu' or a function, within the feedforward block.
        layer_norm_eps (float): added to variances.
        batch_first (bool): whether the batch is the first dimension.
        norm_first (bool): whether norms come before blocks and not behind residual sums.
        bias (bool): whether linear layers and norms have biases.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (length, batch, d_model) and memory (source, batch, d_model); the first is kept.

    Formula: x = norm(x + attention(x)); x = norm(x + attention(x, memory)); y = norm(x + feedforward(x))

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
        >>> layer(torch.ones(1, 3, 4), torch.ones(1, 5, 4)).shape
        torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        where = {"device": device, "dtype": dtype}
        super().__init__()
        attention = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **where}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self._make_feedforward(d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(x)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        return self.dropout3(self._feedforward(x))
