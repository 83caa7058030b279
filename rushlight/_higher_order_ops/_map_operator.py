"""`map` as an operator: a node of graphs, with the function of one example as a graph of its own."""

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight._higher_order_ops import _recording
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import _key
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode


class Map(_recording.RegionOperator):
    """``map_impl(f, xs, given)``: ``f(*rows of xs, *given)`` gives a tuple of tensors, which are stacked."""

    def __init__(self):
        super().__init__("map_impl")

    def __call__(self, f, xs, pos_args=()):
        return super().__call__(f, tuple(xs), tuple(pos_args))

    def inputs(self, xs, given):
        return [*(x[0] for x in xs), *given]

    def gradients(self, call, tensors, needed, grads):
        xs, given = call.split(tensors)
        rows, whole = needed[: len(xs)], needed[len(xs) :]

        def run(*values):
            of_rows, rest = values[: len(xs)], values[len(xs) :]
            more, others = rest[: len(grads)], rest[len(grads) :]
            return _recording.gradient_of(call.sources[0], needed)(*of_rows, *others, *more)

        found = iter(self(run, (*xs, *grads), given))
        found = [next(found) if need else None for need in needed]
        sums = [g if g is None else g.sum(0) for g in found[len(rows) :]]
        assert len(sums) == len(whole)
        return [*found[: len(rows)], *sums]


map_operator = Map()


@map_operator.py_impl(_key("CompositeExplicitAutograd"))
def _run(f, xs, pos_args):
    steps = [tuple(f(*rows, *pos_args)) for rows in zip(*xs, strict=True)]
    return tuple(torch.stack(column) for column in zip(*steps, strict=True))


@map_operator.py_impl(FakeTensorMode)
def _describe_results(mode, f, xs, pos_args):
    with mode:
        return tuple(t.new_empty((xs[0].shape[0], *t.shape)) for t in f(*(x[0] for x in xs), *pos_args))


@map_operator.py_impl(FunctionalizeMode)
def run_pure(mode, *args):
    return _recording.run_pure(map_operator, map_operator.functions, mode, args)


@map_operator.py_impl(ProxyTorchDispatchMode)
def _record(mode, f, xs, pos_args):
    regions = Regions(mode)
    regions.trace(f, map_operator.inputs(xs, pos_args))
    function = regions.attach("body_graph", *regions.modules())
    arguments = function, list(xs), [*pos_args, *regions.captured.values()]
    return regions.record(map_operator, arguments, (f, xs, pos_args))
