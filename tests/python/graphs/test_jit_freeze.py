"""Freezing: which attributes stay, which layers are folded, and that results stay what they were."""

import copy
import io
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, norm=True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs) if norm else None
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.Dropout(0.5))
        self.scale = 2.0

    def forward(self, x):
        out = self.conv(x)
        if self.norm is not None:
            out = self.norm(out)
        if self.training:
            out = out * 3
        return torch.relu(out) * self.scale + self.shortcut(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(3, 4), Block(4, 4, False)
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        return self.second(self.first(x)) * self.runs

    @torch.jit.export
    def features(self, x):
        return self.first(x)


def trained(net):
    """A network in evaluation whose normalization does something."""
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return net.eval()


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


def reloaded(module):
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file)


def test_normalization_becomes_part_of_convolutions():
    torch.manual_seed(0)
    net, x = trained(Net()), torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        wanted, state = net(x), {n: t.clone() for n, t in net.state_dict().items()}
        scripted = torch.jit.script(net)
        frozen = torch.jit.freeze(scripted)
        frozen.runs = 0
        made = [frozen, reloaded(frozen), copy.deepcopy(frozen)]
        for program in made:
            torch.testing.assert_close(program(x), wanted, rtol=1e-4, atol=1e-4)
            assert program.runs == 1 and not hasattr(program, "first") and not hasattr(program, "features")
            assert not list(program.parameters()) and not program.state_dict()
            kept = kinds(program.graph)
            assert kept.count("aten::conv2d") == 4 and not {"aten::batch_norm", "aten::dropout"} & set(kept)
        assert 'GetAttr[name="runs"]' in str(frozen.graph) and str(frozen.graph).count("GetAttr") == 2
        exact = torch.jit.freeze(torch.jit.script(net), optimize_numerics=False)
        exact.runs = 0
        assert torch.equal(exact(x), wanted) and kinds(exact.graph).count("aten::batch_norm") == 3
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, state[name])


class Twice(nn.Module):
    """Uses of a convolution that leave it as it is."""

    def __init__(self, way):
        super().__init__()
        self.way, self.conv, self.norm = way, nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x):
        y = self.conv(x)
        if self.way == "also taken":
            return self.norm(y) + y
        if self.way == "called again":
            return self.norm(y) + self.conv(x + 1)
        if self.way == "read":
            return self.norm(y) + self.conv.weight.sum()
        if self.way == "in a comprehension":
            return self.norm(y) + torch.stack([self.conv(z) for z in [x, x + 1]]).sum(0)
        if self.way == "sometimes":
            if bool(x.sum() > 0):
                y = self.norm(y)
            return y
        return self.norm(y)


@pytest.mark.parametrize(
    "way",
    ["also taken", "called again", "read", "in a comprehension", "sometimes", "norm read", "hook", "folded"],
)
def test_what_else_takes_the_result_keeps_it(way):
    torch.manual_seed(1)
    net, x = trained(Twice(way)), torch.randn(2, 2, 3, 3)
    if way == "hook":
        net.norm.register_forward_hook(double)
    scripted = torch.jit.script(net)
    frozen = torch.jit.freeze(scripted, ["norm"] if way == "norm read" else None)
    torch.testing.assert_close(frozen(x), scripted(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(frozen(-x), scripted(-x), rtol=1e-4, atol=1e-4)
    assert ("aten::batch_norm" in str(frozen.graph)) is (way != "folded")


def double(self, input: tuple[Tensor], output: Tensor):
    return output * 2


class Writes(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.a, self.b = way, torch.arange(6), torch.arange(3.0)
        self.view, self.items, self.pair = self.a.view(2, 3), [1, 2], (torch.ones(2), "text")

    def forward(self, x):
        if self.way == "view":
            rows = self.a.view(2, 3)
            rows[0][0] += 10
        elif self.way == "alias":
            self.view.add_(1)
        elif self.way == "list":
            self.items.append(1)
        elif self.way == "held":
            held = (self.items, [3])
            held[0].append(4)
        elif self.way == "inside":
            self.pair[0][0] = 3
        elif self.way == "fork":
            torch.jit.wait(torch.jit.fork(torch.relu, self.b))
        elif self.way == "out":
            torch.add(x, x, out=self.b)
        return self.a.sum() + self.b.sum() + len(self.items) + x.sum() + self.pair[0].sum()


@pytest.mark.parametrize(
    "way, kept",
    [
        ("none", ""), ("view", "a"), ("alias", "a view"), ("list", "items"), ("held", "items"),
        ("inside", ""), ("fork", "b"), ("out", "b"),
    ],
)  # fmt: skip
def test_what_methods_write_to_stays(way, kept):
    wanted, scripted = torch.jit.script(Writes(way)).eval(), torch.jit.script(Writes(way)).eval()
    frozen, x = torch.jit.freeze(scripted), torch.ones(3)
    names = ["a", "b", "view", "items", "pair"]
    assert {n for n in names if hasattr(frozen, n)} == set(kept.split())
    for _ in range(2):
        assert torch.equal(frozen(x), wanted(x))


class Overlapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.arange(6)
        self.held = [self.a, torch.ones(1)]

    def forward(self, x):
        self.held[0][0] += 1
        return self.a.sum()


class Itself(nn.Module):
    def forward(self, x):
        return self


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, inp: Any) -> Any:
        pass


class Same(nn.Module):
    def forward(self, inp: Any) -> Any:
        return inp


class Chooses(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Same()])

    def forward(self, x: Tensor, i: int) -> Any:
        part: Layer = self.parts[i]
        return part.forward(x)


@pytest.mark.parametrize(
    "module, words",
    [
        (Overlapping(), "module contains attributes values that overlaps"),
        (Itself(), "attempted to freeze a module that return itself"),
        (Chooses(), "Freezing modules containing prim::ModuleContainerIndex is not supported"),
    ],
)
def test_what_cannot_be_frozen_is_refused(module, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.freeze(torch.jit.script(module).eval())


def test_what_is_preserved_stays_and_works():
    torch.manual_seed(2)
    net, x = trained(Net()), torch.randn(1, 3, 4, 4)
    scripted = torch.jit.script(net)
    frozen = torch.jit.freeze(scripted, ["features", "first.scale"])
    assert torch.allclose(frozen.features(x), scripted.features(x), atol=1e-4)
    assert frozen.first.scale == 2.0 and not hasattr(frozen, "second")
    assert not hasattr(frozen.first, "conv") and not hasattr(frozen.first, "norm")
    frozen.first.scale = 0.0
    assert torch.allclose(frozen.features(x), scripted.first.shortcut(x), atol=1e-4)
    assert torch.equal(reloaded(frozen).features(x), frozen.features(x))
    with pytest.raises(RuntimeError, match="'absent' to preserve"):
        torch.jit.freeze(scripted, ["absent"])


def test_memory_is_shared_and_optimize_for_inference_freezes_once():
    linear = nn.Linear(3, 3).eval()
    frozen, x = torch.jit.freeze(torch.jit.script(linear)), torch.randn(2, 3)
    with torch.no_grad():
        linear.weight[0, 0] += 5
        assert torch.equal(frozen(x), linear(x)) and not frozen(x).requires_grad
    assert torch.jit.optimize_for_inference(frozen) is frozen


def test_traced_children_named_by_numbers_are_found():
    block = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    model = nn.Sequential(block, nn.Flatten(), nn.Linear(8, 2)).eval()
    x = torch.randn(3, 1, 4, 4)
    traced = torch.jit.trace(model, x)
    for frozen in (torch.jit.freeze(traced), torch.jit.optimize_for_inference(traced)):
        torch.testing.assert_close(frozen(x), model(x))
        assert not list(frozen.named_modules())[1:] and not list(frozen.parameters())
        file = io.BytesIO()
        torch.jit.save(frozen, file)
        file.seek(0)
        torch.testing.assert_close(torch.jit.load(file)(x), model(x))
