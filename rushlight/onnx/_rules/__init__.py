"""How each operator is written in ONNX: functions ``(graph, *arguments)`` by the operator's name.

Arguments are those of the operator's schema: tensors are values, sizes are numbers or scalar values.
"""

__all__ = ["RULES", "rule"]

RULES: dict = {}


def rule(*names):
    """Declares a function as the rule of operators."""

    def declare(function):
        for name in names:
            RULES[name] = function
        return function

    return declare


from . import arithmetic, indexing, layers, recurrent, reductions, shapes  # noqa: E402, F401
