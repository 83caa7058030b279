"""The work of `linearize`: a function once at a point, and its derivative there as a program of its own."""

import rushlight as torch
from rushlight.fx import Graph, GraphModule
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer
from rushlight.utils import _pytree as pytree
from rushlight.utils._pytree import tree_flatten, tree_unflatten

from .eager_transforms import jvp
from .functionalization import FunctionalizeMode


class _LinearPart(ProxyTorchDispatchMode):
    """Records what depends on the tangents; the rest runs now, and its results are constants."""

    def _record(self, func, args, kwargs):
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        if any(self.tracer.proxy_of(t) is not None for t in tensors):
            return super()._record(func, args, kwargs)
        return func(*args, **kwargs)


def trace_linear(func, primals, flat_primals, spec):
    """The outputs, and the derivative as a function of flat tangents."""
    tracer = PythonKeyTracer()
    tracer.root, tracer.graph, tracer.tensor_attrs = torch.nn.Module(), Graph(), {}
    tangents = [torch.zeros_like(p) for p in flat_primals]
    for i, tangent in enumerate(tangents):
        tracer.track(tangent, tracer.create_proxy("placeholder", f"tangent_{i}", (), {}))
    pure = FunctionalizeMode()
    with _LinearPart(tracer), pure:
        output, products = jvp(func, primals, tree_unflatten(tangents, spec))
    flat, out_spec = tree_flatten(pure.values(products))
    tracer.create_node("output", "output", (tuple(tracer.create_arg(t) for t in flat),), {})
    tracer.graph.eliminate_dead_code()
    program = GraphModule(tracer.root, tracer.graph, "Linear")
    return output, lambda *tangents: tree_unflatten(list(program(*tangents)), out_spec)
