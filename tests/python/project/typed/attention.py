"""Attention, transformers, containers of modules."""

from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norm(x)
        y, weights = self.attention(y, y, y, attn_mask=mask, need_weights=False)
        assert weights is None
        return x + y + self.mlp(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(8, 2) for _ in range(2))
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 3)})

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for block in self.blocks:
            x = block(x)
        return {name: head(x) for name, head in self.heads.items()}


def main() -> None:
    x = torch.randn(2, 5, 8)
    out = Model()(x)
    assert out["a"].shape == (2, 5, 3)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), num_layers=1)
    encoded = encoder(x, is_causal=False)
    scores = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert encoded.shape == scores.shape == x.shape
    if TYPE_CHECKING:
        assert_type(out, dict[str, torch.Tensor])
        assert_type(encoded, torch.Tensor)
        assert_type(scores, torch.Tensor)


if __name__ == "__main__":
    main()
