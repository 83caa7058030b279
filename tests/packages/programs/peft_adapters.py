"""peft: LoRA on a small random GPT-2; only the adapters learn, and merging keeps the outputs."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(
        n_layer=2,
        n_head=2,
        n_embd=32,
        vocab_size=50,
        n_positions=32,
        attn_pdrop=0,
        embd_pdrop=0,
        resid_pdrop=0,
    )
)
adapted = get_peft_model(model, LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM"))
trained = [p for p in adapted.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, 1e-2)
tokens = torch.randint(0, 50, (2, 8))
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = adapted(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] - 0.1, losses
adapted.eval()
before = adapted(input_ids=tokens).logits
torch.testing.assert_close(adapted.merge_and_unload()(input_ids=tokens).logits, before, atol=1e-4, rtol=1e-4)
