"""Simple compilers for `aot_function`: they run, print, draw or script the graphs that they get."""

import functools

import rushlight as torch

from .aot_autograd import aot_function, aot_module
from .partitioners import draw_graph, min_cut_rematerialization_partition

__all__ = [
    "debug_compile",
    "draw_graph_compile",
    "memory_efficient_fusion",
    "nop",
    "print_compile",
    "ts_compile",
]

# Operators that fusing compilers want to see as operators on elements and sums.
_DECOMPOSED = """
    detach gelu_backward leaky_relu_backward sigmoid_backward threshold_backward hardtanh_backward
    hardsigmoid_backward hardswish_backward tanh_backward silu_backward elu_backward
"""


@functools.cache
def _default_decompositions():
    from rushlight._decomp import get_decompositions

    return get_decompositions([getattr(torch.ops.aten, name) for name in _DECOMPOSED.split()])


def __getattr__(name):
    if name != "default_decompositions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _default_decompositions()


def nop(fx_g, _):
    """Runs the graph as it is."""
    return fx_g


nop._boxed_call = False  # type: ignore[attr-defined]


def print_compile(fx_g, _):
    """Prints the graph's code, and runs it as it is."""
    print(fx_g.code)
    return fx_g


def debug_compile(fx_g, inps):
    """Prints the code and the shapes of the inputs, and runs the graph node by node."""
    print(fx_g.code)
    for node, value in zip((n for n in fx_g.graph.nodes if n.op == "placeholder"), inps):
        print(f"{node.name}: {tuple(value.shape) if isinstance(value, torch.Tensor) else value}")
    return torch.fx.Interpreter(fx_g).run


def draw_graph_compile(name):
    """A compiler that draws each graph into a file, and runs it as it is."""

    def compiler(fx_g, _):
        draw_graph(fx_g, f"{name}.svg", name)
        return fx_g

    return compiler


def ts_compile(fx_g, inps):
    """The graph as a frozen script."""
    return torch.jit.freeze(torch.jit.script(fx_g.eval()))


def memory_efficient_fusion(fn, **kwargs):
    """``fn``, a function or a module, with a backward pass that computes cheap values again."""
    settings = {
        "fw_compiler": nop,
        "bw_compiler": nop,
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": _default_decompositions(),
        **kwargs,
    }
    return (aot_module if isinstance(fn, torch.nn.Module) else aot_function)(fn, **settings)
