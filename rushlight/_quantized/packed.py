"""Packed weights. PyTorch keeps them in objects of C++ classes, whose pickles these read and write.

Here a packed weight is the weight itself: kernels keep what they make of one beside it.
"""

import rushlight as torch

_PREFIX = "__torch__.torch.classes."


class ScriptObject:
    """An object of a class of `torch.classes`, whose methods it shows."""

    def __init__(self, held):
        self._held = held

    def _type(self):
        return _PREFIX + self._held.name

    def _method_names(self):
        return ["__getstate__", "__setstate__", *self._held.methods]

    def _has_method(self, name):
        return name in self._method_names()

    def __getattr__(self, name):
        held = self.__dict__.get("_held")
        if held is None or name not in held.methods:
            raise AttributeError(f"'ScriptObject' object has no attribute {name!r}")
        return getattr(held, name)

    def __getstate__(self):
        return self._held.state(), self._type()

    def __setstate__(self, state):
        inner, name = state
        if name not in CLASSES:
            raise RuntimeError(f"torch.classes has no class {name.removeprefix(_PREFIX)!r} to unpickle")
        self.__dict__["_held"] = CLASSES[name].of_state(inner)

    def __deepcopy__(self, memo=None):
        return ScriptObject(type(self._held).of_state(self._held.state()))

    def __repr__(self):
        return f"ScriptObject <{self._type()}>"


ScriptObject.__module__ = "rushlight"


def held(packed, kind, who):
    """What a script object of this kind holds."""
    found = getattr(packed, "_held", None)
    if not isinstance(found, kind):
        raise RuntimeError(f"quantized::{who}: expected a packed weight, got {type(packed).__name__}")
    return found


class Settings:
    """Integers of a quantized weight, and a scale and a zero point for each of its channels or for all."""

    def __init__(self, weight, who, channel_axis=0):
        if not getattr(weight, "is_quantized", False):
            raise RuntimeError(f"{who}: the weight must be quantized, got a tensor of {weight.dtype}")
        self.integers = weight.int_repr().contiguous()
        if self.integers.dtype != torch.int8:
            raise RuntimeError(f"{who}: the weight must be torch.qint8, got {weight.dtype}")
        if "per_tensor" in str(weight.qscheme()):
            self.scales = torch.tensor([weight.q_scale()], dtype=torch.float32)
            zero_points = torch.tensor([weight.q_zero_point()])
        else:
            if weight.q_per_channel_axis() != channel_axis:
                raise RuntimeError(f"{who}: the weight must be quantized along axis {channel_axis}")
            self.scales = weight.q_per_channel_scales().float()
            zero_points = weight.q_per_channel_zero_points()
        self.zero_points = zero_points if zero_points.any() else None


class LinearPackedParams:
    name = "quantized.LinearPackedParamsBase"
    methods = ("bias", "unpack")

    def __init__(self, weight, bias):
        self._weight, self._bias = weight, bias
        self.settings = (
            None if weight.dtype == torch.float32 else Settings(weight, "quantized::linear_prepack")
        )
        self.halved = None if self.settings else weight.half().float()

    def bias(self):
        return self._bias

    def unpack(self):
        return self._weight if self.settings else self.halved, self._bias

    state = unpack

    @classmethod
    def of_state(cls, state):
        return cls(*state)


class ConvPackedParams:
    """Filters with the window they are for; those of one dimension have a second of size 1 before it."""

    methods = (
        "weight",
        "bias",
        "unpack",
        "stride",
        "padding",
        "output_padding",
        "dilation",
        "groups",
        "transpose",
    )

    def __init__(self, weight, bias, stride, padding, output_padding, dilation, groups, transpose):
        self.settings = Settings(weight, f"quantized::conv{len(stride)}d_prepack", 1 if transpose else 0)
        if transpose and groups > 1 and self.settings.scales.numel() > 1:
            raise RuntimeError(
                "quantized::conv_transpose_prepack: filters with a scale for each channel can't be in groups"
            )
        self._weight, self._bias = weight, bias
        self._window = [list(map(int, part)) for part in (stride, padding, dilation, output_padding)]
        self._groups, self._transpose = int(groups), bool(transpose)

    @property
    def name(self):
        return f"quantized.Conv{len(self._window[0])}dPackedParamsBase"

    def weight(self):
        return self._weight

    def bias(self):
        return self._bias

    def unpack(self):
        return self._weight, self._bias

    def stride(self):
        return self._window[0]

    def padding(self):
        return self._window[1]

    def dilation(self):
        return self._window[2]

    def output_padding(self):
        return self._window[3]

    def groups(self):
        return self._groups

    def transpose(self):
        return self._transpose

    def state(self):
        numbers = [
            len(self._window[0]),
            *(n for part in self._window for n in part),
            self._groups,
            self._transpose,
        ]
        return "2", [torch.tensor(numbers, dtype=torch.int16), self._weight], [self._bias]

    @classmethod
    def of_state(cls, state):
        """Version 2 is written; 1 and 3 are in archives of older programs."""
        if isinstance(state[0], torch.Tensor):
            weight, bias, *window, groups = state
            stride, padding, dilation = ([int(t) for t in part] for part in window)
            return cls(weight, bias, stride, padding, [0] * len(stride), dilation, int(groups), False)
        version = str(state[0])
        if version == "2":
            numbers, weight, bias = state[1][0].tolist(), state[1][1], state[2][0]
        elif version == "3":
            numbers, (_, weight, bias) = state[1], state[2]
        else:
            raise RuntimeError(f"packed filters of version {version!r} are unknown; up to '3' are read")
        dims, *rest = numbers
        stride, padding, dilation, output_padding = (rest[i * dims : (i + 1) * dims] for i in range(4))
        groups, transpose = rest[4 * dims : 4 * dims + 2]
        return cls(weight, bias, stride, padding, output_padding, dilation, groups, transpose)


class EmbeddingPackedParams:
    """A table whose rows are bytes or halves of bytes, with a scale and a bias behind each."""

    name = "quantized.EmbeddingPackedParamsBase"
    methods = ("bit_rate", "unpack", "version")

    def __init__(self, weight):
        who = "quantized::embedding_bag_prepack"
        if weight.dtype not in (torch.quint8, torch.quint4x2):
            raise RuntimeError(
                f"{who}: the weight must be torch.quint8 or torch.quint4x2, got {weight.dtype}"
            )
        if weight.dim() != 2 or weight.qscheme() != torch.per_channel_affine_float_qparams:
            raise RuntimeError(
                f"{who}: the weight must be a matrix quantized per channel with float zero points "
                f"(torch.per_channel_affine_float_qparams), got {weight.qscheme()}"
            )
        self._weight, self._bits = weight, 8 if weight.dtype == torch.quint8 else 4
        rows, kind = weight.shape[0], torch.float32 if self._bits == 8 else torch.float16
        scales, zeros = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        settings = torch.stack([scales, -zeros * scales], 1).to(kind).contiguous().view(torch.uint8)
        integers = weight.int_repr().reshape(rows, -1)
        self.table = torch.cat([integers, settings], 1)

    def bit_rate(self):
        return self._bits

    def version(self):
        return 1

    def unpack(self):
        return self._weight

    def state(self):
        return 1, [self._weight], [], [self._bits]

    @classmethod
    def of_state(cls, state):
        version, (weight, *_), _, _ = state
        if version != 1:
            raise RuntimeError(f"packed embeddings of version {version!r} are unknown; version 1 is read")
        return cls(weight)


class CellParams:
    """The packed weights of one direction of a recurrent layer."""

    name, methods = "rnn.CellParamsBase", ()

    def __init__(self, kind, tensors, longs, packed):
        if kind not in ("quantized_dynamic", "quantized_fp16"):
            raise RuntimeError(f"parameters of recurrent cells of kind {kind!r} are unknown")
        self.kind, self.tensors, self.longs, self.packed = kind, list(tensors), list(longs), list(packed)

    def state(self):
        return self.kind, self.tensors, [], self.longs, self.packed

    @classmethod
    def of_state(cls, state):
        kind, tensors, _, longs, packed = state
        return cls(kind, tensors, longs, packed)


CLASSES: dict = {_PREFIX + "quantized.LinearPackedParamsBase": LinearPackedParams}
CLASSES |= {_PREFIX + kind.name: kind for kind in (EmbeddingPackedParams, CellParams)}
CLASSES |= {f"{_PREFIX}quantized.Conv{n}dPackedParamsBase": ConvPackedParams for n in (2, 3)}
