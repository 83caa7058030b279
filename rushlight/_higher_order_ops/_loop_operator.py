"""`while_loop` as an operator: a node of graphs, with the condition and the body as graphs of their own."""

import rushlight as torch
from rushlight._functorch.functionalization import FunctionalizeMode
from rushlight._higher_order_ops._parts import describe
from rushlight._higher_order_ops._regions import Regions
from rushlight._higher_order_ops.operator import HigherOrderOperator, _key
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, _describe, track_tensor_tree


class WhileLoop(HigherOrderOperator):
    """``while_loop(cond, body, carried, additional)``: both functions take all tensors, one by one."""

    def __init__(self):
        super().__init__("while_loop")

    def __call__(self, cond_fn, body_fn, carried, additional=()):
        return super().__call__(cond_fn, body_fn, tuple(carried), tuple(additional))


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
def run_pure(mode, cond_fn, body_fn, carried, additional):
    def pure(function):
        def run(*values):
            inner = type(mode)(mode.copies)
            with inner:
                return inner.values(function(*values))

        return run

    return loop_operator(pure(cond_fn), pure(body_fn), mode.values(carried), mode.values(additional))


@loop_operator.py_impl(ProxyTorchDispatchMode)
def _record(mode, cond_fn, body_fn, carried, additional):
    regions, given = Regions(mode), (*carried, *additional)
    regions.trace(cond_fn, given)
    returned = regions.trace(body_fn, given)
    if describe(returned) != describe(carried):
        raise RuntimeError(
            f"while_loop: body_fn must return what it takes, {describe(carried)}, but returned "
            f"{describe(returned)}"
        )
    cond, body = regions.modules()
    functions = [regions.attach("while_loop_cond_graph", cond), regions.attach("while_loop_body_graph", body)]
    tensors = carried, (*additional, *regions.captured.values())
    arguments = (*functions, *tensors)
    proxy = mode.tracer.create_proxy("call_function", loop_operator, arguments, {}, name="while_loop")
    result = loop_operator(cond_fn, body_fn, carried, additional)
    track_tensor_tree(result, proxy, tracer=mode.tracer)
    _describe(proxy.node, result, mode.fakes)
    return result
