"""`python -m rushlight demo`: train a convolutional network on real digits, save it, check the file."""

import argparse
import math
import sys
import tempfile
import time
import zipfile
from pathlib import Path

GOAL = 0.98


class DemoError(Exception):
    """A problem whose text is all that the user needs."""


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        raise DemoError(f"{message} (--help lists the options)")


def positive(kind):
    def parse(text):
        value = kind(text)
        if not (value > 0 and math.isfinite(value)):
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def make_parser():
    parser = OneLineParser(
        "python -m rushlight demo",
        description="Train a convolutional network on 1,797 handwritten digits (UCI), save it, draw its "
        "curves and predictions, load the file again and check that it predicts the same.",
    )

    def add(name, help, default=None, **settings):
        shown = "" if default is None else f" (default: {default})"
        parser.add_argument(name, help=help + shown, default=default, **settings)

    add("--output", "where the files go", Path("demo-output"), type=Path, metavar="FOLDER")
    add("--epochs", "passes over the training images", 12, type=positive(int), metavar="N")
    add("--batch-size", "images in one step", 64, type=positive(int), metavar="N")
    add("--learning-rate", "AdamW's highest step size", 3e-3, type=positive(float), metavar="X")
    add("--seed", "for the split, the initial weights and the order", 0, type=int, metavar="N")
    add("--threads", "threads to compute with (default: all cores)", type=positive(int), metavar="N")
    add("--no-pictures", "draw no PNG files", action="store_true")
    add("--check", "train nothing: load this saved model and test it", type=Path, metavar="MODEL")
    return parser


def main(arguments):
    try:
        options = make_parser().parse_args(arguments)
        if options.threads:
            import rushlight as torch

            torch.set_num_threads(options.threads)
        return check(options) if options.check else run(options)
    except DemoError as error:
        print(f"rushlight demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nrushlight demo: interrupted", file=sys.stderr)
        return 130


def run(options):
    import rushlight as torch

    from . import digits, training

    folder = writable_folder(options.output)
    train_set, held_out_set = digits.split(seed=options.seed)
    torch.manual_seed(options.seed)
    model = training.DigitNet()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(train_set):,} training and {len(held_out_set)} held-out images; {parameters:,} parameters")

    start = time.perf_counter()
    history = training.train(
        model,
        train_set,
        held_out_set,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
    )
    logits, labels = training.predict(model, held_out_set)
    reached = training.accuracy(logits, labels)
    print(f"held-out accuracy {reached:.2%} after {time.perf_counter() - start:.1f} s")

    path = folder / "digits.pt"
    save(model, options, path)
    if not options.no_pictures:
        draw(folder, history, held_out_set, logits, labels)
    confirm(path, held_out_set, logits)
    if reached < GOAL:
        print(f"below the goal of {GOAL:.0%}: more --epochs help")
    return 0


def check(options):
    """Test a saved model on the images that were held out when it was trained."""
    from . import digits, training

    model, seed = load(options.check)
    logits, labels = training.predict(model, digits.split(seed=seed)[1])
    print(
        f"{options.check}: accuracy {training.accuracy(logits, labels):.2%} on {len(labels)} held-out images"
    )
    return 0


def writable_folder(folder):
    """Make the folder and try it before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DemoError(f"can't write to the folder {folder}: {error.strerror}") from None
    return folder


def save(model, options, path):
    import rushlight as torch

    try:
        torch.save({"model": model.state_dict(), "seed": options.seed}, path)
    except OSError as error:
        raise DemoError(f"can't write {path}: {error.strerror}") from None
    print(f"saved {path}")


def load(path):
    """The model of a file that `save` wrote, and the seed of its split."""
    import rushlight as torch

    from .training import DigitNet

    model = DigitNet()
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip():
                raise ValueError("its checksums do not match")
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        return model, int(saved["seed"])
    except OSError as error:
        raise DemoError(f"can't read {path}: {error.strerror or error}") from None
    except Exception as error:  # a damaged file fails in as many ways as a file can be damaged
        reason = " ".join(str(error).split()).split(". ")[0][:160] or type(error).__name__
        raise DemoError(f"{path} is not a model saved by this demo, or it is damaged: {reason}") from None


def draw(folder, history, held_out_set, logits, labels):
    import rushlight as torch

    try:
        from . import pictures
    except ImportError:
        print("no pictures: matplotlib is not installed (pip install matplotlib)")
        return
    images = torch.stack([image for image, _ in held_out_set])
    curves, sheet = folder / "curves.png", folder / "predictions.png"
    try:
        pictures.draw_curves(history, curves)
        pictures.draw_predictions(images, labels, logits.softmax(1), sheet)
    except OSError as error:
        raise DemoError(f"can't write the pictures: {error}") from None
    print(f"drew {curves} and {sheet}")


def confirm(path, held_out_set, logits):
    """Load the saved file into a new network: it must predict exactly the same."""
    import rushlight as torch

    from .training import predict

    model, _ = load(path)
    again, _ = predict(model, held_out_set)
    if not torch.equal(again, logits):
        raise DemoError(f"the model loaded from {path} does not predict the same as the one that was saved")
    print(f"loaded {path} again: the same predictions for all {len(logits)} held-out images")
