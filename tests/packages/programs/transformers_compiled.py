"""transformers: whole models are one graph, in training and in generation with both kinds of cache."""

import torch
import transformers

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
POSITIONS = {"max_position_embeddings": 64}
CONFIGS = {
    "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "LlamaForCausalLM": {**SMALL, **POSITIONS, "num_key_value_heads": 2},
    "Qwen2ForCausalLM": {**SMALL, **POSITIONS, "num_key_value_heads": 2},
    "BertForSequenceClassification": {**SMALL, **POSITIONS},
    "T5ForConditionalGeneration": {
        "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0
    },
}  # fmt: skip
ids = torch.randint(0, 99, (2, 10))


def gradients(model, run, **inputs):
    model.zero_grad()
    run(**inputs).loss.backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def decode(run, model, cache, steps=5):
    """The logits of each step after a prompt; the model fills the cache."""
    with torch.no_grad():
        logits = [model(ids, cache=cache).logits]
        for _ in range(steps):
            token = logits[-1][:, -1:].argmax(-1).contiguous()
            logits.append(run(token, cache=cache).logits)
    return logits[1:]


for name, options in CONFIGS.items():
    cls = getattr(transformers, name)
    torch._dynamo.reset()
    model = cls(cls.config_class(vocab_size=99, **options)).eval()
    compiled = torch.compile(model, fullgraph=True)
    inputs = {"input_ids": ids}
    labels = {"labels": torch.tensor([0, 1]) if "Bert" in name else ids}
    if "T5" in name:
        inputs["decoder_input_ids"] = ids
    with torch.no_grad():
        torch.testing.assert_close(compiled(**inputs).logits, model(**inputs).logits)
    inputs["attention_mask"] = torch.ones_like(ids).tril(7)
    with torch.no_grad():
        torch.testing.assert_close(compiled(**inputs).logits, model(**inputs).logits)
    inputs.pop("decoder_input_ids", None)
    found = gradients(model, compiled, **inputs, **labels)
    torch.testing.assert_close(found, gradients(model, model, **inputs, **labels), atol=1e-5, rtol=1e-4)
    if "CausalLM" in name or "LMHead" in name:
        config = model.config
        for kind, more in (
            (transformers.DynamicCache, {}),
            (transformers.StaticCache, {"max_cache_len": 16}),
        ):
            mine, theirs = kind(config=config, **more), kind(config=config, **more)
            result = decode(compiled, model, mine)
            torch.testing.assert_close(result, decode(model, model, theirs))
            for a, b in zip(mine.layers, theirs.layers):
                torch.testing.assert_close((a.keys, a.values), (b.keys, b.values))
