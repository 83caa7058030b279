"""x-transformers: decoders of many kinds and generation, against values recorded on PyTorch 2.13."""

import torch
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)


def decoder(**options):
    torch.manual_seed(0)
    layers = Decoder(dim=32, depth=2, heads=4, **options)
    return TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=layers)


model = decoder(rotary_pos_emb=True, attn_flash=True, ff_glu=True, use_rmsnorm=True)
tokens = torch.randint(0, 64, (2, 16))
assert abs(model(tokens).sum().item() - 233.7128) < 1e-2, model(tokens).sum()
generator = AutoregressiveWrapper(model)
loss = generator(torch.randint(0, 64, (2, 17)))
assert abs(loss.item() - 4.3131) < 1e-4, loss
loss.backward()
assert generator.generate(tokens[:, :3], 8, temperature=0.0).tolist() == [
    [6, 27, 42, 57, 39, 6, 27, 42],
    [46, 3, 30, 32, 28, 5, 12, 62],
]
torch.manual_seed(1)
assert generator.generate(tokens[:, :3], 8).tolist() == [
    [35, 61, 0, 20, 19, 2, 17, 22],
    [16, 32, 58, 57, 42, 32, 12, 1],
]

# The sum of the output, and of the magnitudes of the first parameter's gradient.
KINDS = [
    ({"alibi_pos_bias": True}, 133.6864, 2575.2679),
    ({"rel_pos_bias": True}, -64.1846, 3338.983),
    ({"attn_qk_norm": True}, 139.4447, 2640.481),
    ({"sandwich_norm": True}, 262.5378, 3464.7268),
    ({"macaron": True}, 5.7881, 2952.5555),
    ({"shift_tokens": 1}, 123.9108, 2548.2252),
    ({"gate_residual": True}, 106.5961, 2404.2873),
    ({"attn_one_kv_head": True}, 15.3881, 2210.6388),
    ({"residual_attn": True}, 142.4396, 2622.6304),
    ({"attn_num_mem_kv": 4}, -83.5004, 2612.0221),
    ({"ff_swish": True, "ff_glu": True}, 27.8564, 3295.7569),
    ({"dynamic_pos_bias": True}, 21.7013, 2103.083),
    ({"attn_sparse_topk": 4}, 138.1201, 2626.1425),
    ({"use_scalenorm": True}, 121.6924, 2772.4212),
    ({"rotary_xpos": True}, 187.217, 3489.8865),
]
for options, output, gradient in KINDS:
    model = decoder(**options)
    result = model(tokens)
    result.sum().backward()
    found = next(model.parameters()).grad.abs().sum().item()
    assert abs(result.sum().item() - output) < 1e-2, (options, result.sum().item())
    assert abs(found - gradient) < 1e-4 * gradient, (options, found)

images = ViTransformerWrapper(
    image_size=32, patch_size=8, num_classes=10, attn_layers=Encoder(dim=32, depth=2, heads=4)
)
assert images(torch.randn(2, 3, 32, 32)).shape == (2, 10)
sides = {"num_tokens": 64, "depth": 2, "heads": 4, "max_seq_len": 32}
both = XTransformer(
    dim=32,
    tie_token_emb=True,
    **{f"{side}_{name}": value for side in ("enc", "dec") for name, value in sides.items()},
)
loss = both(tokens, torch.randint(0, 64, (2, 12)), mask=torch.ones(2, 16, dtype=torch.bool))
loss.backward()
assert loss.isfinite() and all(p.grad.isfinite().all() for p in both.parameters() if p.grad is not None)
