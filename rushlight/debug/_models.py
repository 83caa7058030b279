"""What a model's parameters are, and which of them a loss reaches."""

from collections import Counter

import rushlight as torch

__all__ = ["audit", "unused_parameters"]


def _graph_leaves(outputs):
    """The tensors whose gradients a backward pass from the outputs would accumulate."""
    waiting = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen, leaves = set(waiting), []
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return leaves


def unused_parameters(model, *outputs):
    """Names of the parameters that want gradients and that no output depends on.

    Args:
        model: the module.
        outputs: tensors computed with it, such as the loss.
    """
    reached = {id(leaf) for leaf in _graph_leaves(outputs)}
    reached |= {id(output) for output in outputs}
    return [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in reached]


class Audit:
    """What a model's tensors are, as rows ``(kind, name, shape, dtype, device, requires_grad)``."""

    def __init__(self, rows):
        self.rows = rows

    def odd(self):
        """The rows whose dtype or device is not what most of their kind have; integers may differ."""
        rows = [row for row in self.rows if row[3].is_floating_point or row[3].is_complex]
        usual = Counter(row[3:5] for row in rows).most_common(1)
        return [row for row in rows if usual and row[3:5] != usual[0][0]]

    def __str__(self):
        counts = Counter((kind, dtype, device, grad) for kind, _, _, dtype, device, grad in self.rows)
        lines = []
        for (kind, dtype, device, grad), n in counts.items():
            frozen = ", frozen" if kind == "parameter" and not grad else ""
            lines.append(f"{n:6} {kind}{'s' * (n != 1)}, {dtype}, {device}{frozen}")
        lines += [
            f"   odd: {kind} {name} {list(shape)} is {dtype} on {device}"
            for kind, name, shape, dtype, device, _ in self.odd()
        ]
        return "\n".join(lines)

    __repr__ = __str__


def audit(model):
    """Lists the dtypes and devices of all parameters and buffers, and those that differ from the rest.

    >>> print(rushlight.debug.audit(model))
         8 parameters, torch.float32, cpu
         1 parameter, torch.float64, cpu
       odd: parameter head.bias [10] is torch.float64 on cpu
    """
    named = [("parameter", *pair) for pair in model.named_parameters()]
    named += [("buffer", *pair) for pair in model.named_buffers()]
    lazy = torch.nn.parameter.is_lazy
    return Audit(
        [
            (kind, name, () if lazy(t) else tuple(t.shape), t.dtype, t.device, t.requires_grad)
            for kind, name, t in named
        ]
    )
