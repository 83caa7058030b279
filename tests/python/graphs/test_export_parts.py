"""Tensors split by numbers of the data: the graph checks that these are sizes and make up the whole."""

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight.export import Dim, export, load, save


def module(function, library=torch):
    return type("Program", (library.nn.Module,), {"forward": function})()


def by_list(self, x, counts):
    return [part.sum(0) for part in x.split(counts.tolist())]


def by_columns(self, x, counts):
    a, b = counts.tolist()
    one, other = x.split_with_sizes([a, b], dim=1)
    return one.exp(), other.sin()


def told(self, x, counts):
    sizes = counts.tolist()
    for size in sizes:
        torch._check(size >= 0)
    torch._check(sum(sizes) == x.shape[0])
    return torch.split(x, sizes)


CASES = {
    "two": (by_list, (5, 2), [2, 3], [([1, 4], 5), ([0, 5], 5)]),
    "three": (by_list, (5, 2), [2, 2, 1], [([1, 4, 0], 5), ([3, 1, 1], 5)]),
    "columns": (by_columns, (2, 6), [2, 4], [([5, 1], 6)]),
    "told": (told, (6, 2), [2, 3, 1], [([1, 4, 1], 6)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", (False, True))
def test_split_by_numbers_of_the_data(name, dynamic, tmp_path):
    function, shape, counts, others = CASES[name]
    dim = 1 if name == "columns" else 0
    shapes = ({dim: Dim.AUTO}, {}) if dynamic else None
    program = export(module(function), (torch.randn(shape), torch.tensor(counts)), dynamic_shapes=shapes)
    save(program, tmp_path / "program.pt2")
    if dynamic:
        others = [*others, ([n + 2 for n in counts], sum(counts) + 2 * len(counts))]
    for run in (
        program.module(),
        program.run_decompositions().module(),
        load(tmp_path / "program.pt2").module(),
    ):
        for sizes, whole in others:
            x = torch.randn([whole if d == dim else n for d, n in enumerate(shape)])
            given = x, torch.tensor(sizes)
            for ours, expected in zip(run(*given), function(None, *given), strict=True):
                assert torch.equal(ours, expected)
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            run(torch.randn(shape), torch.tensor([n + 1 for n in counts]))


def test_ranges_are_those_of_sizes():
    given = torch.randn(5, 2), torch.tensor([2, 3])
    ranges = export(module(by_list), given).range_constraints
    assert [r.lower for r in ranges.values()] == [0, 0]


def test_the_file_runs_in_pytorch(tmp_path):
    if is_aliased():
        pytest.skip("PyTorch reads the file")
    oracle = pytest.importorskip("torch")
    path = tmp_path / "program.pt2"
    save(export(module(by_list), (torch.ones(5, 2), torch.tensor([2, 3]))), path)
    found = oracle.export.load(path).module()(oracle.ones(5, 2), oracle.tensor([1, 4]))
    assert [part.tolist() for part in found] == [[1, 1], [4, 4]]
