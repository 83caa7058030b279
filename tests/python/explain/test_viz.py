"""Pictures: placed without overlaps, valid XML, complete."""

import base64
import itertools
import re
import time
import zlib
from xml.etree import ElementTree

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz._layout import place

SVG = "{http://www.w3.org/2000/svg}"


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(4, 8)
        self.back = nn.Linear(8, 4)

    def forward(self, x):
        return x + self.back(self.wide(x).relu())


def make_model():
    return nn.Sequential(nn.Linear(3, 4), Residual(), Residual(), nn.Linear(4, 2))


def rectangles(svg):
    root = ElementTree.fromstring(svg)
    return [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect")]


def overlap(a, b):
    return all(a[i] < b[i] + b[i + 2] and b[i] < a[i] + a[i + 2] for i in (0, 1))


@pytest.mark.parametrize("saved", [False, True])
def test_graph(saved):
    model = make_model()
    picture = viz.graph(model(torch.randn(5, 3)).sum(), model, saved=saved)
    texts = ElementTree.fromstring(picture.svg).itertext()
    assert {name for name, _ in model.named_parameters()} < set(texts)
    assert ("mat1: float32 [5, 3]" in picture.svg) == saved
    boxes = rectangles(picture.svg)
    assert len(boxes) == len(picture.boxes)
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    assert picture.svg.count("marker-end") == len(picture.arrows)
    assert picture.dot.count("->") == len(picture.arrows)


def test_graph_of_what_has_none():
    with pytest.raises(ValueError, match="no output has a graph"):
        viz.graph(torch.ones(2))


def test_graph_after_backward_says_what_was_freed():
    loss = torch.randn(2, requires_grad=True).exp().sum()
    loss.backward()
    assert "result: freed" in viz.graph(loss, saved=True).svg


def test_modules():
    picture = viz.modules(make_model(), torch.randn(5, 3))
    assert picture.arrows == [
        ("", "0"),
        ("", "1"),
        ("1", "1.wide"),
        ("1", "1.back"),
        ("", "2"),
        ("2", "2.wide"),
        ("2", "2.back"),
        ("", "3"),
    ]
    assert picture.boxes["1.wide"].lines == ["wide: Linear   [5, 8]   40 parameters"]
    boxes = rectangles(picture.svg)
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    with pytest.raises(TypeError, match="not both"):
        viz.modules(nn.Linear(1, 1), torch.ones(1), input=torch.ones(1))


def test_save(tmp_path):
    picture = viz.modules(nn.Linear(3, 2), torch.randn(1, 3))
    for name in ("a.svg", "a.dot", "a.gv"):
        picture.save(tmp_path / name)
    assert (tmp_path / "a.svg").read_text() == picture.svg == picture._repr_svg_()
    assert (tmp_path / "a.gv").read_text() == picture.dot
    with pytest.raises(ValueError, match=r"must end in \.svg, \.dot or \.gv"):
        picture.save(tmp_path / "a.png")


def test_places_of_a_diamond():
    points, paths = place("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], dict.fromkeys("abcd", 10))
    assert [points[n][1] for n in "abcd"] == [0, 1, 2, 3]
    assert [layer for _, layer in paths[3]] == [0, 1, 2, 3]
    assert all(paths[3][i][0] != points[n][0] for i, n in ((1, "b"), (2, "c")))


def test_notebooks_show_tensors():
    html = torch.tensor([[1.0, -2.0], [float("nan"), 0.0]], requires_grad=True)._repr_html_()
    assert (
        "float32 [2, 2] &middot; -2 to 1, mean -0.3333 &middot; 1 not finite &middot; requires grad" in html
    )
    assert 'img width="16" height="16"' in html and "[ 1., -2.]" in html and "<details" not in html
    assert f'img width="{34 * 8}" height="{40 * 8}"' in torch.randn(200, 100)._repr_html_()
    assert "<img" not in torch.arange(6).reshape(2, 3)._repr_html_()
    assert "tensor(3.5000)" in torch.tensor(3.5)._repr_html_()
    assert "tensor(7)" in torch.tensor(7)._repr_html_()
    assert torch.empty(0)._repr_html_() is not None
    assert torch.empty(2, device="meta")._repr_html_() is None
    assert torch.eye(2).to_sparse()._repr_html_() is None


def test_pictures_of_matrices_have_the_matrix_colours():
    html = torch.tensor([[1.0, 0.0, -1.0]])._repr_html_()
    png = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    header, colours, pixels = png[16:24], png[41:], png[png.index(b"IDAT") + 4 :]
    assert header == b"\0\0\0\x03\0\0\0\x01"
    row = zlib.decompress(pixels)[1:]
    assert [tuple(colours[3 * i : 3 * i + 3]) for i in row] == [(255, 0, 0), (255, 255, 255), (0, 0, 255)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(1000, 1000),
        lambda: torch.zeros(20000, 2000),
        lambda: torch.zeros(30_000_000),
        lambda: torch.randn(3, 4, 5, 6, 7),
        lambda: torch.zeros([6] * 8),
        lambda: torch.randn(2, 2, 500_000),
        lambda: torch.randn(6, 6, 6, 6, dtype=torch.complex64),
        lambda: torch.randn(3, 5).expand(1 << 40, 3, 5),
        lambda: torch.full((50, 50), float("nan"), dtype=torch.bfloat16),
        lambda: nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(500))),
        lambda: nn.Transformer(16, 2, 8, 8, 16),
    ],
)
def test_notebooks_show_anything_at_once(make):
    value, seconds = make(), []
    for _ in range(3):
        start = time.process_time()
        html = value._repr_html_()
        seconds.append(time.process_time() - start)
    assert len(html) <= 20_000 and min(seconds) <= 0.02


def test_notebooks_show_modules():
    html = make_model()._repr_html_()
    ElementTree.fromstring(html.replace(" open", ""))
    assert html.count("<details") == 3
    assert "in_features=4, out_features=8" in html
    assert "98 parameters" in nn.Sequential(nn.Linear(6, 14))._repr_html_()
