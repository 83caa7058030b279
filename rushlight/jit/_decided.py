"""Conditions of scripts that constants decide before a run."""

import ast

__all__ = ["Decisions"]


class Decisions:
    """Decides conditions; whoever follows a text says which of its expressions are constants."""

    def known(self, node):
        """Whether an expression is a constant, and its value."""
        return isinstance(node, ast.Constant), getattr(node, "value", None)

    def decided(self, node):
        """Whether a condition holds in every run; None where a run decides."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.decided(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts, deciding = [self.decided(v) for v in node.values], isinstance(node.op, ast.Or)
            return deciding if deciding in parts else (None if None in parts else not deciding)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node)
        known, value = self.known(node)
        return value if known and isinstance(value, bool) else None

    def _compared(self, node):
        (left_known, left), (right_known, right) = self.known(node.left), self.known(node.comparators[0])
        compare = _COMPARISONS.get(type(node.ops[0]))
        if not (left_known and right_known and compare):
            return None
        plain = all(value is None or isinstance(value, (bool, int, float, str)) for value in (left, right))
        if not plain and (right is not None or not isinstance(node.ops[0], (ast.Is, ast.IsNot))):
            return None
        return compare(left, right)


_COMPARISONS = {
    ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b, ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}  # fmt: skip
