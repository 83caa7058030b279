"""einops: the patches and heads of a small vision transformer, by functions and by layers."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
image = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8)

patches = rearrange(image, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
assert patches.shape == (2, 4, 48)
unfolded = nn.functional.unfold(image, 4, stride=4).reshape(2, 3, 16, 4).permute(0, 3, 2, 1).reshape(2, 4, 48)
assert torch.equal(patches, unfolded)
back = rearrange(patches, "b (h w) (p q c) -> b c (h p) (w q)", h=2, p=4, q=4)
assert torch.equal(back, image)

assert torch.equal(reduce(image, "b c (h 2) (w 2) -> b c h w", "max"), nn.functional.max_pool2d(image, 2))
assert torch.allclose(reduce(image, "b c h w -> b c", "mean"), image.mean((2, 3)))
assert torch.equal(repeat(torch.arange(3), "n -> n copies", copies=2), torch.arange(3)[:, None].expand(3, 2))
queries, keys = torch.randn(2, 5, 4), torch.randn(2, 6, 4)
assert torch.allclose(einsum(queries, keys, "b i d, b j d -> b i j"), queries @ keys.mT, atol=1e-6)
packed, shapes = pack([image, patches[:, :, :3].mT.reshape(2, 3, 2, 2)], "b c *")
assert packed.shape == (2, 3, 68) and torch.equal(unpack(packed, shapes, "b c *")[0], image)

net = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=16),
    nn.GELU(),
    Reduce("b t d -> b d", "mean"),
    nn.Linear(16, 2),
)
assert [name for name, _ in net.named_parameters()] == ["1.weight", "1.bias", "4.weight", "4.bias"]
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
labels = torch.tensor([0, 1])
losses = []
for _ in range(30):
    loss = nn.functional.cross_entropy(net(image / 384), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.1 < losses[0], losses

try:
    rearrange(image, "b c h w -> b c h")
except Exception as error:
    assert type(error).__name__ == "EinopsError", error
else:
    raise AssertionError("a missing axis was accepted")
