"""`cond` as an operator: a node of graphs, with the two functions as graphs of their own."""

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight._higher_order_ops import _recording
from rushlight._higher_order_ops._parts import describe
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import _key
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight._subclasses.size_choices import SizeTruth
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode


class Choice(_recording.RegionOperator):
    """``cond(truth, one, other, operands)``: both functions take the operands and give a tuple of tensors."""

    functions = slice(1, 3)

    def __init__(self):
        super().__init__("cond")

    def __call__(self, pred, true_fn, false_fn, operands=()):
        if isinstance(pred, (bool, SizeTruth)):  # a comparison of sizes, as graphs of PyTorch have it
            from rushlight._higher_order_ops.cond import cond

            return cond(pred, true_fn, false_fn, operands)
        if torch._C._functorch.maybe_current_level() is not None:
            from rushlight._higher_order_ops.cond import cond

            return cond(pred, true_fn, false_fn, tuple(operands))
        return super().__call__(pred, true_fn, false_fn, tuple(operands))

    def check(self, lists, returned):
        one, other = map(describe, returned)
        if one != other:
            raise RuntimeError(
                "cond: both branches must return equal shapes and dtypes, but got "
                f"{_shown(one)} and {_shown(other)}"
            )

    def gradients(self, call, tensors, needed, grads):
        (operands,) = call.split(tensors)
        functions = [_recording.gradient_of(f, needed) for f in call.sources]
        (pred,), (one, other) = call.head, functions
        found = iter(self(pred, one, other, (*operands, *grads)))
        return [next(found) if need else None for need in needed]


def _shown(kinds):
    return [f"{list(kind[0])} of {kind[1]}" if isinstance(kind, tuple) else kind.__name__ for kind in kinds]


choice_operator = Choice()


@choice_operator.py_impl(_key("CompositeExplicitAutograd"))
def _run(pred, true_fn, false_fn, operands):
    return tuple((true_fn if pred else false_fn)(*operands))


@choice_operator.py_impl(FakeTensorMode)
def _describe_results(mode, pred, true_fn, false_fn, operands):
    with mode:
        one, other = true_fn(*operands), false_fn(*operands)
        choice_operator.check((), (one, other))
        return tuple(torch.empty_like(t) if isinstance(t, torch.Tensor) else t for t in one)


@choice_operator.py_impl(FunctionalizeMode)
def run_pure(mode, *args):
    return _recording.run_pure(choice_operator, choice_operator.functions, mode, args)


@choice_operator.py_impl(ProxyTorchDispatchMode)
def _record(mode, pred, true_fn, false_fn, operands):
    regions = Regions(mode)
    returned = [regions.trace(f, operands) for f in (true_fn, false_fn)]
    choice_operator.check((), returned)
    names = "true_graph", "false_graph"
    functions = [regions.attach(name, module) for name, module in zip(names, regions.modules())]
    arguments = (pred, *functions, (*operands, *regions.captured.values()))
    return regions.record(choice_operator, arguments, (pred, true_fn, false_fn, operands))
