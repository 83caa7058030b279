"""ONNX files as modules: `load` reads, calls run node by node, and `torch.export` traces them."""

import inspect
import math
import os
import re

import rushlight as torch
from rushlight import nn

from ._export import _need_onnx
from ._operators import OPERATORS, UnsupportedOnnxError

# What a reader of a file raises where the file does not hold what it should.
_DAMAGED = (KeyError, IndexError, TypeError, AttributeError, OverflowError, ZeroDivisionError, AssertionError)


class OnnxModule(nn.Module):
    """The graph of an ONNX file. Weights are buffers; call it with tensors in the order of `inputs`."""

    def __init__(self, graph, opset):
        super().__init__()
        from onnx import numpy_helper

        self.opset = opset
        self._constants = {}  # name -> array, of settings and sizes as of weights
        self._buffers_of = {}  # name -> name of the buffer on the same memory
        for tensor in graph.initializer:
            self._hold(tensor.name, numpy_helper.to_array(tensor))
        self.inputs = [i.name for i in graph.input if i.name not in self._constants]
        self.outputs = [o.name for o in graph.output]
        self._nodes = []
        for node in graph.node:
            self._add(node)
        self.forward = _Forward(self)

    def _hold(self, name, array):
        array = array.copy() if not array.flags.writeable else array
        self._constants[name] = array
        buffer = re.sub(r"\W", "_", name) or "constant"
        while hasattr(self, buffer):
            buffer += "_"
        self.register_buffer(buffer, torch.from_numpy(array))
        self._buffers_of[name] = buffer

    def _add(self, node):
        domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
        kind = domain + node.op_type
        if kind not in OPERATORS:
            raise UnsupportedOnnxError(
                f"onnx.load: no reader for the operator {kind}{f' ({node.name})' if node.name else ''}"
            )
        attributes = _attributes(node)
        given = list(node.input)
        # Weights stay integers; what else depends on constants alone is computed now.
        if given and all(n in self._constants for n in given if n) and not self._keeps(kind, given):
            values = self._computed(kind, attributes, given, {})
            values = values if isinstance(values, (list, tuple)) else [values]
            for name, value in zip(node.output, values):
                array = value.numpy() if isinstance(value, torch.Tensor) else value
                self._hold(name, array)
        elif kind == "Constant":
            self._hold(node.output[0], attributes["value"])
        else:
            at = {"DequantizeLinear": 0, "QLinearConv": 3, "QLinearMatMul": 3, "com.microsoft.QGemm": 3}.get(
                kind
            )
            if at is not None and given[at] in self._constants:
                given = [*given[:at], *self._signed(given[at : at + 3]), *given[at + 3 :]]
            self._nodes.append((kind, given, list(node.output), attributes))

    def _signed(self, given):
        """A weight of uint8 as the int8 that stands for the same numbers, which layers of integers read."""
        name, scale, zero = (*given, "")[:3]
        array = self._constants[name]
        if array.dtype != "uint8":
            return given
        import numpy as np

        zeros = self._constants[zero] if zero else self._constants[scale].astype("u1") * 0
        for made, values in ((f"{name}.signed", array), (f"{name}.zeros", zeros)):
            if made not in self._constants:
                self._hold(made, np.asarray(values.astype("i2") - 128, "i1"))
        return [f"{name}.signed", scale, f"{name}.zeros"]

    def _keeps(self, kind, given):
        return kind == "DequantizeLinear" and self._constants[given[0]].dtype.itemsize == 1

    def _argument(self, name, values):
        if name in values:
            return values[name]
        if not name:
            return None
        if name not in self._buffers_of:
            raise UnsupportedOnnxError(f"onnx.load: the value '{name}' is read before it is made")
        return Constant(self._constants[name], getattr(self, self._buffers_of[name]))

    def _computed(self, kind, attributes, given, values):
        """What an operator of the file gives; that it lacks what it must have is said as the file's fault."""
        arguments = [self._argument(name, values) for name in given]
        try:
            return OPERATORS[kind](self, attributes, *arguments)
        except _DAMAGED as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"onnx: {kind} of {', '.join(given) or 'nothing'} cannot run: {what}") from error

    def run(self, *inputs):
        if len(inputs) != len(self.inputs):
            raise TypeError(f"the model takes {len(self.inputs)} inputs ({', '.join(self.inputs)})")
        values = dict(zip(self.inputs, inputs))
        for kind, given, outputs, attributes in self._nodes:
            results = self._computed(kind, attributes, given, values)
            results = results if isinstance(results, (list, tuple)) else [results]
            values.update(zip(outputs, results))
        found = tuple(_tensor(self._argument(name, values)) for name in self.outputs)
        return found[0] if len(found) == 1 else found


class _Forward:
    """What a module calls: its arguments are the file's inputs, by their names."""

    def __init__(self, module):
        self.module = module
        names = [re.sub(r"\W", "_", name) for name in module.inputs]
        fit = all(name.isidentifier() for name in names) and len(set(names)) == len(names)
        kind = inspect.Parameter.POSITIONAL_ONLY
        names = names if fit else [f"input_{i}" for i in range(len(names))]
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    def __call__(self, *inputs):
        return self.module.run(*inputs)


class Constant:
    """A constant: its numbers for settings and sizes, its tensor for computing."""

    def __init__(self, array, tensor):
        self.array, self.tensor = array, tensor


def _tensor(value):
    return value.tensor if isinstance(value, Constant) else value


def _attributes(node):
    from onnx import helper, numpy_helper

    found = {}
    for a in node.attribute:
        value = helper.get_attribute_value(a)
        if a.type == a.TENSOR:
            value = numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode()
        elif a.type in (a.GRAPH, a.GRAPHS):
            raise UnsupportedOnnxError(f"onnx.load: {node.op_type} holds a graph; it is not read")
        found[a.name] = value
    if node.op_type == "Constant" and "value" not in found:
        import numpy as np

        (kind, value), *_ = found.items()
        found["value"] = np.array(value, "f4" if "float" in kind else "i8")
    return found


def load(path):
    """A module that computes what an ONNX file does, QuantizeLinear and DequantizeLinear included.

    Raises:
        UnsupportedOnnxError: the file holds an operator, or a form of one, that is not read.
    """
    onnx = _need_onnx()
    try:
        model = path if isinstance(path, onnx.ModelProto) else onnx.load(os.fspath(path))
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"onnx.load: '{path}' is no ONNX file: {error}") from None
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if not model.graph.node or opset == 0:
        raise ValueError(f"onnx.load: '{path}' is no ONNX model: it has no graph, or no opset")
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) < 0:
            raise ValueError(f"onnx.load: '{tensor.name}' has sizes below zero")
    try:
        return OnnxModule(model.graph, opset).eval()
    except _DAMAGED as error:
        raise ValueError(f"onnx.load: '{path}' is damaged ({type(error).__name__}: {error})") from error
