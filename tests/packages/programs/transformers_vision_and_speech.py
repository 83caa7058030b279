"""transformers: tiny models of images and speech give PyTorch's losses from the same seed."""

import torch
import transformers

transformers.logging.set_verbosity_error()
LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
IMAGES = {**LAYERS, "image_size": 32, "patch_size": 8}
# Losses recorded on PyTorch 2.13.
MODELS = {
    "ViTForImageClassification": (IMAGES, 0.69842),
    "DeiTForImageClassification": (IMAGES, 0.79479),
    "BeitForImageClassification": (IMAGES, 0.81263),
    "ResNetForImageClassification": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        0.89133,
    ),
    "ConvNextForImageClassification": ({"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}, 0.72274),
    "SwinForImageClassification": (
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [1, 2],
            "num_heads": [2, 2],
            "window_size": 2,
        },
        0.70120,
    ),
}


def made(cls, **options):
    torch.manual_seed(0)
    model = cls(cls.config_class(**options)).eval()
    torch.manual_seed(3)
    return model


def check(name, loss, expected):
    assert abs(loss.item() - expected) < 1e-4 * max(1, expected), (name, loss.item())
    loss.backward()


for name, (options, expected) in MODELS.items():
    model = made(getattr(transformers, name), **options)
    check(name, model(torch.randn(2, 3, 32, 32), labels=torch.tensor([0, 1])).loss, expected)
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())

ids = torch.arange(14).reshape(2, 7) + 3
towers = {"projection_dim": 16}
clip = made(
    transformers.CLIPModel,
    text_config={**LAYERS, **towers, "vocab_size": 99},
    vision_config={**IMAGES, **towers},
    **towers,
)
check("CLIP", clip(input_ids=ids, pixel_values=torch.randn(2, 3, 32, 32), return_loss=True).loss, 1.13706)

whisper = made(
    transformers.WhisperForConditionalGeneration,
    **{
        f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in (("layers", 2), ("ffn_dim", 37))
    },
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    d_model=32,
    vocab_size=99,
    max_source_positions=30,
    max_target_positions=20,
    num_mel_bins=16,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=3,
)
sound = torch.randn(2, 16, 60)
check("Whisper", whisper(sound, labels=ids).loss, 4.5423)

speech = made(
    transformers.Wav2Vec2ForCTC,
    **LAYERS,
    vocab_size=32,
    conv_dim=(16, 16),
    conv_stride=(4, 4),
    conv_kernel=(8, 8),
    num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=2,
)
labels = torch.tensor([[1, 2, 3], [4, 5, 6]])
check("Wav2Vec2", speech(torch.randn(2, 1000), labels=labels).loss, 383.90961)
