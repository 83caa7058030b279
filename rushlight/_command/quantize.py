"""The command `quantize`: a model of one file made smaller, and what that costs, as a table."""

import argparse
import os
import sys

HELP = (
    "Write a model of one file with integers for its weights, or for whole layers, and say what was gained "
    "and lost (docs/quantization.md)."
)


def _parser():
    parser = argparse.ArgumentParser("python -m rushlight quantize", description=HELP)
    parser.add_argument("model", metavar="MODEL.rl")
    parser.add_argument("--method", required=True, help="int8, int8-weights or int4-weights")
    parser.add_argument(
        "--calibrate",
        action="append",
        metavar="[NAME=]DATA.npy",
        help="samples of an input; int8 needs some, others compare results by them",
    )
    parser.add_argument("--group", type=int, default=32, help="columns with one scale, for int4-weights")
    parser.add_argument(
        "--activation-bits",
        type=int,
        default=8,
        help="7: activations of int8 in half their range, which is faster without VNNI",
    )
    parser.add_argument("-o", "--output", required=True, metavar="SMALL.rl")
    parser.add_argument("--report", metavar="PAGE.html", help="the error of each layer as a picture")
    return parser


def _calibration(words):
    """Arrays by name of input, or one of the first input."""
    import numpy as np

    given = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        if equals and os.path.exists(word):
            name, path = "", word
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no '{path}'")
        try:
            given[name] = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"'{path}' is no array of NumPy's: {error}") from None
        if not isinstance(given[name], np.ndarray):
            raise ValueError(f"'{path}' holds several arrays: save one with numpy.save")
    return given[""] if set(given) == {""} else given


def main(arguments):
    given = _parser().parse_args(arguments)
    try:
        import numpy as np

        import rushlight as torch
        from rushlight.export import quantize_file

        calibrate = _calibration(given.calibrate) if given.calibrate else None
        if isinstance(calibrate, np.ndarray):
            calibrate = torch.as_tensor(calibrate)
        done = quantize_file(
            given.model,
            given.output,
            given.method,
            calibrate,
            group=given.group,
            activation_bits=given.activation_bits,
        )
        print(table(done))
        if given.report:
            from rushlight.viz._quantized import page

            with open(given.report, "w", encoding="utf-8") as file:
                file.write(page(done, os.path.basename(given.model), table(done)))
    except (OSError, ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        sys.exit(f"rushlight: quantize: {' '.join(str(error).split())}")


def table(done):
    """Sizes, times and differences before and after."""
    before, after = done.seconds
    rows = [
        ("", "before", "after", ""),
        ("size", *(f"{n / 1e6:.2f} MB" for n in done.sizes), f"{done.sizes[1] / done.sizes[0]:.3f} of it"),
        ("a run", *map(_time, done.seconds), f"{before / after:.2f} times as fast"),
        ("layers", "", str(done.layers), f"are {done.method}"),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
    for name, (relative, most, same) in done.outputs.items():
        text = f"{name}: off by {100 * relative:.2f} % (root of squares), at most {most:.3g}"
        lines.append(text if same is None else f"{text}; the largest is the same in {100 * same:.0f} %")
    return "\n".join(lines)


def _time(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} us"
