"""Equal ranges of weights in layers that follow each other, so that one scale fits all their channels."""

import copy

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni

__all__ = [
    "channel_range",
    "converged",
    "cross_layer_equalization",
    "equalize",
    "expand_groups_in_paired_modules_list",
    "get_module_bias",
    "get_module_weight",
    "get_name_by_module",
    "has_bias",
    "max_over_ndim",
    "min_over_ndim",
    "process_paired_modules_list_to_name",
    "set_module_bias",
    "set_module_weight",
]

_PLAIN = (nn.Conv1d, nn.Conv2d, nn.Linear)
_FUSED = (nni.ConvReLU1d, nni.ConvReLU2d, nni.LinearReLU)


def _layer(module):
    """The part that has the weight."""
    return module if type(module) in _PLAIN else module[0]


def set_module_weight(module, weight):
    _layer(module).weight = nn.Parameter(weight)


def set_module_bias(module, bias):
    _layer(module).bias = nn.Parameter(bias)


def has_bias(module):
    return _layer(module).bias is not None


def get_module_weight(module):
    return _layer(module).weight


def get_module_bias(module):
    return _layer(module).bias


def _over(reduced, input, axis_list, keepdim):
    axis_list.sort(reverse=True)
    for axis in axis_list:
        input = reduced(input, axis, keepdim)[0]
    return input


def max_over_ndim(input, axis_list, keepdim=False):
    """The largest elements over several dimensions."""
    return _over(rushlight.max, input, axis_list, keepdim)


def min_over_ndim(input, axis_list, keepdim=False):
    """The smallest elements over several dimensions."""
    return _over(rushlight.min, input, axis_list, keepdim)


def channel_range(input, axis=0):
    """The range of each channel's elements."""
    others = [d for d in range(input.ndim) if d != axis]
    return max_over_ndim(input, list(others)) - min_over_ndim(input, list(others))


def get_name_by_module(model, module):
    for name, one in model.named_modules():
        if one is module:
            return name
    raise ValueError("module is not in the model")


def cross_layer_equalization(module1, module2, output_axis=0, input_axis=1):
    """Scale channels between two layers so that the first's rows and the second's columns have equal ranges.

    Args:
        module1: a layer.
        module2: the layer behind it.
        output_axis: the dimension of the first's weight that its results' channels are in.
        input_axis: the dimension of the second's weight that its operands' channels are in.
    """
    for module in (module1, module2):
        if type(module) not in _PLAIN + _FUSED:
            raise ValueError("module type not supported:", type(module1), " ", type(module2))
    first, second = get_module_weight(module1), get_module_weight(module2)
    if first.size(output_axis) != second.size(input_axis):
        raise TypeError(
            "Number of output channels of first arg do not match         number input channels of second arg"
        )
    factors = (channel_range(first, output_axis) / (channel_range(second, input_axis) + 1e-9)).sqrt()

    def along(weight, axis, values):
        return weight * values.reshape([-1 if d == axis else 1 for d in range(weight.ndim)])

    set_module_weight(module1, along(first, output_axis, factors.reciprocal()))
    if has_bias(module1):
        set_module_bias(module1, get_module_bias(module1) * factors.reciprocal())
    set_module_weight(module2, along(second, input_axis, factors))


def process_paired_modules_list_to_name(model, paired_modules_list):
    """Modules in groups become their names, in place."""
    for group in paired_modules_list:
        for i, item in enumerate(group):
            if isinstance(item, nn.Module):
                group[i] = get_name_by_module(model, item)
            elif not isinstance(item, str):
                raise TypeError("item must be a nn.Module or a string")
    return paired_modules_list


def expand_groups_in_paired_modules_list(paired_modules_list):
    """Groups of layers as pairs of neighbours."""
    pairs = []
    for group in paired_modules_list:
        if len(group) == 1:
            raise ValueError("Group must have at least two modules")
        if len(group) == 2:
            pairs.append(group)
        else:
            pairs += [list(pair) for pair in zip(group, group[1:])]
    return pairs


def equalize(model, paired_modules_list, threshold=1e-4, inplace=True):
    """Equalise neighbouring layers until their weights move less than the threshold.

    Args:
        model: what has the layers.
        paired_modules_list: groups of layers that follow each other, or of their names.
        threshold: when to stop.
        inplace: whether the model itself is changed.
    """
    names = process_paired_modules_list_to_name(model, paired_modules_list)
    model = model if inplace else copy.deepcopy(model)
    pairs = expand_groups_in_paired_modules_list(names)
    wanted = {name for pair in pairs for name in pair}
    now = {name: module for name, module in model.named_modules() if name in wanted}
    before: dict = dict.fromkeys(now)
    while not converged(now, before, threshold):
        for pair in pairs:
            for name in pair:
                before[name] = copy.deepcopy(now[name])
            cross_layer_equalization(now[pair[0]], now[pair[1]])
    return model


def converged(curr_modules, prev_modules, threshold=1e-4):
    """Whether weights moved less than the threshold, all together."""
    if curr_modules.keys() != prev_modules.keys():
        raise ValueError("The keys to the given mappings must have the same set of names of modules")
    if any(module is None for module in prev_modules.values()):
        return False
    moved = [
        float((get_module_weight(module) - get_module_weight(prev_modules[name])).norm())
        for name, module in curr_modules.items()
    ]
    return sum(moved) < threshold
