"""Symbolic traces read as PyTorch's do: names, code, tables and errors."""

import collections
import importlib
import operator
import re

import pytest

import rushlight

torch = pytest.importorskip("torch")

importlib.import_module("torch.fx")

import rushlight.fx  # noqa: E402

Pair = collections.namedtuple("Pair", "left right")


def arithmetic(t):
    class Arithmetic(t.nn.Module):
        def forward(self, x, y):
            z = (x + 1) * y - 2 / x // 3 % 4**y
            z += y @ x
            return -z, ~(z < y) & (x == y) | (x >= 1) ^ (y != 2), abs(x) << 2 >> 1, z[1:, None, ..., 0]

    return Arithmetic()


def signature(t):
    class Signature(t.nn.Module):
        def forward(self, x, y: t.Tensor = None, *args, k: int = 3, d=float("inf"), **kw) -> t.Tensor:
            return x + y + k + d

    return Signature()


def layers(t):
    class Layers(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = t.nn.Linear(3, 4)
            self.seq = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.ReLU())
            self.w = t.nn.Parameter(t.ones(4))
            self.register_buffer("b", t.ones(4))

        def forward(self, x):
            return self.seq(self.lin(x) + self.w * self.b) + self.seq[0].weight

    return Layers()


def functional(t):
    F = t.nn.functional

    class Functional(t.nn.Module):
        def forward(self, x, w):
            x = F.relu(x, inplace=True) + F.gelu(x) + F.linear(x, w) + F.conv2d(x, w, padding=1)
            x = F.dropout(x, 0.1, self.training) + F.max_pool2d(x, 2) + F.adaptive_avg_pool2d(x, (1, 1))
            x = F.interpolate(x, scale_factor=2) + F.softmax(x, dim=1) + F.layer_norm(x, (3,))
            x = F.cross_entropy(x, w) + F.pad(x, (1, 1)) + F.avg_pool2d(x, 2) + F.batch_norm(x, None, None)
            x = F.normalize(x) + F.one_hot(x) + F.log_softmax(x, -1) + F.embedding(x, w) + F.silu(x)
            return F.scaled_dot_product_attention(x, x, x) + F.mse_loss(x, w) + F.group_norm(x, 2)

    return Functional()


def functions(t):
    class Functions(t.nn.Module):
        def forward(self, x):
            y = t.cat([x, x], dim=1) + t.stack((x, x)) + t.einsum("ij,jk->ik", x, x) + t.special.erf(x)
            y = y + t.fft.fft(x) + t.linalg.norm(x) + t.split(x, 2)[0] + t.where(x > 0, x, 1.0) + t.norm(x)
            y = (
                y
                + t.sum(x, dim=(0, 1), keepdim=True, dtype=t.float64)
                + t.meshgrid(x, x)[0]
                + t.flatten(x, 1)
            )
            return t.arange(3) + y, t.ones(2).mul(y), t.is_floating_point(x), t.cosine_similarity(x, y)

    return Functions()


def methods(t):
    class Methods(t.nn.Module):
        def forward(self, x):
            y = x.view(x.size(0), -1).transpose(-1, -2).to(t.float32).to(t.device("cpu"))
            n = x.shape[0]
            return y.sum(dim=1, keepdim=True).T, x.neg_(), y.relu().anything(n, k=2), x.type(t.bool)

    return Methods()


def containers(t):
    class Containers(t.nn.Module):
        def forward(self, x):
            a, b = x
            return (
                {"a": a, "b": (b, [x])},
                Pair(a, 2),
                slice(1, a, None),
                (None, ..., "text", 1.5, float("nan")),
            )

    return Containers()


def unused(t):
    class Unused(t.nn.Module):
        def forward(self, x, y):
            t.sin(x)
            t._assert(x == 2, "two")
            return operator.itemgetter(0)([x]) + operator.iadd(x, 1)

    return Unused()


def names(t):
    class Names(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu_1, self.ReLU, self.add = t.nn.ReLU(), t.nn.ReLU(), t.nn.ReLU()

        def forward(self, input, lambda_, x_1):
            y = self.relu_1(input) + self.ReLU(lambda_) + self.add(x_1)
            return t.relu(y) + t.relu(y) + t.sum(y) + y.sum() + y.real

    return Names()


def attention(t):
    return t.nn.ModuleDict({"block": t.nn.TransformerEncoderLayer(8, 2)})["block"].self_attn and _block(t)


def _block(t):
    class Block(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = t.nn.MultiheadAttention(8, 2)
            self.norms = t.nn.ModuleList([t.nn.LayerNorm(8) for _ in range(2)])
            self.mlp = t.nn.Sequential(t.nn.Linear(8, 16), t.nn.GELU(), t.nn.Linear(16, 8))

        def forward(self, x, mask=None):
            x = self.norms[0](x + self.attn(x, x, x, need_weights=False)[0])
            return self.norms[1](x + self.mlp(x))

    return Block()


def shared(t):
    class Shared(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = t.nn.Linear(2, 2)
            self.two = self.one
            self.constant = t.ones(2)

        def forward(self, x):
            return self.two(self.one(x)) + self.constant + t.zeros(2)

    return Shared()


MODULES = [
    arithmetic,
    signature,
    layers,
    functional,
    functions,
    methods,
    containers,
    unused,
    names,
    attention,
    shared,
]


def plain(text):
    """Without addresses and what kinds of function there are."""
    text = re.sub(r"<built-in method (\w+) of type object at 0x\w+>", r"<function \1>", text)
    text = re.sub(r"<(?:built-in )?function ([\w.<>]+)(?: at 0x\w+)?>", r"<function \1>", text)
    return text.replace("rushlight", "torch")


@pytest.mark.parametrize("make", MODULES, ids=lambda make: make.__name__)
def test_traces_read_like_pytorchs(make):
    ours, theirs = (t.fx.symbolic_trace(make(t)) for t in (rushlight, torch))
    assert ours.code == theirs.code
    assert str(ours.graph) == str(theirs.graph)
    assert plain(str(ours)) == plain(str(theirs))
    ours.graph.lint()


@pytest.mark.parametrize("make", MODULES, ids=lambda make: make.__name__)
def test_readable_text(make):
    ours, theirs = (
        t.fx.symbolic_trace(make(t)).print_readable(print_output=False) for t in (rushlight, torch)
    )
    assert plain(ours) == plain(theirs)


@pytest.mark.parametrize("make", MODULES, ids=lambda make: make.__name__)
def test_names_users_and_order(make):
    def facts(graph):
        return [
            (n.op, n.name, [u.name for u in n.users], [i.name for i in n.all_input_nodes], n.is_impure())
            for n in graph.nodes
        ]

    ours, theirs = (t.fx.symbolic_trace(make(t)).graph for t in (rushlight, torch))
    assert facts(ours) == facts(theirs)


def _loop(x):
    return [item for item in x]


def _branch(x):
    return 1 if x.sum() > 0 else 2


BAD = {
    "branch": _branch,
    "loop": _loop,
    "len": lambda x: len(x),
    "stars": lambda x: x.foo(*x),
    "double stars": lambda x: x.foo(**x),
    "object": lambda x: x + object(),
    "key": lambda x: x + {x: 1},
    "range": lambda x: range(x),
    "int": lambda x: int(x),
    "membership": lambda x: "a" in x,
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_pytorchs(case):
    raised = []
    for t in (torch, rushlight):
        with pytest.raises(Exception) as error:  # noqa: PT011
            t.fx.symbolic_trace(BAD[case])
        raised.append((type(error.value).__name__, str(error.value)))
    assert raised[0] == raised[1]


def test_a_parameter_of_another_module_is_refused():
    stranger = rushlight.nn.Linear(2, 2)
    with pytest.raises(NameError, match="parameter is not a member of this module"):
        rushlight.fx.symbolic_trace(lambda x: x + stranger.weight)
    with pytest.raises(NameError, match="module Linear is not installed as a submodule"):
        rushlight.fx.symbolic_trace(lambda x: stranger(x))
    # tracing that failed leaves modules as they were
    assert stranger(rushlight.ones(2)).shape == (2,)
    assert isinstance(stranger.weight, rushlight.nn.Parameter)


def test_concrete_arguments_read_like_pytorchs():
    def nested(x, b):
        return {"q": x[0] + b[1]["a"], "r": [x[1]["z"]]}

    def special(x, b=1, c=True, d=None):
        return x + b if c else d

    codes = []
    for t in (torch, rushlight):
        PH = t.fx.PH
        flat = t.fx.symbolic_trace(nested, concrete_args={"x": (PH, {"z": PH}), "b": (PH, {"a": PH})})
        fixed = t.fx.symbolic_trace(special, concrete_args={"c": True, "d": None, "b": "s"})
        codes.append((flat.code, fixed.code))
        out = flat((t.ones(2), {"z": 3}), (1, {"a": 2}))
        assert out["q"].tolist() == [3.0, 3.0] and out["r"] == [3]
        with pytest.raises(AssertionError, match="b has been specialized to have value s"):
            fixed("x", "t")
    assert codes[0] == codes[1]


def test_custom_tracers():
    class NoLeaves(rushlight.fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return False

    graph = NoLeaves().trace(rushlight.nn.Sequential(rushlight.nn.ReLU(), rushlight.nn.Linear(2, 2)))
    assert [n.op for n in graph.nodes] == [
        "placeholder", "call_function", "get_attr", "get_attr", "call_function", "output"
    ]  # fmt: skip

    class Recording(rushlight.fx.Tracer):
        record_stack_traces = True

    graph = Recording().trace(rushlight.nn.Sequential(rushlight.nn.ReLU()))
    traced = [n for n in graph.nodes if n.op == "call_module"]
    assert "container.py" in traced[0].stack_trace
    assert list(traced[0].meta["nn_module_stack"].values())[0][0] == "0"


def test_parameter_shapes_may_be_constant():
    class Branching(rushlight.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = rushlight.nn.Parameter(rushlight.ones(4))

        def forward(self, x):
            return x + self.w if self.w.shape[0] == 4 else x

    graph = rushlight.fx.Tracer(param_shapes_constant=True).trace(Branching())
    assert [n.target for n in graph.nodes][1:3] == ["w", operator.add]
    with pytest.raises(rushlight.fx.proxy.TraceError):
        rushlight.fx.Tracer().trace(Branching())
