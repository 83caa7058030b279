"""What pruners of rows share: masks of rows, biases that go with them, and smaller layers in the end."""

from operator import getitem

import rushlight
from rushlight import nn
from rushlight.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from rushlight.fx import symbolic_trace
from rushlight.nn import functional as F
from rushlight.nn.utils import parametrize

from . import prune_functions as prune
from .match_utils import apply_match
from .parametrization import BiasHook, FakeStructuredSparsity, module_contains_param

_ACTIVATIONS = (
    ("relu", "ReLU"),
    ("rrelu", "RReLU"),
    ("hardtanh", "Hardtanh"),
    ("relu6", "ReLU6"),
    ("sigmoid", "Sigmoid"),
    ("hardsigmoid", "Hardsigmoid"),
    ("tanh", "Tanh"),
    ("silu", "SiLU"),
    ("mish", "Mish"),
    ("hardswish", "Hardswish"),
    ("elu", "ELU"),
    ("celu", "CELU"),
    ("selu", "SELU"),
    ("hardshrink", "Hardshrink"),
    ("leaky_relu", "LeakyReLU"),
    ("logsigmoid", "LogSigmoid"),
    ("softplus", "Softplus"),
    ("prelu", "PReLU"),
    ("softsign", "Softsign"),
    ("tanhshrink", "Tanhshrink"),
    ("gelu", "GELU"),
)


def _get_supported_structured_pruning_modules():
    return {nn.Linear, nn.Conv2d, nn.LSTM}


def _get_supported_activation_functions():
    return {getattr(F, function) for function, _ in _ACTIVATIONS}


def _get_supported_activation_modules():
    return {getattr(nn, module) for _, module in _ACTIVATIONS}


def _get_default_structured_pruning_patterns():
    """Sequences of layers to the functions that prune them."""
    patterns = {
        (nn.Linear, "output"): prune.prune_linear,
        (nn.Linear, nn.Linear): prune.prune_linear_linear,
        (nn.Conv2d, "output"): prune.prune_conv2d,
        (nn.Conv2d, nn.Conv2d): prune.prune_conv2d_conv2d,
        (nn.LSTM, getitem, nn.Linear): prune.prune_lstm_output_linear,
        (nn.LSTM, getitem, nn.LayerNorm, nn.Linear): prune.prune_lstm_output_layernorm_linear,
    }
    pools = (nn.AvgPool2d, F.avg_pool2d, nn.MaxPool2d, F.max_pool2d)
    for activation in _get_supported_activation_functions() | _get_supported_activation_modules():
        patterns[nn.Linear, activation, nn.Linear] = prune.prune_linear_activation_linear
        patterns[nn.Conv2d, activation, nn.Conv2d] = prune.prune_conv2d_activation_conv2d
        for pool in pools:
            patterns[nn.Conv2d, activation, pool, nn.Conv2d] = prune.prune_conv2d_activation_pool_conv2d
            patterns[nn.Conv2d, pool, activation, nn.Conv2d] = prune.prune_conv2d_pool_activation_conv2d
    for pool in (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d):
        for flatten in (nn.Flatten, rushlight.flatten):
            patterns[nn.Conv2d, pool, flatten, nn.Linear] = prune.prune_conv2d_pool_flatten_linear
    return patterns


class BaseStructuredSparsifier(BaseSparsifier):
    """Base of pruners: a ``BaseSparsifier`` of rows, whose ``prune`` gives a model of smaller layers.

    Args:
        defaults: settings for entries of the configuration that have none of their own.
        patterns: sequences of layers to functions that prune them; those of linear layers, convolutions and
            LSTMs by default.
    """

    def __init__(self, defaults, patterns=None):
        super().__init__(defaults)
        self.patterns = _get_default_structured_pruning_patterns() if patterns is None else patterns

    def make_config_from_model(self, model, SUPPORTED_MODULES=None):
        """A configuration that has the weights of all layers of these classes."""
        if SUPPORTED_MODULES is None:
            SUPPORTED_MODULES = _get_supported_structured_pruning_modules()
        super().make_config_from_model(model, SUPPORTED_MODULES=SUPPORTED_MODULES)

    def _prepare(self, *args, **kwargs):
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            tensor = getattr(module, name)
            if "mask" in group:
                mask = group["mask"]
            else:
                mask = rushlight.ones(tensor.shape[0], dtype=rushlight.bool, device=tensor.device)
            self.state[group["tensor_fqn"]]["mask"] = mask
            step = group.get("parametrization", FakeStructuredSparsity)(mask)
            parametrize.register_parametrization(module, name, step)
            if not isinstance(module, (nn.Linear, nn.Conv2d)):
                continue
            prune_bias = group.get("prune_bias", True)
            if module.bias is not None:
                module.register_parameter("_bias", nn.Parameter(module.bias.detach()))
                module.bias = None
                module.prune_bias = prune_bias
            module.register_forward_hook(BiasHook(module.parametrizations.weight[0], prune_bias))

    def prune(self):
        """Trace the model and leave out the rows under masks, and the columns that used them.

        Returns:
            The traced model. A mask in no known pattern is an error.
        """
        self.traced = symbolic_trace(self.model)
        modules = dict(self.traced.named_modules())
        for node in self.traced.graph.nodes:
            for pattern, shrink in self.patterns.items():
                matched = apply_match(modules, pattern, node, [])
                first = None if matched is None else modules.get(node.target)
                if first is None or not module_contains_param(first, FakeStructuredSparsity):
                    continue
                shrink(
                    *(
                        modules[part.target] if part.op == "call_module" else part.target
                        for part in matched
                        if part.op in ("call_module", "call_function")
                    )
                )
        for module in self.traced.modules():
            if module_contains_param(module, FakeStructuredSparsity):
                raise Exception(f"Error: {module} still contains FakeStructuredSparsity parametrizations!")
        self.traced.graph.lint()
        self.traced.recompile()
        return self.traced
