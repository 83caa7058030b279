"""A character language model on Python's own documents: an LSTM, or a small GPT (--model gpt)."""

import pydoc_data.topics

from common import arguments, figure

import rushlight as torch
from rushlight import nn

CONTEXT = 64


class LSTM(nn.Module):
    def __init__(self, characters, width=128):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class GPT(nn.Module):
    def __init__(self, characters, width=96, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Parameter(torch.zeros(CONTEXT, width))
        block = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, characters)

    def forward(self, x):
        length = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        y = self.embedding(x) + self.position[:length]
        return self.head(self.blocks(y, mask=mask, is_causal=True))


def read():
    """The documents as numbers of characters, and the characters."""
    text = "\n".join(pydoc_data.topics.topics.values())
    text = "".join(c for c in text if c.isascii())
    characters = sorted(set(text))
    number = {c: i for i, c in enumerate(characters)}
    return torch.tensor([number[c] for c in text]), characters


@torch.no_grad()
def sample(model, characters, length=300):
    text = [characters.index("T")]
    for _ in range(length):
        logits = model(torch.tensor([text[-CONTEXT:]]))[0, -1]
        text.append(torch.multinomial((logits / 0.8).softmax(0), 1).item())
    return "".join(characters[i] for i in text)


def main():
    given = arguments(__doc__, steps=600, model="lstm")
    torch.manual_seed(0)
    text, characters = read()
    model = {"lstm": LSTM, "gpt": GPT}[given.model](len(characters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(1, given.steps + 1):
        starts = torch.randint(len(text) - CONTEXT - 1, (32, 1))
        piece = text[starts + torch.arange(CONTEXT + 1)]
        loss = nn.functional.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == given.steps:
            print(f"step {step}: {losses[-1]:.3f} nats a character")
    text = sample(model, characters)
    print(text)
    (given.out / f"{given.model}.txt").write_text(text)
    made, axes = figure()
    axes.plot(losses)
    axes.set(xlabel="step", ylabel="nats a character", title=given.model)
    made.savefig(given.out / f"{given.model}.png")


if __name__ == "__main__":
    main()
