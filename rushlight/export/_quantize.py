"""Files of models made smaller: weights, or whole layers, as integers."""

import json
import os
import re
import statistics
import time
from dataclasses import dataclass, field

import rushlight as torch
from rushlight import _C

from ._graph_text import Text
from ._quantize_errors import QuantizeError
from ._small_activations import Rounding, watching
from ._small_weights import SmallWeights

METHODS = ("int8", "int8-weights", "int4-weights")
_MARKS = ("_weight_only_", "onednn::q", "quantized_decomposed::", "_quantized_", "quantize_per_")
_BATCH = 8  # samples of a calibration at once, where sizes may change


@dataclass
class Quantized:
    """What became of a file: sizes in bytes, seconds of a run, and how far results are off."""

    method: str
    layers: int
    sizes: tuple
    seconds: tuple
    outputs: dict  # name -> (relative error, largest difference, part of rows whose largest is the same)
    errors: list = field(default_factory=list)  # (layer, relative error), in order of the graph


def quantize_file(path, output, method, calibrate=None, *, group=32, activation_bits=8):
    """Write the model of a file of floats with integers for its weights, or for its layers as a whole.

    ``method`` is "int8" (weights and activations; ``calibrate`` are samples of the inputs, an array or a dict
    of arrays by name), "int8-weights" or "int4-weights", with a scale for each ``group`` columns of a row.
    ``activation_bits=7`` keeps activations of "int8" to half their range, as PyTorch's ``x86`` settings do:
    faster on processors without VNNI. Returns a `Quantized`, which says what was gained and lost.
    """
    path, output = os.fspath(path), os.fspath(output)
    if method not in METHODS:
        raise QuantizeError(f"there is no method '{method}': it is one of {', '.join(METHODS)}")
    if activation_bits not in (7, 8) or activation_bits == 7 and method != "int8":
        raise QuantizeError(
            f"activations of int8 have 8 bits or 7, those of other methods are floats: got {activation_bits}"
        )
    if group <= 0 or group % 32:
        raise QuantizeError(f"groups must be multiples of 32 columns, got {group}")
    if os.path.exists(output) and os.path.samefile(path, output):
        raise QuantizeError(f"'{output}' is the model itself: name another file for the result")
    methods, state, texts = _C._read_model(path)
    for graph, _ in methods.values():
        if any(mark in str(graph) for mark in _MARKS):
            raise QuantizeError(f"'{path}' is quantised already: begin with the file of floats")
    if method == "int8" and (state or len(methods) > 1):
        raise QuantizeError(
            "models with state or several methods are quantised by their weights alone: "
            "use int8-weights or int4-weights"
        )
    samples = _samples(calibrate, methods) if method == "int8" or calibrate is not None else None
    weights = SmallWeights(8 if method == "int8-weights" else 4, group)
    written, layers, shown = {}, 0, None
    for name, (graph, constants) in methods.items():
        if not state:
            graph, constants = graph.optimize(constants)
            graph = graph.propagate_shapes(constants)
        text = Text.of(graph)
        if method == "int8":
            rounding = Rounding(text, constants)
            if rounding.layers:
                rounding.observe(samples, activation_bits)
            changed, count, values = rounding.apply(), len(rounding.layers), rounding.layers
        else:
            changed, count = weights.run(text, constants)
            values = weights.layers
        if shown is None:
            shown = (Text.of(graph), constants), (text, changed), values
        layers += count
        written[name] = _finished(str(text), changed)
    if not layers:
        raise QuantizeError(
            "there is nothing to quantise: no layer has a weight of float32 that is fixed"
            + (" and large enough" if method != "int8" else "")
        )
    _C._write_model(output, written, state, texts)
    return _compare(path, output, method, layers, shown, samples)


def _finished(text, constants):
    read = set(re.findall(r'constant\("((?:[^"\\]|\\.)*)"\)', text))
    kept = {name: t for name, t in constants.items() if name in read}
    graph, kept = _C._JitGraph(text).propagate_shapes(kept).optimize(kept)
    return graph.propagate_shapes(kept), kept


# --- samples


def _parse_type(text):
    """(dtype, sizes) of "float32[N, 3]"; sizes that may change are text."""
    dtype, _, sizes = text.partition("[")
    parts = [part.strip() for part in sizes.rstrip("]").split(",") if part.strip()]
    return getattr(torch, dtype), [int(part) if part.isdigit() else part for part in parts]


def _samples(calibrate, methods):
    """Batches of inputs, of what was given for calibration."""
    if calibrate is None:
        raise QuantizeError(
            "int8 needs samples of the inputs, which tell the ranges of the activations: give some "
            "(--calibrate data.npy), or use int8-weights, which needs none"
        )
    inputs = dict(next(iter(methods.values()))[0].inputs)
    if not isinstance(calibrate, dict):
        calibrate = {next(iter(inputs), ""): calibrate}
    for name in calibrate:
        if name not in inputs:
            raise QuantizeError(f"the model has no input '{name}': it has {', '.join(inputs)}")
    missing = [name for name in inputs if name not in calibrate]
    if missing:
        raise QuantizeError(f"there are no samples for the inputs {', '.join(missing)}")
    pieces = {name: _pieces(name, inputs[name], torch.as_tensor(calibrate[name])) for name in inputs}
    count = {len(p) for p in pieces.values()}
    if len(count) > 1:
        raise QuantizeError("the samples of the inputs must be as many for each")
    if not count or count == {0}:
        raise QuantizeError("no samples: the ranges of the activations are found by running some")
    return list(zip(*pieces.values()))


def _pieces(name, type, data):
    dtype, sizes = _parse_type(type)
    if data.dtype != dtype:
        raise QuantizeError(f"samples of '{name}' must be {str(dtype)[6:]}, got {str(data.dtype)[6:]}")
    given = list(data.shape)
    if data.dim() == len(sizes) + 1:
        data = data.flatten(0, 1)
        given = list(data.shape)
    fits = data.dim() == len(sizes) and all(
        a == b for a, b in zip(given[1:], sizes[1:]) if isinstance(b, int)
    )
    if not fits or not sizes:
        raise QuantizeError(f"samples of '{name}' must be {type}, or more of them, got {given}")
    step = sizes[0] if isinstance(sizes[0], int) else min(_BATCH, max(given[0], 1))
    if given[0] and given[0] < step:
        raise QuantizeError(f"samples of '{name}' must be at least {step}, as the model's input {type}")
    return [data[i : i + step] for i in range(0, given[0] - step + 1, step)]


# --- what was gained and lost


_PROMPT = 64  # tokens of a text that language models are compared by


def _settings(model):
    """What a language model's file says of itself; nothing in other files."""
    return json.loads(model.texts["generate.json"]) if "generate.json" in model.texts else {}


def _step(settings, first, count):
    """Inputs of a language model's step: tokens of one text, each of them wanted."""
    pages = -(-settings["max_length"] // settings["page"])
    places, rows = torch.arange(first, first + count), torch.arange(count)
    tokens = torch.randint(0, settings["vocabulary"], (count,))
    return [tokens, places, torch.zeros_like(rows), torch.arange(pages).repeat(count, 1), rows]


def _example(model, name):
    """Inputs of a method: the first tokens of a text, or by the sizes that the graph gives as examples."""
    settings, graph = _settings(model), model._methods[name].graph
    if name == "step" and "page" in settings:
        return _step(settings, 0, min(_PROMPT, settings["max_length"] - 1))
    symbols = {m[1]: int(m[2]) for m in re.finditer(r"^symbol (\w+) = (\d+)", str(graph), re.M)}
    words = settings.get("vocabulary")
    made = []
    for name, type in graph.inputs:
        dtype, sizes = _parse_type(type)
        shape = [s if isinstance(s, int) else _size(s, symbols) for s in sizes]
        if words and name == "tokens":
            made.append(torch.randint(0, words, shape))
        elif words and len(shape) == 1:
            made.append(torch.arange(shape[0]))
        elif dtype.is_floating_point:
            made.append(torch.randn(shape).to(dtype))
        else:
            made.append(torch.zeros(shape, dtype=dtype))
    return made


def _size(text, symbols):
    match = re.fullmatch(r"(?:(\d+)\*)?(\w+)([+-]\d+)?", text)
    if not match:
        raise QuantizeError(f"an input has a size that is not known: {text}")
    return int(match[1] or 1) * symbols[match[2]] + int(match[3] or 0)


def _compare(path, output, method, layers, shown, samples):
    from ._one_file import load_file

    before, after = load_file(path), load_file(output)
    name = before.methods[0]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        inputs = list(samples[0]) if samples else _example(before, name)
        results = [m.session().call(name, *inputs) for m in (before, after)]
        seconds = _times(before, after, inputs)
        errors = _layer_errors(shown, before, inputs)
    sizes = os.path.getsize(path), os.path.getsize(output)
    outputs = {key: _difference(results[0][key], results[1][key]) for key in results[0]}
    return Quantized(method, layers, sizes, seconds, outputs, errors)


def _times(before, after, inputs):
    """Seconds of what is run most often, which for language models is one more token; alternated: medians."""
    name, settings = before.methods[0], _settings(before)
    if "decode" in before.methods and settings:
        inputs = _example(before, name := "decode")
    elif name == "step" and "page" in settings:
        inputs = _step(settings, min(_PROMPT, settings["max_length"] - 1), 1)
    sessions, times = [m.session() for m in (before, after)], ([], [])
    for session in sessions:
        session.call(name, *inputs)
    start = time.perf_counter()
    while len(times[0]) < 3 or (time.perf_counter() - start < 2 and len(times[0]) < 200):
        for session, taken in zip(sessions, times):
            began = time.perf_counter()
            session.call(name, *inputs)
            taken.append(time.perf_counter() - began)
    return tuple(map(statistics.median, times))


def _difference(a, b):
    if not a.is_floating_point():
        return (a != b).double().mean().item(), (a - b).abs().max().item() if a.numel() else 0, None
    a, b = a.double(), b.double()
    same = None
    if a.dim() and a.shape[-1] > 1:
        same = (a.argmax(-1) == b.argmax(-1)).double().mean().item()
    return _relative(a, b), (a - b).abs().max().item() if a.numel() else 0.0, same


def _relative(a, b):
    """How large a difference is beside what it is of."""
    size = a.double().norm().item()
    return (a.double() - b.double()).norm().item() / size if size else 0.0


def _layer_errors(shown, model, inputs):
    """(layer, relative error of its result) of the graph with and without integers."""
    *graphs, values = shown
    found = []
    for text, constants in graphs:
        executor = watching(text, values, constants)
        states = model._methods[model.methods[0]].states
        found.append(executor.run(inputs, [model._state[name].clone() for name in states]))
    return [(_layer_name(weight), _relative(a, b)) for weight, a, b in zip(values.values(), *found)]


def _layer_name(weight):
    """The module's path; a layer that took a normalisation in is named by its step of the graph."""
    folded = weight.removeprefix("folded.")
    return folded.removesuffix(".weight" if folded == weight else "_weight")
