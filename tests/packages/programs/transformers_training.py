"""transformers: saving and loading, and the Trainer: its losses, checkpoints, and going on from one."""

import os

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
config = transformers.LlamaConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=37,
    vocab_size=99,
)
ids = torch.arange(14).reshape(2, 7)
torch.manual_seed(0)
model = transformers.LlamaForCausalLM(config).eval()
with torch.no_grad():
    logits = model(ids).logits

model.save_pretrained("whole")
model.save_pretrained("shards", max_shard_size="20KB")
assert len([name for name in os.listdir("shards") if name.endswith(".safetensors")]) == 5
for folder in ("whole", "shards"):
    assert torch.equal(transformers.AutoModelForCausalLM.from_pretrained(folder)(ids).logits, logits)
half = transformers.AutoModelForCausalLM.from_pretrained("whole", dtype=torch.bfloat16)
assert half.dtype == torch.bfloat16 and (half(ids).logits.float() - logits).abs().max() < 0.05
eager = transformers.AutoModelForCausalLM.from_pretrained("whole", attn_implementation="eager")
attention = eager(ids, output_attentions=True).attentions[0]
assert torch.allclose(attention.sum(-1), torch.ones(2, 4, 7))
assert model.resize_token_embeddings(110).weight.shape == (110, 32)


class Multiples(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        row = (torch.arange(8) * (i + 1)) % 99
        return {"input_ids": row, "labels": row}


def trainer(epochs):
    torch.manual_seed(0)
    options = transformers.TrainingArguments(
        output_dir="training",
        num_train_epochs=epochs,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        logging_steps=4,
        save_strategy="epoch",
        eval_strategy="epoch",
        report_to=[],
        seed=3,
        use_cpu=True,
        disable_tqdm=True,
    )
    made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**model_options))
    return transformers.Trainer(made, options, train_dataset=Multiples(), eval_dataset=Multiples())


model_options = {**config.to_dict(), "vocab_size": 99}
first = trainer(epochs=2)
first.train()


def losses(of, key="loss"):
    return [entry[key] for entry in of.state.log_history if key in entry]


assert {"checkpoint-8", "checkpoint-16"} <= set(os.listdir("training"))
on = trainer(epochs=3)
on.train(resume_from_checkpoint="training/checkpoint-16")
through = trainer(epochs=3)
through.train()
assert on.state.global_step == through.state.global_step == 24
assert losses(on)[:4] == losses(first)
for one, other in zip(losses(on), losses(through), strict=True):
    assert abs(one - other) < 1e-3, (losses(on), losses(through))
on_pytorch = [4.56454, 4.59013, 4.51709, 4.22086, 3.96033, 4.25886]
for one, recorded in zip(losses(through), on_pytorch, strict=True):
    assert abs(one - recorded) < 1e-3, losses(through)
predictions = on.predict(Multiples())
assert predictions.predictions.shape == (32, 8, 99)
assert abs(predictions.metrics["test_loss"] - losses(on, "eval_loss")[-1]) < 1e-5
