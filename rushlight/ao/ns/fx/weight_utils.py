"""Weights of layers and functions of a graph."""

import rushlight
from rushlight.ao.quantization.observer import _is_activation_post_process
from rushlight.fx import Node

from .mappings import get_base_name_to_sets_of_related_ops
from .ns_types import NSSingleResultValuesType
from .utils import get_target_type_str, module_of

__all__ = ["extract_weight_from_node", "get_op_to_type_to_weight_extraction_fn"]


def mod_weight_detach(mod):
    return mod.weight.detach()


def mod_0_weight_detach(mod):
    return mod[0].weight.detach()


def mod_weight_bias_0(mod):
    return mod._weight_bias()[0]


def get_lstm_weight(mod):
    """The weights of a recurrent layer of numbers, those of operands before those of states."""
    return [p.detach() for name, p in mod.named_parameters(recurse=False) if name.startswith("weight")]


def get_qlstm_weight(mod):
    """The same of one of integers."""
    found = []
    for cell in mod._all_weight_values:
        packed = cell.param.__getstate__()[0][4]
        found += [one.__getstate__()[0][0] for one in packed[:2]]
    return found


def get_module_weight(mod):
    """The weight of a layer, or of the first part of a fused one."""
    if isinstance(mod, rushlight.nn.RNNBase):
        return get_lstm_weight(mod)
    if hasattr(mod, "_all_weight_values"):
        return get_qlstm_weight(mod)
    if hasattr(mod, "_weight_bias"):
        return mod_weight_bias_0(mod)
    if isinstance(mod, rushlight.nn.Sequential) and not hasattr(mod, "weight"):
        return get_module_weight(mod[0])
    weight = mod.weight if isinstance(mod.weight, rushlight.Tensor) else mod.weight()
    return weight.detach()


def _source(node):
    """The attribute that a weight comes from, behind observers and rounding."""
    while isinstance(node, Node) and node.op != "get_attr":
        node = node.args[0] if node.args else None
    return node


def _attribute(gm, path):
    owner, _, name = path.rpartition(".")
    return getattr(gm.get_submodule(owner) if owner else gm, name)


def get_function_weight(node, gm):
    """The weight that a function is given: a tensor, or one that is packed."""
    weight = node.kwargs["weight"] if "weight" in node.kwargs else node.args[1]
    source = _source(weight)
    if source is None:
        return None
    value = _attribute(gm, source.target)
    if isinstance(value, rushlight.Tensor):
        value = value.detach()
        halves = isinstance(weight, Node) and weight.op == "call_method" and weight.target == "dequantize"
        return value.to(rushlight.float16) if halves and value.dtype == rushlight.float32 else value
    return value.unpack()[0]


get_linear_fun_weight = get_conv_fun_weight = get_function_weight


def get_op_to_type_to_weight_extraction_fn():
    """What reads the weight of classes (given the module) and functions (given node and graph)."""
    weighted = ("Conv", "Linear", "LSTM", "NonDynamically")
    found: dict = {"call_module": {}, "call_function": {}}
    for kinds in get_base_name_to_sets_of_related_ops().values():
        for kind in kinds:
            if isinstance(kind, type) and kind.__name__.startswith(weighted):
                if "Transpose" not in kind.__name__ and kind.__name__ != "LSTMCell":
                    found["call_module"][kind] = get_module_weight
            elif callable(kind) and not isinstance(kind, type):
                name = getattr(kind, "__name__", str(kind)).rpartition(".")[2]
                name = getattr(kind, "_opname", name)
                if name.startswith(("linear", "conv")) and "transpose" not in name:
                    found["call_function"][kind] = get_function_weight
    return found


def extract_weight_from_node(node, gm, op_to_type_to_weight_extraction_fn=None):
    """What results say of a node's weight, or None where it has none that is known."""
    readers = op_to_type_to_weight_extraction_fn
    readers = get_op_to_type_to_weight_extraction_fn() if readers is None else readers
    if node.op == "call_function":
        reader = readers["call_function"].get(node.target)
        weight = None if reader is None else reader(node, gm)
    elif node.op == "call_module":
        module = module_of(node, gm)
        if _is_activation_post_process(module):
            return None
        reader = readers["call_module"].get(type(module))
        weight = None if reader is None else reader(module)
    else:
        return None
    if weight is None:
        return None
    kind = get_target_type_str(node, gm)
    return {
        "type": NSSingleResultValuesType.WEIGHT.value,
        "values": [weight],
        "prev_node_name": node.name,
        "prev_node_target_type": kind,
        "ref_node_name": node.name,
        "ref_node_target_type": kind,
        "index_within_arg": 0,
        "index_of_arg": 0,
    }
