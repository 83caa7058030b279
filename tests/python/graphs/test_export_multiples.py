"""Sizes without a name that a program takes only if a number divides them, as PyTorch exports them."""

import pytest

import rushlight as rl
from rushlight.export import Dim, export, load, save

AUTO, DYNAMIC = Dim.AUTO, Dim.DYNAMIC


def module(function):
    return type("Program", (rl.nn.Module,), {"forward": function})()


def by_rows(self, x):
    return x.view(-1, 8).sum(1)


def halves(self, x):
    return x.unflatten(1, (2, -1)).flatten(0, 1)


def patches(self, x):
    b, c, h, w = x.shape
    return x.view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)


def rotated(self, x):
    a, b = x.view(x.shape[0], -1, 2).unbind(-1)
    return rl.stack([-b, a], -1).flatten(1)


def added(self, x, y):
    return x.view(-1, 4)[:, :2] + y.view(-1, 2)


def equal(self, x, y):
    return x.view(-1, 2) + y.view(-1, 2)


CASES = {
    "rows": (by_rows, [(4, 6)], [[(12, 6)], [(8, 6)]], [(6, 6)]),
    "halves": (halves, [(2, 6)], [[(3, 8)], [(3, 10)]], [(3, 7)]),
    "patches": (patches, [(2, 3, 8, 16)], [[(3, 3, 12, 8)]], [(3, 3, 10, 8)]),
    "rotated": (rotated, [(2, 6)], [[(3, 8)], [(3, 10)]], [(2, 5)]),
    "large": (halves, [(2, 1024)], [[(3, 8)], [(3, 2050)]], [(3, 7)]),
    "two": (added, [(8,), (4,)], [[(16,), (8,)]], [(12,), (8,)]),
    "equal": (equal, [(8,), (8,)], [[(16,), (16,)]], [(12,), (8,)]),
}


def tensors(shapes):
    return tuple(rl.randn(shape) for shape in shapes)


def dynamic(shapes, hint):
    return tuple({d: hint for d in range(len(shape))} for shape in shapes)


@pytest.mark.parametrize("name", CASES)
def test_sizes_change_by_as_many_as_the_program_takes(name, tmp_path):
    function, example, others, refused = CASES[name]
    shapes = dynamic(example, AUTO)
    if name == "rows":
        shapes = ({0: AUTO},)
    if name == "patches":
        shapes = ({0: AUTO, 2: AUTO, 3: AUTO},)
    program = export(module(function), tensors(example), dynamic_shapes=shapes)
    save(program, tmp_path / "program.pt2")
    ways = program, load(tmp_path / "program.pt2"), program.run_decompositions()
    for runs in [way.module() for way in ways]:
        for given in (tensors(shapes) for shapes in (example, *others)):
            assert rl.equal(runs(*given), function(None, *given))
        with pytest.raises(AssertionError, match="Guard failed"):
            runs(*tensors(refused))


def test_an_example_of_one_multiple_and_asked_ends():
    program = export(module(by_rows), tensors([(8, 6)]), dynamic_shapes=({0: AUTO(min=4, max=100)},))
    runs = program.module()
    assert runs(rl.ones(100, 6)).shape == (75,)
    for rows in (0, 104):
        with pytest.raises(AssertionError, match="Guard failed"):
            runs(rl.ones(rows, 6))


def test_a_size_that_has_to_change_may_do_so_by_several():
    program = export(module(by_rows), tensors([(4, 6)]), dynamic_shapes=({0: DYNAMIC},))
    assert program.module()(rl.ones(12, 6)).shape == (9,)


@pytest.mark.parametrize("name", ("halves", "rotated", "equal"))
def test_programs_of_pytorch_are_decomposed_at_these_sizes(name, tmp_path):
    torch = pytest.importorskip("torch")
    if torch is rl:
        pytest.skip("PyTorch itself writes the file")
    function, example, others, _ = CASES[name]
    if name == "rotated":

        def function(self, x):
            a, b = x.view(x.shape[0], -1, 2).unbind(-1)
            return torch.stack([-b, a], -1).flatten(1)

    theirs = type("Program", (torch.nn.Module,), {"forward": function})()
    shapes = dynamic(example, torch.export.Dim.AUTO)
    given = tuple(torch.randn(shape) for shape in example)
    path = tmp_path / "program.pt2"
    torch.export.save(torch.export.export(theirs, given, dynamic_shapes=shapes), path)
    runs = load(path).run_decompositions().module()
    for shape in others:
        given = tuple(torch.randn(s) for s in shape)
        ours = runs(*(rl.from_numpy(x.numpy()) for x in given))
        assert rl.equal(ours, rl.from_numpy(theirs(*given).numpy()))
