"""Weights as integers of eight or four bits, in files whose activations stay floats."""

from typing import Any

import rushlight as torch
from rushlight import _C
from rushlight._operators.traits import layers

from ._graph_text import Call, Text
from ._lower import UnsupportedError
from ._quantize_errors import QuantizeError

_LEAST = 1024  # numbers of a weight that are worth it
_TABLES = ("embedding",)
_SMALL_TABLE = 0.05  # of all weights: so small a part stays at eight bits, as every result depends on it
_STEPS = (*(-n / 4 for n in range(26, 40)), *(n / 4 for n in range(25, 36)))


def check_finite(name, tensor):
    if not torch.isfinite(tensor).all():
        raise QuantizeError(f"the weight '{name}' holds NaN or an infinity, so that no scale covers it")


def of_eight_bits(weight):
    """(int8, a scale for each row) of a matrix."""
    scales = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    return torch.clamp(torch.round(weight / scales[:, None]), -127, 127).to(torch.int8), scales


def of_four_bits(weight, group):
    """(two numbers a byte, a scale for each group and row in bfloat16) of a matrix, with the least error."""
    rows, columns = weight.shape
    padding = -columns % group
    groups = torch.nn.functional.pad(weight, (0, padding)).view(rows, -1, group)
    extreme = groups.gather(2, groups.abs().argmax(2, keepdim=True))
    best = torch.full_like(extreme, torch.inf)
    numbers, scales = torch.zeros_like(groups), torch.ones_like(extreme)
    for steps in _STEPS:  # the extreme number becomes so many of them
        scale = extreme / steps
        scale = torch.where(scale == 0, 1.0, scale).bfloat16().float()
        rounded = torch.clamp(torch.round(groups / scale), -8, 7)
        error = (rounded * scale - groups).square().sum(2, keepdim=True)
        better = error < best
        best = torch.where(better, error, best)
        numbers, scales = torch.where(better, rounded, numbers), torch.where(better, scale, scales)
    numbers = (numbers.view(rows, -1)[:, :columns] + 8).to(torch.uint8)
    return _halves(numbers), scales[:, :, 0].bfloat16()


def _halves(numbers):
    """Blocks of 32 numbers in 16 bytes, the first half of them in the low halves; the rest likewise."""
    whole = numbers.shape[1] // 32 * 32
    parts = []
    for part, width in ((numbers[:, :whole], 32), (numbers[:, whole:], numbers.shape[1] - whole)):
        if part.shape[1]:
            low, high = part.reshape(len(part), -1, 2, width // 2).unbind(2)
            parts.append((low | (high << 4)).reshape(len(part), -1))
    return torch.cat(parts, 1)


class SmallWeights:
    """What quantises the weights of a file's graphs; equal ones of several graphs once."""

    def __init__(self, bits, group):
        self.bits, self.group = bits, group if bits == 4 else 0
        self.made, self.eight = {}, set()
        self.layers = {}  # value -> name of its weight, of the graph done last

    def run(self, text, constants):
        """Change the graph's text and constants; the number of layers that were changed."""
        self.layers = {}
        held = text.constants()
        self.eight = self._small_tables(text, held, constants) if self.bits == 4 else set()
        turned = {
            c.value: held[used] for c in text.calls if c.base == "t" for used in c.uses() if used in held
        }
        calls, added = [], dict(constants)
        for call in text.calls:
            found = self._layer(call, held, turned, constants)
            if found is None:
                calls.append(call)
                continue
            name, before, after = found
            integers, scales, group = self._quantized(name, constants[name])
            values = []
            for suffix, tensor in (("integers", integers), ("scales", scales)):
                constant = f"{name}.{suffix}"
                added[constant] = tensor
                value = f"q{len(calls)}_{suffix}"
                sizes = ", ".join(map(str, tensor.shape))
                calls.append(
                    Call([(value, f"{str(tensor.dtype)[6:]}[{sizes}]")], "constant", [f'"{constant}"'])
                )
                values.append(f"%{value}")
            operator = "_weight_only_embedding" if call.base in _TABLES else "_weight_only_linear"
            arguments = [*before, *values, *after, str(group)]
            calls.append(Call(call.results, operator, arguments, call.comment))
            self.layers[call.value] = name
        text.calls = calls
        return added, len(self.layers)

    def _small_tables(self, text, held, constants):
        found = {held.get((c.positional(0) or "")[1:]) for c in text.calls if c.base in _TABLES} - {None}
        whole = sum(constants[name].numel() for name in set(held.values()))
        return {name for name in found if constants[name].numel() <= _SMALL_TABLE * whole}

    def _layer(self, call, held, turned, constants):
        """(the weight's constant, arguments before it, those after its scales)."""
        if call.base in _TABLES:
            name = held.get((call.positional(0) or "")[1:])
            found = name, [], [call.positional(1)]
        elif call.name in layers():
            x, w, b, is_turned = layers()[call.name]
            if len(call.arguments) > 3 or any("=" in a for a in call.arguments):
                return None
            name = (turned if is_turned else held).get((call.positional(w) or "")[1:])
            bias = "None" if b < 0 else call.positional(b, "None")
            if bias != "None" and (bias[1:] not in held or constants[held[bias[1:]]].dim() != 1):
                return None
            found = name, [call.positional(x)], [bias]
        else:
            return None
        if name is None:
            return None
        return found if self._fits(constants[name]) else None

    def _fits(self, weight):
        fits = weight.dim() == 2 and weight.dtype == torch.float32 and weight.numel() >= _LEAST
        return fits and (self.bits == 8 or weight.shape[1] % 2 == 0)

    def _quantized(self, name, weight):
        """(integers, scales, columns with one scale or 0)"""
        key = weight.data_ptr(), tuple(weight.shape)
        if key not in self.made:
            check_finite(name, weight)
            weight = weight.contiguous()
            if self.bits == 8 or name in self.eight:
                self.made[key] = *of_eight_bits(weight), 0
            else:
                self.made[key] = *of_four_bits(weight, self.group), self.group
        return self.made[key]


def is_wrapped(tensor):
    """Whether a tensor is a class of a program's that stands for others, as torchao's weights are."""
    return hasattr(type(tensor), "__tensor_flatten__")


class WrappedWeights(SmallWeights):
    """Weights that torchao made integers of: the file has them as they are."""

    def __init__(self):
        super().__init__(8, 0)

    def _fits(self, weight):
        return is_wrapped(weight)

    def _quantized(self, name, weight):
        integers: Any = getattr(weight, "qdata", None)
        scale: Any = getattr(weight, "scale", None)
        zero, block = getattr(weight, "zero_point", None), tuple(getattr(weight, "block_size", ()))
        steps = [getattr(weight, a, None) for a in ("act_quant_kwargs", "activation_quantization")]
        kind = getattr(weight, "target_dtype", torch.int8)
        fits = isinstance(integers, torch.Tensor) and integers.dtype == torch.int8 and integers.dim() == 2
        fits = fits and not any(steps) and (zero is None or not zero.any()) and weight.dtype == torch.float32
        if fits and len(block) == 2 and block[0] == 1:
            rows, columns = integers.shape
            if block[1] == columns:
                return integers.contiguous(), scale.reshape(rows).float(), 0
            if kind == torch.int4 and block[1] % 32 == 0 and columns % block[1] == 0:
                numbers = (integers.to(torch.int16) + 8).to(torch.uint8)
                return _halves(numbers), scale.reshape(rows, -1).contiguous().float(), block[1]
        raise UnsupportedError(
            f"rushlight.export.save: the weight '{name}' is a {type(weight).__name__} that files can't hold: "
            "int8 with a scale for each row, and int4 with one for each 32 columns or a multiple, are written"
        )


def unwrap(graph, constants):
    """(graph, constants) with integers in place of weights that stand for some."""
    if not any(map(is_wrapped, constants.values())):
        return graph, constants
    text = Text.of(graph)
    changed, _ = WrappedWeights().run(text, constants)
    text.drop_unread()
    read = set(text.constants().values())
    for name in read:
        if is_wrapped(changed[name]):
            raise UnsupportedError(
                f"rushlight.export.save: '{name}' is a {type(changed[name]).__name__}; of such weights files "
                "hold those of linear layers and embeddings"
            )
    kept = {name: t for name, t in changed.items() if name in read}
    return _C._JitGraph(str(text)).propagate_shapes(kept), kept
