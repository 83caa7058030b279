"""Small random language models in folders, as transformers saves them; transformers is not needed."""

import json

import rushlight as torch
from rushlight.safetensors import save_file

WORDS = 60


def write_llama(folder, *, length=160, layers=2, words=WORDS, seed=0, silent=None):
    """A Llama whose likeliest tokens are far apart; the word ``silent`` gives no numbers."""
    torch.manual_seed(seed)
    width, inner, heads, head = 32, 48, 4, 8
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "max_position_embeddings": length,
        "vocab_size": words,
        "rms_norm_eps": 1e-6,
        "eos_token_id": 3,
    }
    sizes = {
        "self_attn.q_proj": (heads * head, width),
        "self_attn.k_proj": (heads * head // 2, width),
        "self_attn.v_proj": (heads * head // 2, width),
        "self_attn.o_proj": (width, heads * head),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    weights = {
        "model.embed_tokens.weight": torch.randn(words, width),
        "lm_head.weight": torch.randn(words, width),
        "model.norm.weight": torch.ones(width),
    }
    for i in range(layers):
        for name, shape in sizes.items():
            weights[f"model.layers.{i}.{name}.weight"] = torch.randn(*shape) * 2 / shape[1] ** 0.5
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"model.layers.{i}.{name}.weight"] = torch.ones(width)
    if silent is not None:
        weights["model.embed_tokens.weight"][silent] = torch.nan
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    return folder
