"""`while_loop` as an operator: a node of graphs, with the condition and the body as graphs of their own."""

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight._higher_order_ops import _recording
from rushlight._higher_order_ops._parts import describe
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import _key
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode


class WhileLoop(_recording.RegionOperator):
    """``while_loop(cond, body, carried, additional)``: both functions take all tensors, one by one."""

    functions = slice(0, 2)

    def __init__(self):
        super().__init__("while_loop")

    def __call__(self, cond_fn, body_fn, carried, additional=()):
        return super().__call__(cond_fn, body_fn, tuple(carried), tuple(additional))

    def check(self, lists, returned):
        kinds, found = describe(lists[0]), describe(returned[1])
        if kinds != found:
            raise RuntimeError(
                f"while_loop: body_fn must return what it takes, {kinds}, but returned {found}"
            )


loop_operator = WhileLoop()


@loop_operator.py_impl(_key("CompositeExplicitAutograd"))
def _run(cond_fn, body_fn, carried, additional):
    while cond_fn(*carried, *additional):
        carried = tuple(body_fn(*carried, *additional))
    return carried


@loop_operator.py_impl(FakeTensorMode)
def _describe_results(mode, cond_fn, body_fn, carried, additional):
    with mode:  # of the values nothing is known
        return tuple(torch.empty_like(t) for t in carried)


@loop_operator.py_impl(FunctionalizeMode)
def run_pure(mode, *args):
    return _recording.run_pure(loop_operator, loop_operator.functions, mode, args)


@loop_operator.py_impl(ProxyTorchDispatchMode)
def _record(mode, cond_fn, body_fn, carried, additional):
    regions, given = Regions(mode), (*carried, *additional)
    regions.trace(cond_fn, given)
    returned = regions.trace(body_fn, given)
    loop_operator.check((carried,), (None, returned))
    cond, body = regions.modules()
    functions = [regions.attach("while_loop_cond_graph", cond), regions.attach("while_loop_body_graph", body)]
    tensors = carried, (*additional, *regions.captured.values())
    arguments = (*functions, *tensors)
    return regions.record(loop_operator, arguments, (cond_fn, body_fn, carried, additional))
