"""Biases that make up for the mean error of weights of integers."""

from rushlight import nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.ns import _numeric_suite as ns

__all__ = ["MeanShadowLogger", "bias_correction", "get_module", "get_param", "parent_child_names"]

_TARGETS = {nnq.Linear, nnq.Conv2d}


def get_module(model, name):
    return dict(model.named_modules())[name]


def parent_child_names(name):
    """The path of a module's parent, and the module's name in it."""
    parent, _, child = name.rpartition(".")
    return parent, child


def get_param(module, attr):
    """A parameter, or what a method of that name gives."""
    found = getattr(module, attr, None)
    return found() if callable(found) else found


class MeanShadowLogger(ns.Logger):
    """Notes the mean results of a layer of integers and of its shadow."""

    def __init__(self):
        super().__init__()
        self.clear()

    def forward(self, x, y):
        self.count += 1
        for kind, value in (("quantized", x.dequantize() if x.is_quantized else x), ("float", y)):
            self.sums[kind] = value if self.count == 1 else self.sums[kind] + value
            self.stats[kind] = self.sums[kind] / self.count

    def clear(self):
        self.stats.update({"float": None, "quantized": None})
        self.count, self.sums = 0, {}


def bias_correction(float_model, quantized_model, img_data, target_modules=_TARGETS, neval_batches=None):
    """Subtract from each bias the mean error of its layer's results.

    Args:
        float_model: the model of numbers.
        quantized_model: the model of integers, which is changed.
        img_data: batches; the first of each is the operand.
        target_modules: classes of layers to correct.
        neval_batches: how many batches to look at.
    """
    ns.prepare_model_with_stubs(float_model, quantized_model, {nn.Linear, nn.Conv2d}, MeanShadowLogger)
    targets = [name for name, m in quantized_model.named_modules() if type(m) in target_modules]
    for name in targets:
        bias = get_param(get_module(quantized_model, name), "bias")
        if bias is None:
            continue
        for count, data in enumerate(img_data, start=1):
            quantized_model(data[0])
            if count == neval_batches:
                break
        stats = ns.get_logger_dict(quantized_model)[parent_child_names(name)[0] + ".stats"]
        error = stats["quantized"] - stats["float"]
        bias.data = bias.data - error.mean([d for d in range(error.dim()) if d != 1])
        for module in quantized_model.modules():
            if isinstance(module, MeanShadowLogger):
                module.clear()
