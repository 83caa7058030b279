"""Equalisation before rounding: ranges of a layer's input columns and of its weight's columns are made alike.

A column of the input times ``s`` and the weight's column through ``s`` give the same product; with
``s = sqrt(range of weight / range of input)`` both have the same range: no column wastes steps of its grid.
"""

import operator
import warnings
from collections import namedtuple

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.fx import GraphModule, Node
from rushlight.nn import functional as F

from ..observer import ObserverBase, PerChannelMinMaxObserver, _with_args
from ..utils import _parent_name, check_min_max_valid
from .graph_module import _get_observed_graph_module_attr
from .utils import _all_args, get_new_attr_name_with_prefix, node_arg_is_bias, node_arg_is_weight

__all__ = [
    "EqualizationQConfig",
    "calculate_equalization_scale",
    "convert_eq_obs",
    "default_equalization_qconfig",
    "get_equalization_qconfig_dict",
    "get_layer_sqnr_dict",
    "is_equalization_observer",
    "node_supports_equalization",
    "reshape_scale",
    "update_obs_for_equalization",
]

# Modules of programs that take a weight as layers do may be added.
CUSTOM_MODULE_SUPP_LIST: list = []

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_FUSED = (nni.LinearReLU, nni.ConvReLU1d, nni.ConvReLU2d, nni.ConvReLU3d)
_FUNCTIONS = (F.linear, F.conv1d, F.conv2d, F.conv3d)
_BY_CHANNEL = {
    rushlight.per_tensor_affine: rushlight.per_channel_affine,
    rushlight.per_tensor_symmetric: rushlight.per_channel_symmetric,
}


def reshape_scale(scale, axis, input):
    """The scale in a shape that multiplies the input along an axis."""
    shape = [1] * input.ndim
    shape[axis] = input.size(axis)
    return scale.view(shape)


def _is_one(scale):
    """Whether this is the scale of what was not equalised."""
    return scale.numel() == 1 and bool(scale == 1)


class _ColumnObserver(nn.Module):
    """Watches the columns (dimension 1) of what passes."""

    with_args = classmethod(_with_args)

    def __init__(self, dtype, qscheme, quant_min, quant_max, factory_kwargs):
        super().__init__()
        self.dtype, self.qscheme = dtype, qscheme
        self.equalization_scale = rushlight.tensor(1)
        self._make = lambda: PerChannelMinMaxObserver(
            ch_axis=1,
            dtype=dtype,
            qscheme=_BY_CHANNEL.get(qscheme, qscheme),
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
        )

    @staticmethod
    def _check(x):
        if not 2 <= x.ndim <= 5:
            raise ValueError("InputEqualizationObserver only supports Linear and Conv layers")


class _InputEqualizationObserver(_ColumnObserver):
    """Watches the columns of a layer's input."""

    def __init__(
        self,
        dtype=rushlight.quint8,
        qscheme=rushlight.per_tensor_affine,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
    ):
        if qscheme not in _BY_CHANNEL:
            raise TypeError("Input qscheme must be per-tensor")
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)
        self.input_obs = self.__dict__.pop("_make")()
        self.equalization_shape = []

    def forward(self, x_orig):
        self._check(x_orig)
        self.equalization_shape = [1] * x_orig.ndim
        self.equalization_shape[1] = x_orig.size(1)
        return self.input_obs(x_orig)

    def get_input_minmax(self):
        return self.input_obs.min_val, self.input_obs.max_val

    def set_equalization_scale(self, equalization_scale):
        """Keep the scale in the shape that multiplies the input."""
        if not _is_one(equalization_scale):
            self.equalization_scale = equalization_scale.reshape(self.equalization_shape)

    def calculate_scaled_minmax(self):
        """The range of the input times the scale; (None, None) where there is no scale."""
        if _is_one(self.equalization_scale):
            warnings.warn(
                "Must call calculate_equalization_scale before calling calculate_scaled_minmax. "
                "Will not scale the next quantization observer.",
                stacklevel=2,
            )
            return None, None
        scale = self.equalization_scale.flatten()
        low, high = self.get_input_minmax()
        return (low * scale).min(), (high * scale).max()


class _WeightEqualizationObserver(_ColumnObserver):
    """Watches the columns of a layer's weight."""

    def __init__(
        self,
        dtype=rushlight.qint8,
        qscheme=rushlight.per_tensor_affine,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
    ):
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)
        self.weight_col_obs = self.__dict__.pop("_make")()
        self.ch_axis = 1

    def forward(self, w_orig):
        self._check(w_orig)
        return self.weight_col_obs(w_orig)

    def get_weight_col_minmax(self):
        return self.weight_col_obs.min_val, self.weight_col_obs.max_val

    def set_equalization_scale(self, equalization_scale):
        self.equalization_scale = equalization_scale


def calculate_equalization_scale(input_obs, weight_obs):
    """What each column of the input is multiplied by; a column that is constant stays as it is."""
    inputs, weights = input_obs.get_input_minmax(), weight_obs.get_weight_col_minmax()
    if not (check_min_max_valid(*inputs) and check_min_max_valid(*weights)):
        warnings.warn(
            "Must run observer before calling calculate_equalization_scale. "
            "Returning default equalization scale torch.tensor(1).",
            stacklevel=2,
        )
        return rushlight.tensor(1)
    if inputs[0].shape != weights[0].shape:
        raise ValueError(
            f"Input and Weight must have the same column dimension. Found {tuple(inputs[0].shape)} and "
            f"{tuple(weights[0].shape)} shapes instead. Layers with groups cannot be equalised: leave "
            f"them out of the equalisation config"
        )
    scale = ((weights[1] - weights[0]) / (inputs[1] - inputs[0])).sqrt()
    return rushlight.where((scale > 0) & scale.isfinite(), scale, 1.0)


class EqualizationQConfig(namedtuple("EqualizationQConfig", ["input_activation", "weight"])):
    """The observers of a layer's input and weight: classes, not instances."""

    __slots__ = ()

    def __new__(cls, input_activation=nn.Identity, weight=nn.Identity):
        if isinstance(input_activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "EqualizationQConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, input_activation, weight)


input_equalization_observer = _InputEqualizationObserver.with_args(
    dtype=rushlight.quint8, qscheme=rushlight.per_tensor_symmetric
)
weight_equalization_observer = _WeightEqualizationObserver.with_args(
    dtype=rushlight.qint8, qscheme=rushlight.per_channel_symmetric
)
default_equalization_qconfig = EqualizationQConfig(input_equalization_observer, weight_equalization_observer)


def node_supports_equalization(node, modules):
    """Whether a node is a linear layer or a convolution."""
    if node.op == "call_module":
        return type(modules[str(node.target)]) in (*_LAYERS, *_FUSED, *CUSTOM_MODULE_SUPP_LIST)
    return node.op == "call_function" and node.target in _FUNCTIONS


def is_equalization_observer(observer):
    return isinstance(observer, _ColumnObserver)


def _module_of(node, modules):
    return modules.get(str(node.target)) if isinstance(node, Node) and node.op == "call_module" else None


def _sites(model, modules):
    """(observer's node, the layer that reads it) of each input that is watched."""
    for node in list(model.graph.nodes):
        if isinstance(_module_of(node, modules), _InputEqualizationObserver):
            layer = next((user for user in node.users if node_supports_equalization(user, modules)), None)
            if layer is None:
                raise AssertionError("Expected an operation node after the input equalization observer")
            yield node, layer


def _watched_weight(layer, modules):
    """The node of the observer of a function's weight."""
    for arg in _all_args(layer):
        if node_arg_is_weight(layer, arg) and is_equalization_observer(_module_of(arg, modules)):
            return arg
    return None


def _layer_of(node, modules):
    """The module with the weight."""
    module = modules[str(node.target)]
    return module[0] if type(module) in _FUSED else module


def update_obs_for_equalization(model, modules):
    """Give observers their scales: the observers of weights by the names of their layers."""
    configs = _get_observed_graph_module_attr(model, "equalization_node_name_to_qconfig") or {}
    found = {}
    for node, layer in _sites(model, modules):
        observer = modules[str(node.target)]
        if layer.op == "call_module":
            weights = configs[layer.name].weight()
            weights(_layer_of(layer, modules).weight)
        else:
            watched = _watched_weight(layer, modules)
            if watched is None:
                continue
            weights = modules[str(watched.target)]
        # What others read too cannot be scaled for this layer.
        shared = len(node.args[0].users) > 1
        scale = rushlight.tensor(1) if shared else calculate_equalization_scale(observer, weights)
        observer.set_equalization_scale(scale)
        weights.set_equalization_scale(scale)
        found[layer.name] = weights
    return found


def _is_relu(node, modules):
    function = node.op == "call_function" and node.target in (F.relu, rushlight.relu)
    return function or type(_module_of(node, modules)) is nn.ReLU


def _layer_before(source, modules):
    """The layer whose result this is, through ReLU, if nothing else reads it."""
    while isinstance(source, Node) and len(source.users) == 1:
        if node_supports_equalization(source, modules):
            return source
        if not _is_relu(source, modules):
            return None
        source = source.args[0]
    return None


def convert_eq_obs(model, modules, weight_eq_obs_dict):
    """Scale weights and inputs by what observers saw, and take the observers away.

    An input that an equalised layer computes is scaled by that layer's weight and bias; before another one
    stands a product. The observer of rounding sees the scaled range.
    """
    ahead = {}
    for node, _ in _sites(model, modules):
        watched, observer = node.args[0], modules[str(node.target)]
        scale, source = observer.equalization_scale, watched.args[0]
        before = _layer_before(source, modules)
        weights = weight_eq_obs_dict.get(before.name) if before is not None else None
        if weights is None or (_is_one(weights.equalization_scale) and not _is_one(scale)):
            _multiply(model, source, watched, scale)
        elif not _is_one(scale):
            ahead[before.name] = scale.flatten()
        rounding = modules[str(watched.target)]
        if isinstance(rounding, ObserverBase) and not _is_one(scale):
            rounding.min_val, rounding.max_val = observer.calculate_scaled_minmax()
        _remove(model, node)
    for node in list(model.graph.nodes):
        weights = weight_eq_obs_dict.get(node.name)
        if weights is not None:
            scale = None if _is_one(weights.equalization_scale) else weights.equalization_scale
            _scale_layer(model, node, modules, scale, ahead.get(node.name))


def _multiply(model, source, watched, scale):
    name = get_new_attr_name_with_prefix(f"{source.name}_equalization_scale")(model)
    model.register_buffer(name, scale)
    with model.graph.inserting_before(watched):
        factor = model.graph.create_node("get_attr", name)
        product = model.graph.call_function(rushlight.mul, (source, factor))
    watched.replace_input_with(source, product)


def _remove(model, node):
    node.replace_all_uses_with(node.args[0])
    model.graph.erase_node(node)


def _scaled(weight, scale, ahead):
    with rushlight.no_grad():
        made = weight if scale is None else weight * reshape_scale(scale, 1, weight).reciprocal()
        made = made if ahead is None else made * reshape_scale(ahead, 0, weight)
    return nn.Parameter(made) if isinstance(weight, nn.Parameter) else made


def _scale_layer(model, node, modules, scale, ahead):
    """A layer's weight by its own scale and that of the layer behind, its bias by the latter."""
    if node.op == "call_module":
        layer = _layer_of(node, modules)
        layer.weight = _scaled(layer.weight, scale, ahead)
        if layer.bias is not None and ahead is not None:
            layer.bias = _scaled(layer.bias, None, ahead)
        return
    watched = _watched_weight(node, modules)
    rounding = watched.args[0]
    _scale_attribute(modules, rounding.args[0], scale, ahead)
    for arg in _all_args(node):
        if ahead is not None and node_arg_is_bias(node, arg):
            _scale_attribute(modules, arg, None, ahead)
    # It saw the weight as it was; converting shows it the new one.
    modules[str(rounding.target)].reset_min_max_vals()
    _remove(model, watched)


def _scale_attribute(modules, node, scale, ahead):
    if node.op != "get_attr":
        raise AssertionError(
            f"Expected weight node to be a 'get_attr' Node, not {node.op}: {node.name} is computed"
        )
    parent, name = _parent_name(node.target)
    home = modules[parent]
    setattr(home, name, _scaled(getattr(home, name), scale, ahead))


def _convert_equalization_ref(model):
    """The equalised graph, not rounded."""
    modules = dict(model.named_modules(remove_duplicate=False))
    convert_eq_obs(model, modules, update_obs_for_equalization(model, modules))
    return GraphModule(model, model.graph)


def get_layer_sqnr_dict(model_a, model_b, x):
    """The ratio of signal and error, in decibels, of each layer of a model and of its quantised twin."""
    from rushlight.ao.ns import _numeric_suite_fx as ns
    from rushlight.ao.ns.fx.mappings import get_unmatchable_types_map
    from rushlight.ao.ns.fx.utils import compute_sqnr

    left_out = get_unmatchable_types_map()
    left_out["funs_unmatchable"].add(rushlight.mul)  # equalisation puts products in
    models = ns.add_loggers("fp32", model_a, "int8", model_b, ns.OutputLogger, unmatchable_types_map=left_out)
    for model in models:
        model(x)
    results = ns.extract_logger_info(*models, ns.OutputLogger, "int8")
    ns.extend_logger_results_with_comparison(results, "fp32", "int8", compute_sqnr, "sqnr")
    logged = [kinds["node_output"]["int8"][0] for kinds in results.values()]
    return {entry["fqn"]: entry["sqnr"][0] for entry in logged}


def get_equalization_qconfig_dict(layer_sqnr_dict, num_layers_to_equalize):
    """A configuration that equalises the layers with the largest errors."""
    worst = sorted(layer_sqnr_dict.items(), key=operator.itemgetter(1))[:num_layers_to_equalize]
    return {"module_name": [(name, default_equalization_qconfig) for name, _ in worst]}
