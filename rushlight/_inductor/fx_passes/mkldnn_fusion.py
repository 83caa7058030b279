"""Patterns of activations behind a product or convolution. In graphs of here each is one operator."""

import rushlight as torch

from ..pattern_matcher import CallFunction, KeywordArg

__all__: list = []

_aten = torch.ops.aten


def _hardswish_fusion(computation_call):
    return CallFunction(_aten.hardswish.default, computation_call)


def _hardtanh_fusion(computation_call):
    return CallFunction(
        _aten.hardtanh.default, computation_call, KeywordArg("min_value"), KeywordArg("max_value")
    )


def _silu_fusion(computation_call):
    return CallFunction(_aten.silu.default, computation_call)


def _gelu_fusion_1(computation_call):
    return CallFunction(_aten.gelu.default, computation_call)


def _gelu_fusion_2(computation_call):
    return CallFunction(_aten.gelu.default, computation_call, approximate="tanh")


def _get_remaining_users(extra_input_node, compute_node):
    """The users of a node that do not lie before another one, which may then overwrite it."""

    def before(node, seen):
        for operand in node.all_input_nodes:
            if operand not in seen:
                seen.add(operand)
                before(operand, seen)
        return seen

    ancestors = before(compute_node, {compute_node})
    return [user for user in extra_input_node.users if user not in ancestors]
