"""Layers on integers of eight bits: where activations are rounded, to what, and the graph that says so."""

import functools
import re
from copy import copy

import rushlight as torch
from rushlight import _C
from rushlight._operators.traits import layers

from ._graph_text import Call
from ._quantize_errors import QuantizeError
from ._small_weights import check_finite


@functools.cache
def _keep_elements():
    """Operators that move, order or limit elements, whatever these stand for."""
    names = set()
    for record in _C._operator_records():
        if record["traits"].on_quantized == "integers" or record["traits"].limits:
            space = f"{record['space']}::" if record["space"] else ""
            overload = f".{record['overload']}" if record["overload"] else ""
            names.add(f"{space}{record['name']}{overload}")
    return names


class Rounding:
    """Which values of a graph become integers, and the layers that take them."""

    def __init__(self, text, constants):
        self.text, self.constants = text, constants
        self.held = text.constants()
        self.turned = {
            c.value: self.held[used]
            for c in text.calls
            if c.base == "t"
            for used in c.uses()
            if used in self.held
        }
        self.layers = {}  # value of a layer -> name of its weight
        self.values = {}  # values to round, in order of the graph
        self._find()

    def _find(self):
        types, users = self.text.types(), self.text.users()
        chosen, keep_elements = set(), _keep_elements()
        for call in self.text.calls:
            weight = self._weight(call)
            x = call.positional(layers()[call.name][0]) if weight else None
            if x and types.get(x[1:], "").startswith("float32["):
                self.layers[call.value] = weight
                chosen.add(x[1:])
        for call in reversed(self.text.calls):  # sums of what becomes integers, of integers
            if call.base != "add" or len(call.arguments) != 2:
                continue
            a, b = ((call.positional(i) or "")[1:] for i in (0, 1))
            after = call.value
            while after not in chosen and len(following := users.get(after, [])) == 1:
                if following[0].name not in keep_elements:
                    break
                after = following[0].value
            fits = types.get(a, "").startswith("float32[") and types.get(a) == types.get(b)
            if after in chosen and fits and not {a, b} & set(self.held):
                chosen |= {a, b}
        order = [*self.text.inputs, *(r[0] for c in self.text.calls for r in c.results if r)]
        self.values = {name: None for name in order if name in chosen}

    def _weight(self, call):
        """The constant that is the weight of a layer, if it can be integers."""
        if call.name not in layers() or any("=" in a for a in call.arguments):
            return None
        if call.base == "addmm" and len(call.arguments) > 3:
            return None
        if call.base == "convolution" and (call.positional(6) != "False" or call.positional(3) is None):
            return None
        _, weight, _, turned = layers()[call.name]
        name = (self.turned if turned else self.held).get((call.positional(weight) or "")[1:])
        fits = name is not None and self.constants[name].dtype == torch.float32
        return name if fits and self.constants[name].dim() >= 2 else None

    def observe(self, batches, bits=8):
        """Choose scales and zero points by what the values are for batches of inputs.

        With seven bits the samples fill half the range, and what is beyond still has a place: processors
        without VNNI multiply that faster.
        """
        from rushlight.ao.quantization import HistogramObserver

        half = bits == 7
        observers = {v: HistogramObserver(dtype=torch.quint8, reduce_range=half) for v in self.values}
        executor = watching(self.text, self.values, self.constants)
        seen = 0
        for inputs in batches:
            for name, value in zip(self.values, executor.run(list(inputs))):
                if not torch.isfinite(value).all():
                    raise QuantizeError(
                        f"'{name}' holds NaN or an infinity for these samples, so that no scale covers it"
                    )
                if value.numel():
                    observers[name](value)
                    seen += 1
        if not seen:
            raise QuantizeError("no samples: the ranges of the activations are found by running some")
        for name, observer in observers.items():
            scale, zero = observer.calculate_qparams()
            self.values[name] = float(scale), int(zero)

    def apply(self):
        """The graph's text and constants with steps to integers and back; writing makes layers of them."""
        text, added = self.text, dict(self.constants)
        rounded, calls, number = {}, [], 0

        def round_value(name):
            if name not in self.values:
                return
            scale, zero = self.values[name]
            settings = f"{scale!r}", str(zero), "0", "255", "uint8"
            space = "quantized_decomposed::"
            calls.append(Call([(f"{name}_q", "")], f"{space}quantize_per_tensor", [f"%{name}", *settings]))
            calls.append(
                Call([(f"{name}_dq", "")], f"{space}dequantize_per_tensor", [f"%{name}_q", *settings])
            )
            rounded[name] = f"{name}_dq"

        for name in text.inputs:
            round_value(name)
        for call in text.calls:
            arguments = call.arguments
            if call.name != "sym::size":
                arguments = [replaced(a, rounded) for a in arguments]
            if call.value in self.layers:
                weight = self._rounded_weight(self.layers[call.value], number, calls, added)
                number += 1
                _, at, _, turned = layers()[call.name]
                if turned:
                    calls.append(Call([(f"{weight}_t", "")], "t", [f"%{weight}"]))
                    weight = f"{weight}_t"
                arguments[at] = f"%{weight}"
            calls.append(Call(call.results, call.name, arguments, call.comment))
            for result in call.results:
                if result:
                    round_value(result[0])
        text.calls = calls
        return added

    def _rounded_weight(self, name, number, calls, added):
        weight = self.constants[name]
        check_finite(name, weight)
        rows = weight.reshape(len(weight), -1)
        scales = rows.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        integers = torch.clamp(torch.round(rows / scales[:, None]), -127, 127).to(torch.int8)
        parts = {
            "integers": integers.view(weight.shape),
            "scales": scales,
            "zeros": torch.zeros(len(weight), dtype=torch.int64),
        }
        for suffix, tensor in parts.items():
            added[f"{name}.{suffix}"] = tensor
            sizes = ", ".join(map(str, tensor.shape))
            result = f"w{number}_{suffix}", f"{str(tensor.dtype)[6:]}[{sizes}]"
            calls.append(Call([result], "constant", [f'"{name}.{suffix}"']))
        arguments = [f"%w{number}_{suffix}" for suffix in parts]
        calls.append(
            Call(
                [(f"w{number}_dq", "")],
                "quantized_decomposed::dequantize_per_channel",
                [*arguments, "0", "-128", "127", "int8"],
            )
        )
        return f"w{number}_dq"


def replaced(argument, names):
    """An argument with other values in place of some."""
    if argument.startswith('"'):
        return argument
    return re.sub(r"%([\w.]+)", lambda m: f"%{names.get(m[1], m[1])}", argument)


def watching(text, values, constants):
    """An executor of a graph that gives some of its values."""
    shown = copy(text)
    shown.outputs = [("", name) for name in values]
    read = {c.constant for c in text.calls if c.constant is not None}
    graph = _C._JitGraph(str(shown))
    return _C._JitExecutor(graph, {name: t for name, t in constants.items() if name in read})
