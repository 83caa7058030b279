"""The repr of tensors, character for character PyTorch's."""

import pytest

import rushlight

VALUES = {
    "floats": lambda lib: lib.tensor([1.0, 2.0]),
    "fixed": lambda lib: lib.tensor([0.1, 1000.5, 3.0]),
    "not finite": lambda lib: lib.tensor([1.5, float("nan"), float("inf"), -float("inf")]),
    "all nan": lambda lib: lib.tensor([float("nan")] * 2),
    "small": lambda lib: lib.tensor([1e-5, 1.0]),
    "large": lambda lib: lib.tensor([1e9, 1.0]),
    "edge of range": lambda lib: lib.tensor([99999999.0, 1.0e8]),
    "denormal": lambda lib: lib.tensor([1e-40]),
    "minus zero": lambda lib: lib.tensor([-0.0, 0.0]),
    "ints": lambda lib: lib.tensor([1, -1000000000]),
    "bools": lambda lib: lib.tensor([True, False]),
    "scalar": lambda lib: lib.tensor(1.0),
    "scalar int": lambda lib: lib.tensor(3),
    "scalar bool": lambda lib: lib.tensor(True),
    "matrix": lambda lib: lib.tensor([[1.0, -2.0], [3.0, 4.25]]),
    "cube": lambda lib: lib.arange(24.0).reshape(2, 3, 4),
    "five dims": lambda lib: lib.zeros(1, 2, 1, 2, 1),
    "wraps": lambda lib: lib.arange(40.0),
    "wraps in rows": lambda lib: lib.arange(150).reshape(3, 50),
    "summary": lambda lib: lib.arange(2000),
    "summary matrix": lambda lib: lib.arange(10000.0).reshape(100, 100),
    "summary one way": lambda lib: lib.arange(2000.0).reshape(2, 1000),
    "empty": lambda lib: lib.empty(0),
    "empty ints": lambda lib: lib.empty(2, 0, dtype=lib.int64),
    "double": lambda lib: lib.ones(2, dtype=lib.float64),
    "half": lambda lib: lib.ones(2, dtype=lib.float16) / 3,
    "bfloat16": lambda lib: lib.ones(2, dtype=lib.bfloat16) / 3,
    "uint16": lambda lib: lib.ones(2, dtype=lib.uint16),
    "int32": lambda lib: lib.ones(2, dtype=lib.int32),
    "complex": lambda lib: lib.tensor([1 + 2j, 3 - 4.5j]),
    "complex wide": lambda lib: lib.tensor([1e10 + 2j, 3 - 4.5j], dtype=lib.complex128),
    "complex nan": lambda lib: lib.tensor([1.0 + 0j, complex(float("nan"), float("nan"))]),
    "complex scalar": lambda lib: lib.tensor(1j),
    "requires grad": lambda lib: lib.ones(2, requires_grad=True),
    "grad_fn": lambda lib: lib.ones(2, requires_grad=True) * 2,
    "grad_fn of view": lambda lib: lib.ones(2, requires_grad=True)[0],
    "many suffixes": lambda lib: lib.zeros(3, 30, dtype=lib.float64, requires_grad=True).exp(),
    "meta": lambda lib: lib.ones(2, 3, device="meta", dtype=lib.float16),
    "parameter": lambda lib: lib.nn.Parameter(lib.ones(2)),
    "subclass": lambda lib: lib.ones(2).as_subclass(type("Sub", (lib.Tensor,), {})),
}


@pytest.fixture(autouse=True)
def _restore_options():
    yield
    rushlight.set_printoptions(profile="default")


@pytest.mark.parametrize("name", VALUES)
def test_repr_is_pytorchs(torch, name):
    assert repr(VALUES[name](rushlight)) == repr(VALUES[name](torch))


OPTIONS = [
    {"precision": 2, "sci_mode": True},
    {"profile": "full", "sci_mode": False},
    {"profile": "short"},
    {"profile": "a profile of later versions"},
    {"linewidth": 40, "edgeitems": 1, "threshold": 5},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["floats", "large", "cube", "summary matrix", "complex"])
def test_options(torch, name, options):
    try:
        torch.set_printoptions(**options)
        expected = repr(VALUES[name](torch))
    finally:
        torch.set_printoptions(profile="default")
    rushlight.set_printoptions(**options)
    assert repr(VALUES[name](rushlight)) == expected


def test_options_come_back():
    from rushlight import _tensor_str

    with _tensor_str.printoptions(precision=1):
        assert str(rushlight.tensor([0.25])) == "tensor([0.2])"
    assert str(rushlight.tensor([0.25])) == "tensor([0.2500])"


def test_default_dtype_decides_what_is_said(torch):
    texts = []
    for lib in (rushlight, torch):
        lib.set_default_dtype(lib.float64)
        try:
            texts.append([repr(lib.ones(2)), repr(lib.ones(2, dtype=lib.float32)), repr(lib.tensor(1j))])
        finally:
            lib.set_default_dtype(lib.float32)
    assert texts[0] == texts[1]
