"""Two trained networks made smaller: digits by layers of integers, text by weights of eight and four bits."""

import math

import classify_digits
import language_model
from common import arguments, figure

import rushlight as torch
from rushlight import nn
from rushlight.demo import digits
from rushlight.export import Dim, load_file, quantize_file, save_file
from rushlight.utils.data import DataLoader


def smaller_digits(folder, steps):
    """Accuracy before and after, and what the quantised file says of its layers."""
    training, held_out = digits.split()
    model = classify_digits.make_model()
    classify_digits.train(model, DataLoader(training, batch_size=64, shuffle=True), steps)
    images, labels = next(iter(DataLoader(held_out, batch_size=len(held_out))))
    samples, _ = next(iter(DataLoader(training, batch_size=256)))
    save_file(model.eval(), folder / "digits.rl", (images[:2],), dynamic_shapes=({0: Dim("N")},))
    done = quantize_file(folder / "digits.rl", folder / "digits-int8.rl", "int8", samples)

    def accuracy(name):
        return (load_file(folder / name)(images).argmax(1) == labels).float().mean().item()

    return accuracy("digits.rl"), accuracy("digits-int8.rl"), done


def train_text(steps):
    """A small transformer on Python's documents, and a part of them that it has not seen."""
    text, characters = language_model.read()
    text, unseen = text[:-20000], text[-20000:]
    model = language_model.GPT(len(characters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        starts = torch.randint(len(text) - language_model.CONTEXT - 1, (32, 1))
        piece = text[starts + torch.arange(language_model.CONTEXT + 1)]
        loss = nn.functional.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == steps:
            print(f"step {step}: {loss.item():.3f} nats a character")
    return model.eval(), unseen


def perplexity(path, text):
    length = language_model.CONTEXT
    pieces = text[: len(text) // (length + 1) * (length + 1)].view(-1, length + 1)[:128]
    logits = load_file(path)(pieces[:, :-1])
    return math.exp(nn.functional.cross_entropy(logits.flatten(0, 1), pieces[:, 1:].flatten()).item())


def smaller_text(folder, steps):
    """Perplexity and size of each file, by method."""
    model, unseen = train_text(steps)
    example = unseen[: 2 * language_model.CONTEXT].view(2, -1)
    save_file(model, folder / "text.rl", (example,), dynamic_shapes=({0: Dim("N", max=256)},))
    found = {"float32": (perplexity(folder / "text.rl", unseen), (folder / "text.rl").stat().st_size)}
    for method in ("int8-weights", "int4-weights"):
        path = folder / f"text-{method}.rl"
        quantize_file(folder / "text.rl", path, method)
        found[method] = perplexity(path, unseen), path.stat().st_size
    return found


def main():
    given = arguments(__doc__, steps=300, text_steps=400)
    torch.manual_seed(0)
    before, after, done = smaller_digits(given.out, given.steps)
    print(f"digits: accuracy {before:.2%} of floats, {after:.2%} of int8")
    print(f"digits: {done.sizes[0] / 1e3:.0f} kB of floats, {done.sizes[1] / 1e3:.0f} kB of int8")

    found = smaller_text(given.out, given.text_steps)
    first, whole = found["float32"]
    for method, (score, size) in found.items():
        worse = f"{score / first - 1:+.2%}"
        print(f"text: {method}: perplexity {score:.3f} ({worse}), {size / whole:.3f} of the size")

    made, axes = figure(6, 3)
    names, errors = zip(*done.errors, strict=True)
    axes.barh(names, [100 * e for e in errors])
    axes.invert_yaxis()
    axes.set(xlabel="error of a layer's result, %", title="digits, int8")
    made.savefig(given.out / "quantize.png")


if __name__ == "__main__":
    main()
