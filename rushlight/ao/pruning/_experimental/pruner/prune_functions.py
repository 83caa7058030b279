"""Layers without the rows that their masks leave out, and the layers after them without the columns.

A bias that is not pruned (`prune_bias=False`) is a constant that the next layer takes into its own.
"""

import rushlight
from rushlight import nn
from rushlight.nn.utils import parametrize

from .parametrization import BiasHook, FakeStructuredSparsity


def _mask_of(module, name="weight"):
    """The mask of a weight's rows."""
    for step in module.parametrizations[name]:
        if isinstance(step, FakeStructuredSparsity):
            return step.mask
    raise RuntimeError(f"{type(module).__name__}.{name} has no mask of rows")


def _stored(module, name="weight"):
    """What has a weight as it is trained, and that weight's name there."""
    if parametrize.is_parametrized(module, name):
        return module.parametrizations[name], "original"
    return module, name


def _keep_columns(module, mask, name="weight"):
    """Leave out the columns of a weight that have no operand any more; how many are left."""
    owner, held = _stored(module, name)
    with rushlight.no_grad():
        weight = nn.Parameter(getattr(owner, held)[:, mask])
        setattr(owner, held, weight)
    return weight.shape[1]


def _keep_rows(module, mask, name="weight"):
    """Leave out the rows of a weight that are under its mask; how many are left."""
    with rushlight.no_grad():
        parametrize.remove_parametrizations(module, name, leave_parametrized=True)
        weight = nn.Parameter(getattr(module, name)[mask])
        setattr(module, name, weight)
    return weight.shape[0]


def _remove_bias_handles(module):
    for key in [key for key, hook in module._forward_hooks.items() if isinstance(hook, BiasHook)]:
        del module._forward_hooks[key]


def _take_bias(module):
    """The bias that was put aside for the hook, which is no more; None where there was none."""
    bias = getattr(module, "_bias", None)
    if hasattr(module, "_bias"):
        delattr(module, "_bias")
    return bias


def _prune_module_bias(module, mask):
    """Leave out the biases of rows that are left out."""
    original = module._bias if hasattr(module, "_bias") else module.bias
    if original is not None:
        module.bias = nn.Parameter(original[mask])
    _take_bias(module)


def _propagate_module_bias(module, mask):
    """Leave out the biases of rows that are left out; these, for the next layer, or None."""
    original = _take_bias(module)
    if module.bias is not None:
        module.bias = nn.Parameter(module.bias[mask])
    elif original is not None:
        module.bias = nn.Parameter(original[mask])
    return None if original is None else original[~mask]


def _get_adjusted_next_layer_bias(next_layer, pruned_biases, mask):
    """The next layer's bias with what the constants of pruned rows add to it."""
    if not isinstance(next_layer, (nn.Conv2d, nn.Linear)):
        raise NotImplementedError(f"Type {type(next_layer)} not supported yet.")
    weight = getattr(*_stored(next_layer))[:, ~mask]
    # A constant channel meets every element of a filter.
    added = (weight.flatten(2).sum(2) if weight.dim() > 2 else weight) @ pruned_biases
    parametrized = parametrize.is_parametrized(next_layer)
    own = getattr(next_layer, "_bias", None) if parametrized else next_layer.bias
    return nn.Parameter(added if own is None else added + own)


def _prune_linear_helper(linear):
    mask = _mask_of(linear)
    linear.out_features = _keep_rows(linear, mask)
    _remove_bias_handles(linear)
    return mask


def prune_linear(linear):
    """A last linear layer."""
    mask = _prune_linear_helper(linear)
    if getattr(linear, "prune_bias", False):
        _prune_module_bias(linear, mask)


def prune_linear_linear(linear1, linear2):
    """Two linear layers."""
    prune_linear_activation_linear(linear1, None, linear2)


def _hand_bias_on(layer, mask, activation, following):
    """Prune a layer's bias; what it was where rows are gone goes through the activation to the next layer."""
    if getattr(layer, "prune_bias", False):
        _prune_module_bias(layer, mask)
        return
    constants = _propagate_module_bias(layer, mask)
    if constants is not None:
        constants = activation(constants) if activation else constants
        following.bias = _get_adjusted_next_layer_bias(following, constants, mask)


def prune_linear_activation_linear(linear1, activation, linear2):
    """Two linear layers with an activation between them."""
    mask = _prune_linear_helper(linear1)
    _hand_bias_on(linear1, mask, activation, linear2)
    linear2.in_features = _keep_columns(linear2, mask)


def _prune_conv2d_helper(conv2d):
    mask = _mask_of(conv2d)
    conv2d.out_channels = _keep_rows(conv2d, mask)
    _remove_bias_handles(conv2d)
    return mask


def prune_conv2d_padded(conv2d_1):
    """A convolution before a padded one: a constant is not one at the edges, so no row goes."""
    mask = _mask_of(conv2d_1)
    with rushlight.no_grad():
        parametrize.remove_parametrizations(conv2d_1, "weight", leave_parametrized=True)
    original = _take_bias(conv2d_1)
    if original is None:
        if conv2d_1.bias is not None:
            conv2d_1.bias.data[~mask] = 0
    elif conv2d_1.bias is None:
        conv2d_1.bias = nn.Parameter(original)
    else:
        conv2d_1.bias = nn.Parameter(rushlight.where(mask, conv2d_1.bias, original))


def prune_conv2d(conv2d):
    """A last convolution."""
    mask = _prune_conv2d_helper(conv2d)
    if getattr(conv2d, "prune_bias", False):
        _prune_module_bias(conv2d, mask)


def prune_conv2d_conv2d(conv2d_1, conv2d_2):
    """Two convolutions."""
    prune_conv2d_activation_conv2d(conv2d_1, None, conv2d_2)


def prune_conv2d_activation_conv2d(conv2d_1, activation, conv2d_2):
    """Two convolutions with an activation between them."""
    biased = conv2d_1.bias is not None or getattr(conv2d_1, "_bias", None) is not None
    padded = conv2d_2.padding != "valid" if isinstance(conv2d_2.padding, str) else any(conv2d_2.padding)
    if padded and biased:
        prune_conv2d_padded(conv2d_1)
        return
    mask = _prune_conv2d_helper(conv2d_1)
    _hand_bias_on(conv2d_1, mask, activation, conv2d_2)
    conv2d_2.in_channels = _keep_columns(conv2d_2, mask)


def prune_conv2d_pool_activation_conv2d(c1, pool, activation, c2):
    """Two convolutions with pooling and an activation between them."""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_activation_pool_conv2d(c1, activation, pool, c2):
    """Two convolutions with an activation and pooling between them."""
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_pool_flatten_linear(conv2d, pool, flatten, linear):
    """A convolution and a linear layer that takes each channel's elements one after another."""
    mask = _prune_conv2d_helper(conv2d)
    columns = getattr(*_stored(linear)).shape[1]
    if columns % len(mask) != 0:
        raise AssertionError(f"Flattening from dimensions {len(mask)} to {columns} not supported")
    each = columns // len(mask)
    spread = mask.repeat_interleave(each)
    if getattr(conv2d, "prune_bias", False):
        _prune_module_bias(conv2d, mask)
    else:
        constants = _propagate_module_bias(conv2d, mask)
        if constants is not None:
            constants = constants.repeat_interleave(each)
            linear.bias = _get_adjusted_next_layer_bias(linear, constants, spread)
    linear.in_features = _keep_columns(linear, spread)


def prune_lstm_output_linear(lstm, getitem, linear):
    """An LSTM and a linear layer on its output."""
    prune_lstm_output_layernorm_linear(lstm, getitem, None, linear)


def _prune_lstm_rows(lstm, name, mask):
    """Rows of a weight for operands, and their biases."""
    _keep_rows(lstm, mask, f"weight_{name}")
    if lstm.bias:
        setattr(lstm, f"bias_{name}", nn.Parameter(getattr(lstm, f"bias_{name}")[mask]))


def _prune_hidden(lstm, name, mask):
    """A weight for hidden states, whose columns are an earlier step's rows; the masks of the gates."""
    masks = mask.split(lstm.hidden_size)
    _prune_lstm_rows(lstm, name, mask)
    kept = [int(one.sum()) for one in masks]
    weights = getattr(lstm, f"weight_{name}").split(kept)
    with rushlight.no_grad():
        parts = [weight[:, one] for weight, one in zip(weights, masks, strict=True)]
        setattr(lstm, f"weight_{name}", nn.Parameter(rushlight.cat(parts)))
    return masks


def prune_lstm_output_layernorm_linear(lstm, getitem, layernorm, linear):
    """An LSTM, normalisation if there is any, and a linear layer on its output."""
    for layer in range(lstm.num_layers):
        if parametrize.is_parametrized(lstm, f"weight_ih_l{layer}"):
            _prune_lstm_rows(lstm, f"ih_l{layer}", _mask_of(lstm, f"weight_ih_l{layer}"))
        if not parametrize.is_parametrized(lstm, f"weight_hh_l{layer}"):
            continue
        masks = _prune_hidden(lstm, f"hh_l{layer}", _mask_of(lstm, f"weight_hh_l{layer}"))
        # A state is the output gate's.
        if layer + 1 < lstm.num_layers:
            _keep_columns(lstm, masks[3], f"weight_ih_l{layer + 1}")
            continue
        lstm.hidden_size = int(masks[0].sum())
        linear.in_features = _keep_columns(linear, masks[3])
        if layernorm is not None:
            layernorm.normalized_shape = (linear.in_features,)
            layernorm.weight = nn.Parameter(layernorm.weight[masks[3]])
            layernorm.bias = nn.Parameter(layernorm.bias[masks[3]])
