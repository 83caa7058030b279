"""`scan` as an operator: a loop over rows, whose function is a graph of its own."""

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight._higher_order_ops import _recording
from rushlight._higher_order_ops._parts import describe
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import _key
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = ["scan_operator"]


class Scan(_recording.RegionOperator):
    """``scan(f, init, xs, additional)``: ``f(*carry, *rows of xs, *additional)`` gives the next carry and a
    result; the last carry and the stacked results are returned."""

    def __init__(self):
        super().__init__("scan")

    def __call__(self, combine_fn, init, xs, additional_inputs=()):
        return super().__call__(combine_fn, tuple(init), tuple(xs), tuple(additional_inputs))

    def inputs(self, init, xs, additional):
        return [*init, *(x[0] for x in xs), *additional]

    def check(self, lists, returned):
        kinds, found = describe(lists[0]), describe(returned[0][: len(lists[0])])
        if kinds != found:
            raise RuntimeError(
                f"scan: expected init and carry to have the same metadata, but init is {kinds} and the carry "
                f"is {found}"
            )


scan_operator = Scan()


@scan_operator.py_impl(_key("CompositeExplicitAutograd"))
def _run(combine_fn, init, xs, additional):
    carry, results = init, []
    for rows in zip(*xs, strict=True):
        found = combine_fn(*carry, *rows, *additional)
        carry, result = tuple(found[: len(init)]), found[len(init) :]
        results.append(result)
    return *carry, *(torch.stack(column) for column in zip(*results, strict=True))


@scan_operator.py_impl(FakeTensorMode)
def _describe_results(mode, combine_fn, init, xs, additional):
    with mode:  # of the values nothing is known
        found = combine_fn(*scan_operator.inputs(init, xs, additional))
        carry, results = found[: len(init)], found[len(init) :]
        stacked = (t.new_empty((xs[0].shape[0], *t.shape)) for t in results)
        return *(torch.empty_like(t) for t in carry), *stacked


@scan_operator.py_impl(FunctionalizeMode)
def run_pure(mode, *args):
    return _recording.run_pure(scan_operator, scan_operator.functions, mode, args)


@scan_operator.py_impl(ProxyTorchDispatchMode)
def _record(mode, combine_fn, init, xs, additional):
    regions = Regions(mode)
    regions.trace(combine_fn, scan_operator.inputs(init, xs, additional))
    function = regions.attach("scan_combine_graph", *regions.modules())
    arguments = function, list(init), list(xs), [*additional, *regions.captured.values()]
    return regions.record(scan_operator, arguments, (combine_fn, init, xs, additional))
