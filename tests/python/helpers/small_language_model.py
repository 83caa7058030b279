"""A random Llama in a folder, as transformers' save_pretrained writes it, without transformers."""

import json

import rushlight as torch
from rushlight.safetensors import save_file

CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "eos_token_id": 2,
    "bos_token_id": 1,
}


def write(folder, tokenizer, **config):
    """`tokenizer` is the text of a tokenizer.json; the config's members may be others."""
    words = max(json.loads(tokenizer)["model"]["vocab"].values()) + 8
    config = {**CONFIG, "vocab_size": words, **config}
    width, inner = config["hidden_size"], config["intermediate_size"]
    keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    torch.manual_seed(4)
    tensors = {name: torch.randn(words, width) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    tensors["model.norm.weight"] = torch.ones(width)
    for i in range(config["num_hidden_layers"]):
        shapes = {"q": (width, width), "k": (keys, width), "v": (keys, width), "o": (width, width)}
        for name, shape in shapes.items():
            tensors[f"model.layers.{i}.self_attn.{name}_proj.weight"] = torch.randn(shape) * 0.3
        for name, shape in {"gate": (inner, width), "up": (inner, width), "down": (width, inner)}.items():
            tensors[f"model.layers.{i}.mlp.{name}_proj.weight"] = torch.randn(shape) * 0.3
        for name in ("input", "post_attention"):
            tensors[f"model.layers.{i}.{name}_layernorm.weight"] = torch.ones(width)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer)
