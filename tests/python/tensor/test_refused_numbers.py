"""Numbers of more than 64 bits, storages that sparse tensors lack, labels of losses: PyTorch's exceptions."""

import pytest

import rushlight
from rushlight._command.names import is_aliased

BIG = 10**30


def _outcome(torch, call):
    try:
        return call(torch)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0].rstrip('"')


def _same_outcomes(calls):
    torch = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("PyTorch is the oracle")
    for call in calls:
        wanted = _outcome(torch, call)
        assert isinstance(wanted, tuple), wanted
        assert _outcome(rushlight, call) == wanted


def test_scalars_beyond_64_bits():
    _same_outcomes(
        [
            lambda lib: lib.ones(2) + BIG,
            lambda lib: -BIG * lib.ones(2),
            lambda lib: lib.ones(2) == BIG,
            lambda lib: lib.full((2,), BIG),
            lambda lib: lib.arange(-BIG),
            lambda lib: lib.ones(2).masked_fill(lib.tensor([True, False]), BIG),
            lambda lib: lib._foreach_add([lib.ones(2)], [BIG]),
            lambda lib: lib.scalar_tensor(10**400),
        ]
    )


def test_sizes_beyond_64_bits():
    _same_outcomes(
        [
            lambda lib: lib.zeros(2, BIG),
            lambda lib: lib.zeros((2, 3, -BIG)),
            lambda lib: lib.ones(2).reshape((2, BIG)),
            lambda lib: lib.ones(2).as_strided((2,), (BIG,)),
        ]
    )


def test_elements_beyond_64_bits():
    _same_outcomes(
        [
            lambda lib: lib.tensor(2**63),
            lambda lib: lib.tensor([2**63], dtype=lib.int32),
            lambda lib: lib.tensor([BIG], dtype=lib.uint8),
            lambda lib: lib.tensor([BIG], dtype=lib.uint64),
        ]
    )
    assert rushlight.tensor([2**63], dtype=rushlight.uint64).tolist() == [2**63]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_sparse_tensors_have_no_storage(layout):
    def call(name):
        def run(lib):
            block = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
            return getattr(lib.eye(4).to_sparse(layout=getattr(lib, layout), **block), name)()

        return run

    _same_outcomes([call(name) for name in ("untyped_storage", "data_ptr", "share_memory_", "is_shared")])


def test_labels_that_are_no_classes():
    def loss(name, shape, dtype):
        def run(lib):
            target = lib.zeros(shape[:1] + shape[2:], dtype=getattr(lib, dtype))
            return getattr(lib.nn.functional, name)(lib.ones(shape), target)

        return run

    names, shapes = ("nll_loss", "cross_entropy"), ((3, 4), (3, 4, 5), (3, 4, 5, 5))
    dtypes = ("float32", "int32", "bool")
    _same_outcomes([loss(name, shape, dtype) for name in names for shape in shapes for dtype in dtypes])
    for shape in shapes:
        assert loss("nll_loss", shape, "uint8")(rushlight) == -1


def test_special_functions_write_to_nothing():
    assert [name for name in dir(rushlight.special) if name.endswith("_") and not name.startswith("_")] == []
    assert rushlight.nn.functional.relu_(rushlight.tensor(-1.0)) == 0
