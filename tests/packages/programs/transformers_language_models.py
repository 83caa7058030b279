"""transformers: tiny language models give PyTorch's losses, gradients and tokens from the same seed."""

import torch
import transformers

transformers.logging.set_verbosity_error()
COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "vocab_size": 99,
}
DECODER = {**COMMON, "num_key_value_heads": 2}
# Loss, sum of the magnitudes of the first parameter's gradient, and the last tokens of the first row: greedy,
# sampled with seed 1, and by three beams. Recorded on PyTorch 2.13.
MODELS = {
    "BertForMaskedLM": (COMMON, 4.62108, 44.5108),
    "DistilBertForMaskedLM": (
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "vocab_size": 99},
        4.59332,
        38.9742,
    ),
    "DebertaV2ForMaskedLM": (
        {**COMMON, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        4.64380,
        40.2314,
    ),
    "GPT2LMHeadModel": (
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64},
        4.59163,
        42.1039,
        [9, 9, 9, 9, 9],
        [80, 75, 39, 74, 25],
        [36, 36, 36, 36, 36],
    ),
    "LlamaForCausalLM": (
        DECODER,
        4.50983,
        25.0688,
        [9, 9, 9, 46, 4],
        [40, 80, 71, 64, 20],
        [9, 9, 9, 9, 46],
    ),
    "MistralForCausalLM": (
        DECODER,
        4.50983,
        25.0688,
        [9, 9, 9, 46, 4],
        [40, 80, 71, 64, 20],
        [9, 9, 9, 9, 46],
    ),
    "Qwen2ForCausalLM": (
        DECODER,
        4.55617,
        26.9618,
        [3, 57, 10, 41, 60],
        [3, 75, 23, 36, 20],
        [3, 12, 58, 39, 21],
    ),
    "GemmaForCausalLM": (
        {**DECODER, "head_dim": 8},
        4.59651,
        46.0788,
        [9, 9, 9, 9, 9],
        [3, 3, 71, 36, 65],
        [7, 7, 7, 7, 7],
    ),
    "T5ForConditionalGeneration": (
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 37,
            "num_layers": 2,
            "num_heads": 4,
            "vocab_size": 99,
            "decoder_start_token_id": 0,
        },
        5.31544,
        9.8750,
        [84, 84, 84, 84, 84],
        [0, 30, 69, 84, 28],
        [84, 84, 84, 84, 84],
    ),
    "BloomForCausalLM": (
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99},
        4.61509,
        42.2469,
        [9, 9, 9, 9, 9],
        [72, 30, 17, 81, 81],
        [34, 34, 34, 34, 34],
    ),
}
ids = torch.arange(14).reshape(2, 7) % 50 + 3


def generated(model, **options):
    torch.manual_seed(1)
    return model.generate(ids, max_new_tokens=5, pad_token_id=0, **options)[0, -5:].tolist()


for name, (options, loss, gradient, *tokens) in MODELS.items():
    cls = getattr(transformers, name)
    torch.manual_seed(0)
    model = cls(cls.config_class(**options)).eval()
    result = model(input_ids=ids, labels=ids)
    assert abs(result.loss.item() - loss) < 1e-4, (name, result.loss.item())
    result.loss.backward()
    found = next(model.parameters()).grad.abs().sum().item()
    assert abs(found - gradient) < 1e-3 * gradient, (name, found)
    if tokens:
        greedy, sampled, beams = tokens
        assert generated(model, do_sample=False) == greedy, name
        assert generated(model, do_sample=True, top_k=10) == sampled, name
        assert generated(model, do_sample=False, num_beams=3) == beams, name
