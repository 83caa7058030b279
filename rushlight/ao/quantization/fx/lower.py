"""Reference graphs become graphs of integers, where operations take integers and give them."""

import operator

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.nn.quantized import reference as nnqr
from rushlight.fx import Node
from rushlight.nn import functional as F

from ..utils import _parent_name
from .fold import fold_weights

__all__ = ["lower"]

_q = rushlight.ops.quantized

# Reference layers with a weight, and the layer of integers that computes them.
_STATIC = {nnqr.Linear: nnq.Linear}
_STATIC |= {getattr(nnqr, f"Conv{n}d"): getattr(nnq, f"Conv{n}d") for n in (1, 2, 3)}
_DYNAMIC = {
    getattr(nnqr, name): getattr(nnqd, name)
    for name in ("Linear", "GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU")
}
_WEIGHT_ONLY = {nnqr.Embedding: nnq.Embedding, nnqr.EmbeddingBag: nnq.EmbeddingBag}
# Fused layers: what must stand first in them, and the layer of integers.
_FUSED = {
    nni.LinearReLU: (nnqr.Linear, nniq.LinearReLU),
    nni.LinearLeakyReLU: (nnqr.Linear, nniq.LinearLeakyReLU),
    nni.LinearTanh: (nnqr.Linear, nniq.LinearTanh),
}
_FUSED |= {
    getattr(nni, f"ConvReLU{n}d"): (getattr(nnqr, f"Conv{n}d"), getattr(nniq, f"ConvReLU{n}d"))
    for n in (1, 2, 3)
}
_WITH_SUMMAND = {
    nni.ConvAdd2d: (nnqr.Conv2d, nniq.ConvAdd2d),
    nni.ConvAddReLU2d: (nnqr.Conv2d, nniq.ConvAddReLU2d),
}
_FUSED_DYNAMIC = {nni.LinearReLU: (nnqr.Linear, nniqd.LinearReLU)}
# Layers whose results have a scale of their own.
_OWN_SCALE = {
    getattr(nn, name): getattr(nnq, name)
    for name in (
        *("BatchNorm2d", "BatchNorm3d", "ELU", "LeakyReLU", "Hardswish", "InstanceNorm1d", "InstanceNorm2d"),
        *("InstanceNorm3d", "LayerNorm", "Dropout", "Softmax", "PReLU"),
    )
}
_OWN_SCALE |= {getattr(nnqr, f"ConvTranspose{n}d"): getattr(nnq, f"ConvTranspose{n}d") for n in (1, 2, 3)}
_OWN_SCALE |= {nni.BNReLU2d: nniq.BNReLU2d, nni.BNReLU3d: nniq.BNReLU3d}
# Functions likewise.
_OWN_SCALE_FUNCTIONS = {
    F.elu: _q.elu,
    F.hardswish: _q.hardswish,
    F.instance_norm: _q.instance_norm,
    F.layer_norm: _q.layer_norm,
    F.leaky_relu: _q.leaky_relu,
    F.dropout: _q.dropout,
}
# Arguments of those that matter in training only.
_OF_TRAINING = ("inplace", "momentum", "running_mean", "running_var", "use_input_stats")
# What takes integers as it takes numbers: results keep the operand's scale, or have one that is known.
_SAME_FUNCTIONS = {
    *(F.hardsigmoid, F.sigmoid, rushlight.sigmoid, rushlight.tanh),
    *(
        rushlight.adaptive_avg_pool1d,
        F.adaptive_avg_pool1d,
        F.avg_pool1d,
        F.adaptive_avg_pool2d,
        F.adaptive_avg_pool3d,
        F.hardtanh,
        F.hardtanh_,
    ),
    *(F.interpolate, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.relu, F.relu6, rushlight.avg_pool1d),
    *(F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, rushlight.clamp, rushlight.flatten, rushlight.mean),
    *(operator.floordiv, rushlight.channel_shuffle, rushlight.narrow, rushlight.transpose, rushlight.cat),
    *(rushlight.repeat_interleave, rushlight.squeeze, rushlight.stack, rushlight.unsqueeze),
    *(F.pixel_shuffle, F.pixel_unshuffle),
}
_SAME_METHODS = {
    *("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_"),
    *("clamp", "mean", "relu", "relu_", "contiguous", "detach", "detach_", "permute", "repeat"),
    *("repeat_interleave", "reshape", "resize_", "squeeze", "squeeze_", "transpose", "unsqueeze"),
    *("unsqueeze_", "view", "shape", "size"),
}
_SAME_MODULES = {
    *(nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.Softmax, nn.Hardtanh, nn.ReLU, nn.ReLU6, nn.ChannelShuffle),
    *(nn.Identity, nn.PixelShuffle, nn.PixelUnshuffle),
    *(getattr(nn, f"{kind}{n}d") for kind in ("AdaptiveAvgPool", "AvgPool", "MaxPool") for n in (1, 2, 3)),
}
_FIXED_SCALE = {
    *(F.hardsigmoid, F.sigmoid, rushlight.sigmoid, rushlight.tanh),
    *("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_"),
    *(nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.Softmax),
}
# Functions with a weight: what packs it, what computes, and that with ReLU behind.
_WEIGHTED = {
    F.linear: (_q.linear_prepack, _q.linear, _q.linear_relu),
    **{
        getattr(F, f"conv{n}d"): tuple(getattr(_q, f"conv{n}d{end}") for end in ("_prepack", "", "_relu"))
        for n in (1, 2, 3)
    },
    **{
        getattr(F, f"conv_transpose{n}d"): (
            *(getattr(_q, f"conv_transpose{n}d{end}") for end in ("_prepack", "")),
            None,
        )
        for n in (1, 2, 3)
    },
}
_TRANSPOSED = {getattr(F, f"conv_transpose{n}d") for n in (1, 2, 3)}
_WEIGHTED_DYNAMIC = {
    rushlight.qint8: (_q.linear_prepack, _q.linear_dynamic, _q.linear_relu_dynamic),
    rushlight.float16: (_q.linear_prepack_fp16, _q.linear_dynamic_fp16, _q.linear_relu_dynamic_fp16),
}
_BINARY = {
    operator.add: (_q.add, _q.add_relu),
    rushlight.add: (_q.add, _q.add_relu),
    operator.mul: (_q.mul, _q.mul_relu),
    rushlight.mul: (_q.mul, _q.mul_relu),
    rushlight.matmul: (_q.matmul, None),
}


def _is_numbers(arg):
    """Whether a node makes numbers of integers."""
    return isinstance(arg, Node) and arg.op == "call_method" and arg.target == "dequantize"


def _windowed(function, arguments):
    """Arguments that pack filters: windows of one dimension are lists, transposed ones swap the last two."""
    arguments = list(arguments)
    if function in (F.conv1d, F.conv_transpose1d):
        for i in (2, 3, 4, 6) if function is F.conv_transpose1d else (2, 3, 4):
            if len(arguments) > i and isinstance(arguments[i], int):
                arguments[i] = (arguments[i],)
    if function in _TRANSPOSED and len(arguments) > 6:
        arguments[5], arguments[6] = arguments[6], arguments[5]
    return tuple(arguments)


class _Lowering:
    """One walk over a reference graph."""

    def __init__(self, model, qconfigs):
        self.model, self.graph, self.qconfigs = model, model.graph, qconfigs
        self.modules = dict(model.named_modules(remove_duplicate=False))

    def module_of(self, node):
        return self.modules.get(str(node.target)) if node.op == "call_module" else None

    def skipped(self, node):
        """Whether the program asked that this node compute with numbers."""
        return node.name in self.qconfigs and self.qconfigs[node.name] is None

    def replace_module(self, node, made):
        parent, name = _parent_name(str(node.target))
        # The table keeps the reference layer: another call of it is lowered too, and its scale is the last's.
        setattr(self.modules[parent], name, made)

    def is_relu(self, node):
        return (node.op == "call_function" and node.target in (F.relu, rushlight.relu)) or type(
            self.module_of(node)
        ) is nn.ReLU

    def result_scale(self, quantize):
        return tuple(getattr(self.model, arg.target) for arg in quantize.args[1:3])

    def before(self, quantize):
        """(operation, ReLU between it and the rounding, or None)"""
        node = quantize.args[0]
        if self.is_relu(node) and len(node.users) == 1 and len(node.args[0].users) == 1:
            return node.args[0], node
        return node, None

    def take_integers(self, node):
        """A node reads the integers that its operands were made of."""
        for arg in list(node.all_input_nodes):
            if _is_numbers(arg):
                node.replace_input_with(arg, arg.args[0])

    def drop(self, quantize, keep_scale=False):
        """Users of a rounding read what it rounded."""
        quantize.replace_all_uses_with(quantize.args[0])
        parts = [arg for arg in quantize.args[1:3] if isinstance(arg, Node)]
        self.graph.erase_node(quantize)
        for part in parts:
            if not keep_scale and not part.users:
                self.graph.erase_node(part)

    # ---- patterns: each says whether it fitted ----

    def layer(self, quantize):
        """A reference layer with a weight."""
        node = quantize.args[0]
        module, kind = self.module_of(node), type(self.module_of(node))
        if kind in _WITH_SUMMAND:
            first, made = _WITH_SUMMAND[kind]
            fits = len(node.args) == 2 and type(module[0]) is first
        elif kind in _FUSED:
            first, made = _FUSED[kind]
            fits = type(module[0]) is first
        else:
            made, fits = _STATIC.get(kind), True
        if made is None or not fits or self.skipped(node) or not all(map(_is_numbers, node.args)):
            return False
        self.replace_module(node, made.from_reference(module, *self.result_scale(quantize)))
        self.take_integers(node)
        self.drop(quantize)
        return True

    def weighted_function(self, quantize):
        node, relu = self.before(quantize)
        if node.op != "call_function" or node.target not in _WEIGHTED or self.skipped(node):
            return False
        if len(node.args) < 2 or not all(map(_is_numbers, node.args[:2])):
            return False
        x, weight = (arg.args[0] for arg in node.args[:2])
        if weight.target not in (rushlight.quantize_per_tensor, rushlight.quantize_per_channel):
            return False
        prepack, plain, with_relu = _WEIGHTED[node.target]
        if relu is not None and with_relu is None:
            return False
        if node.target is F.linear and weight.args[-1] == rushlight.float16:
            prepack = _q.linear_prepack_fp16
        arguments = _windowed(node.target, (weight, *node.args[2:]))
        named = dict(node.kwargs)
        if node.target is F.linear and "bias" in named:
            named["B"] = named.pop("bias")
        scale, zero = quantize.args[1:3]
        with self.graph.inserting_before(scale):
            packed = self.graph.call_function(prepack, arguments, named)
        node.target = plain if relu is None else with_relu
        node.args, node.kwargs = (x, packed, scale, zero), {}
        zero.append(node)
        quantize.replace_all_uses_with(node)
        self.graph.erase_node(quantize)
        if relu is not None:
            self.graph.erase_node(relu)
        return True

    def renamed(self, before, after):
        """A node in place of another stands for what that one stood for."""
        after.meta = dict(before.meta)
        self.scope_of[after.name] = self.scope_of.get(before.name, ("", type(self.model)))

    def binary(self, quantize):
        node, relu = self.before(quantize)
        if node.op != "call_function" or node.target not in _BINARY or self.skipped(node):
            return False
        tensors = [arg for arg in node.args[:2] if isinstance(arg, Node)]
        if len(node.args) < 2 or not tensors or not all(map(_is_numbers, tensors)):
            return False
        made = _BINARY[node.target][relu is not None]
        if made is None:
            return False
        arguments = tuple(arg.args[0] if _is_numbers(arg) else arg for arg in node.args[:2])
        if len(tensors) == 2:
            arguments += tuple(quantize.args[1:3])
        with self.graph.inserting_before(quantize):
            done = self.graph.call_function(made, arguments)
        self.renamed(node, done)
        quantize.replace_all_uses_with(done)
        parts = quantize.args[1:3]
        self.graph.erase_node(quantize)
        for gone in (relu, node, *(parts if len(tensors) == 1 else ())):
            if isinstance(gone, Node) and not gone.users:
                self.graph.erase_node(gone)
        return True

    def same(self, quantize):
        """Operations that take integers as they take numbers, and those that want a scale besides."""
        node, half = quantize.args[0], quantize.op == "call_method"
        module, kind = self.module_of(node), type(self.module_of(node))
        called = kind if module is not None else node.target
        function = node.op == "call_function"
        own = function and called in _OWN_SCALE_FUNCTIONS or module is not None and kind in _OWN_SCALE
        fits = (
            own
            or (function and called in _SAME_FUNCTIONS)
            or (node.op == "call_method" and called in _SAME_METHODS)
            or (module is not None and kind in _SAME_MODULES)
        )
        if not fits or (half and (own or called in _FIXED_SCALE)):
            return False
        operand = node.args[0] if node.args else next(iter(node.kwargs.values()), None)
        operands = operand if isinstance(operand, (list, tuple)) else [operand]
        if not operands or not all(map(_is_numbers, operands)):
            return False
        if module is not None and kind in _OWN_SCALE and not half:
            self.replace_module(node, _OWN_SCALE[kind].from_reference(module, *self.result_scale(quantize)))
        for one in operands:
            node.replace_input_with(one, one.args[0])
        if function and own:
            scale, zero = quantize.args[1:3]
            named = {k: v for k, v in node.kwargs.items() if k not in _OF_TRAINING}
            named |= {"output_scale": scale, "output_zero_point": zero}
            with self.graph.inserting_before(quantize):
                made = self.graph.call_function(_OWN_SCALE_FUNCTIONS[called], node.args, named)
            self.renamed(node, made)
            quantize.replace_all_uses_with(made)
            self.graph.erase_node(quantize)
            if node.users:
                node.replace_all_uses_with(made)
            self.graph.erase_node(node)
        else:
            self.drop(quantize)
        return True

    # ---- patterns without a rounding behind ----

    def dynamic_layer(self, node):
        module, kind = self.module_of(node), type(self.module_of(node))
        if kind in _FUSED_DYNAMIC:
            first, made = _FUSED_DYNAMIC[kind]
            if type(module[0]) is not first:
                return
        elif kind in _DYNAMIC:
            made = _DYNAMIC[kind]
        else:
            return
        numbers = node.args[0]
        if not _is_numbers(numbers) or numbers.args[0].target is not rushlight.quantize_per_tensor_dynamic:
            return
        self.replace_module(node, made.from_reference(module))
        node.replace_input_with(numbers, numbers.args[0].args[0])

    def weight_only_layer(self, node):
        module = self.module_of(node)
        if type(module) in _WEIGHT_ONLY:
            self.replace_module(node, _WEIGHT_ONLY[type(module)].from_reference(module))

    def dynamic_function(self, node):
        relu, function = None, node
        if self.is_relu(node) and isinstance(node.args[0], Node) and len(node.args[0].users) == 1:
            relu, function = node, node.args[0]
        if function.op != "call_function" or function.target is not F.linear:
            return
        if self.skipped(function) or not all(map(_is_numbers, function.args[:2])):
            return
        rounded, weight = (arg.args[0] for arg in function.args[:2])
        if rounded.target is not rushlight.quantize_per_tensor_dynamic:
            return
        x, dtype, half_range = rounded.args
        kinds = _WEIGHTED_DYNAMIC.get(weight.args[-1])
        if kinds is None or (dtype == rushlight.float16) != (weight.args[-1] == rushlight.float16):
            return
        prepack, *made = kinds
        named = {"B": function.kwargs["bias"]} if "bias" in function.kwargs else {}
        arguments = (x,) if dtype == rushlight.float16 else (x, half_range)
        with self.graph.inserting_before(function):
            packed = self.graph.call_function(prepack, (weight, *function.args[2:]), named)
        function.target = made[relu is not None]
        function.args, function.kwargs = (x, packed, *arguments[1:]), {}
        if relu is not None:
            relu.replace_all_uses_with(function)
            self.graph.erase_node(relu)

    def shape_of_integers(self, node):
        reads = (node.op == "call_method" and node.target in ("shape", "size")) or (
            node.op == "call_function" and node.target is getattr and node.args[1] == "shape"
        )
        if reads and _is_numbers(node.args[0]):
            node.args = (node.args[0].args[0], *node.args[1:])

    def run(self, scope_of):
        self.scope_of = scope_of

        def each(pattern, wanted=lambda node: True, backwards=False):
            nodes = list(self.graph.nodes)
            for node in reversed(nodes) if backwards else nodes:
                if not node._erased and wanted(node):
                    pattern(node)

        def rounds(node):
            return node.op == "call_function" and node.target is rushlight.quantize_per_tensor

        def rounds_or_halves(node):
            halves = (
                node.op == "call_method" and node.target == "to" and node.args[1:] == (rushlight.float16,)
            )
            return rounds(node) or halves

        each(self.layer, rounds)
        each(self.dynamic_layer)
        each(self.weight_only_layer)
        each(self.weighted_function, rounds)
        each(self.dynamic_function, backwards=True)
        each(self.binary, rounds)
        each(self.shape_of_integers)
        each(self.same, rounds_or_halves)
        self.graph.eliminate_dead_code()


def lower(model, qconfigs, scope_of, keep_original_weights=False):
    """The graph of integers of a reference graph; weights of functions are packed once."""
    _Lowering(model, qconfigs).run(scope_of)
    return fold_weights(model, scope_of, keep_original_weights)
