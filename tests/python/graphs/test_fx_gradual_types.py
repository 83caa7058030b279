"""`GraphTypeChecker`: shapes of graphs from annotations, known in part."""

import pytest

import rushlight
from rushlight._command.names import is_aliased


def library(torch):
    """The checker's parts, of Rushlight or of PyTorch."""
    from importlib import import_module

    root = torch.__name__
    checker = import_module(f"{root}.fx.experimental.graph_gradual_typechecker")
    inference = import_module(f"{root}.fx.experimental.unify_refinements")
    return checker, inference, import_module(f"{root}.fx.tensor_type")


def network(torch):
    """Layers with a window, a residual and a flattened end, of 3 channels."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 3, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(3)
            self.act = torch.nn.ReLU()
            self.pool = torch.nn.MaxPool2d(2)
            self.even = torch.nn.AdaptiveAvgPool2d((4, 5))
            self.out = torch.nn.Linear(60, 7)

        def forward(self, x):
            y = torch.add(self.act(self.norm(self.conv(x))), x)
            return self.out(torch.flatten(self.even(self.pool(y)), 1))

    return Network()


def types_of(torch, sizes, symbols):
    """What the checker says of the network's nodes, as text."""
    checker, inference, types = library(torch)
    traced = torch.fx.symbolic_trace(network(torch))
    annotation = types.TensorType(tuple(types.Dyn if size is None else size for size in sizes))
    next(iter(traced.graph.nodes)).type = annotation
    try:
        checker.GraphTypeChecker({}, traced).type_check()
        if symbols:
            inference.infer_symbolic_types(traced)
    except TypeError:
        return "refused"
    return [str(node.type) for node in traced.graph.nodes]


CASES = [(2, 3, 32, 32), (None, 3, 9, 7), (None,) * 4, (2, 3, None, 8), (2, 4, 8, 8), (3, 8, 8)]


@pytest.mark.parametrize("symbols", [False, True], ids=["sizes", "symbols"])
@pytest.mark.parametrize("sizes", CASES, ids=str)
def test_types_are_pytorchs(sizes, symbols):
    torch = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("compares with PyTorch")
    if symbols:
        pytest.importorskip("sympy")
    assert types_of(rushlight, sizes, symbols) == types_of(torch, sizes, symbols)


def test_known_sizes_are_those_of_a_run():
    types = types_of(rushlight, (2, 3, 32, 32), False)
    assert types[-1] == "TensorType[(2, 7)]"
    assert network(rushlight)(rushlight.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_a_pool_that_rounds_up_has_the_size_of_a_run():
    checker, _, types = library(rushlight)
    for size, kernel, stride, padding in ((5, 2, 2, 0), (6, 3, 4, 1), (7, 2, 3, 1), (9, 3, 2, 0)):
        pool = rushlight.nn.MaxPool2d(kernel, stride, padding, ceil_mode=True)
        traced = rushlight.fx.symbolic_trace(rushlight.nn.Sequential(pool))
        next(iter(traced.graph.nodes)).type = types.TensorType((1, 1, size, size))
        checker.GraphTypeChecker({}, traced).type_check()
        last = list(traced.graph.nodes)[-1]
        assert tuple(last.type.__args__) == pool(rushlight.zeros(1, 1, size, size)).shape


def test_a_refusal_names_the_node():
    checker, _, types = library(rushlight)
    traced = rushlight.fx.symbolic_trace(network(rushlight))
    next(iter(traced.graph.nodes)).type = types.TensorType((2, 4, 8, 8))
    with pytest.raises(TypeError, match=r"conv.*Conv2d\(3, 3.*does not fit TensorType\[\(2, 4, 8, 8\)\]"):
        checker.GraphTypeChecker({}, traced).type_check()


def test_a_subclass_of_a_layer_is_checked_as_the_layer():
    checker, _, types = library(rushlight)

    class Wide(rushlight.nn.Linear):
        pass

    class Tracer(rushlight.fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return isinstance(m, Wide)

    root = rushlight.nn.Sequential(Wide(3, 5))
    traced = rushlight.fx.GraphModule(root, Tracer().trace(root))
    next(iter(traced.graph.nodes)).type = types.TensorType((types.Dyn, 3))
    checker.GraphTypeChecker({}, traced).type_check()
    assert list(traced.graph.nodes)[-1].type == types.TensorType((types.Dyn, 5))
