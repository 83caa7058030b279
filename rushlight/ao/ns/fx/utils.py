"""How far two tensors are apart, and what nodes of a graph take and give."""

import enum
import functools

import rushlight
from rushlight.ao.quantization.observer import _is_activation_post_process
from rushlight.fx import Node

__all__ = [
    "NodeInputOrOutputType",
    "compute_cosine_similarity",
    "compute_normalized_l2_error",
    "compute_sqnr",
    "get_node_first_input_and_output_type",
    "get_target_type_str",
    "maybe_add_missing_fqns",
    "rekey_logger_info_on_node_name_of_model",
]


def _of_all_tensors(function):
    """A measure of two tensors that also takes lists, tuples and dictionaries of them."""

    @functools.wraps(function)
    def measure(x, y):
        if isinstance(x, (list, tuple)):
            return type(x)([measure(one, other) for one, other in zip(x, y)])
        if isinstance(x, dict):
            return {name: measure(value, y[name]) for name, value in x.items()}
        if not isinstance(x, rushlight.Tensor):
            return None
        x, y = (one.dequantize() if one.is_quantized else one for one in (x, y))
        x, y = (one if one.is_floating_point() else one.float() for one in (x, y))
        return function(x, y)

    return measure


@_of_all_tensors
def compute_sqnr(x, y):
    """The signal's strength over that of the difference, in decibels."""
    return 20 * rushlight.log10(rushlight.norm(x) / rushlight.norm(x - y))


@_of_all_tensors
def compute_normalized_l2_error(x, y):
    """The root of the sum of squared differences over that of squares."""
    return rushlight.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@_of_all_tensors
def compute_cosine_similarity(x, y):
    """The cosine of the angle between both, as vectors."""
    return rushlight.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))


class NodeInputOrOutputType(enum.Enum):
    """What a node takes or gives."""

    FP32 = enum.auto()
    INT8 = enum.auto()
    FP16 = enum.auto()
    UNKNOWN = enum.auto()
    FP32_OR_INT8 = enum.auto()  # as its operand is


def first_operand(node):
    """The node that computes a node's first operand, or None."""
    value = node.args[0] if node.args else next(iter(node.kwargs.values()), None)
    return value if isinstance(value, Node) else None


def module_of(node, gm):
    """The module that a node calls, or None."""
    return gm.get_submodule(str(node.target)) if node.op == "call_module" else None


def get_target_type_str(node, gm):
    """What a node calls, in words."""
    if node.op in ("call_function", "call_method"):
        return rushlight.typename(node.target) if node.op == "call_function" else str(node.target)
    module = module_of(node, gm)
    return "" if module is None else rushlight.typename(module)


def _operand_type(node, gm, io_types):
    operand = first_operand(node)
    if operand is None or operand.op in ("placeholder", "get_attr"):
        return NodeInputOrOutputType.UNKNOWN
    return get_node_first_input_and_output_type(operand, gm, None, io_types)[1]


def get_node_first_input_and_output_type(node, gm, logger_cls, node_type_to_io_type_map):
    """What a node takes first, and what it gives."""
    kind, io_types = NodeInputOrOutputType, node_type_to_io_type_map
    if node.op == "call_function":
        if node.target is rushlight.quantize_per_tensor:
            return kind.FP32, kind.INT8
        for name, found in (("fp32", kind.FP32), ("fp16", kind.FP16), ("int8", kind.INT8)):
            if node.target in io_types[f"funs_io_type_{name}"]:
                return found, found
        if node.target in io_types["funs_io_type_fp32_or_int8"]:
            operand = _operand_type(node, gm, io_types)
            return operand, operand
    elif node.op == "call_module":
        module = module_of(node, gm)
        if _is_activation_post_process(module) or (logger_cls and isinstance(module, logger_cls)):
            operand = _operand_type(node, gm, io_types)
            return operand, operand
        for name, found in (("fp32", kind.FP32), ("int8", kind.INT8)):
            if type(module) in io_types[f"mods_io_type_{name}"]:
                return found, found
        if type(module) in io_types["mods_io_type_fp32_or_int8"]:
            operand = _operand_type(node, gm, io_types)
            return operand, operand
    elif node.op == "call_method":
        if node.target == "dequantize":
            return _operand_type(node, gm, io_types), kind.FP32
        if node.target == "to" and node.args[1:2] == (rushlight.float16,):
            return kind.FP32, kind.FP16
        if node.target in io_types["meths_io_type_fp32_or_int8"]:
            operand = _operand_type(node, gm, io_types)
            return operand, operand
    return kind.UNKNOWN, kind.UNKNOWN


def rekey_logger_info_on_node_name_of_model(results, model_name):
    """Results by the name of the node of this model."""
    found = {}
    for name, of_types in results.items():
        for of_models in of_types.values():
            for entry in of_models.get(model_name, ())[:1]:
                name = entry["ref_node_name"]
        found[name] = of_types
    return found


def maybe_add_missing_fqns(results):
    """A model whose nodes have no paths takes over those of the other one."""
    for of_types in results.values():
        for of_models in of_types.values():
            known = next((es for es in of_models.values() if es and es[0]["fqn"] is not None), None)
            for entries in of_models.values() if known else ():
                for entry, other in zip(entries, known):
                    if entry["fqn"] is None:
                        entry["fqn"] = other["fqn"]
