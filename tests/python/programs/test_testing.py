"""assert_close and make_tensor against PyTorch's: verdicts, messages, values; the default random stream."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def _t(lib, values, dtype=None):
    return lib.tensor(values, dtype=None if dtype is None else getattr(lib, dtype))


PAIRS = {
    "equal": lambda lib: (_t(lib, [1.0, 2.0]), _t(lib, [1.0, 2.0])),
    "close": lambda lib: (_t(lib, [1.0]), _t(lib, [1.0 + 1e-7])),
    "far": lambda lib: (_t(lib, [1.0, 2.0]), _t(lib, [1.0, 2.1])),
    "shape": lambda lib: (_t(lib, [1.0]), _t(lib, [1.0, 2.0])),
    "dtype": lambda lib: (_t(lib, [1.0]), _t(lib, [1])),
    "scalar tensors": lambda lib: (_t(lib, 1.0), _t(lib, 2.0)),
    "ints": lambda lib: (1, 2),
    "floats": lambda lib: (1.0, 2.0),
    "complex numbers": lambda lib: (1j, 2j),
    "int and float": lambda lib: (1, 1.0),
    "bools": lambda lib: (True, False),
    "none": lambda lib: (None, 1),
    "both none": lambda lib: (None, None),
    "in a list": lambda lib: ([_t(lib, 1.0), _t(lib, 2.0)], [_t(lib, 1.0), _t(lib, 5.0)]),
    "nested": lambda lib: ([[{"a": 1}]], [[{"a": 2}]]),
    "keys": lambda lib: ({"a": 1}, {"b": 1}),
    "lengths": lambda lib: ([1], [1, 2]),
    "text": lambda lib: ("a", "a"),
    "nan": lambda lib: (_t(lib, [float("nan")]), _t(lib, [float("nan")])),
    "int tensors": lambda lib: (_t(lib, [1, 2]), _t(lib, [1, 3])),
    "bool tensors": lambda lib: (_t(lib, [True]), _t(lib, [False])),
    "complex tensors": lambda lib: (_t(lib, [1 + 1j]), _t(lib, [1 + 2j])),
    "zeros expected": lambda lib: (lib.ones(2, 2), lib.zeros(2, 2)),
    "half": lambda lib: (_t(lib, [1.0, 2.0], "float16"), _t(lib, [1.0, 2.1], "float16")),
    "tensor and number": lambda lib: (_t(lib, 1), 1),
    "stride": lambda lib: (lib.ones(2, 3), lib.ones(3, 2).t()),
}


@pytest.mark.parametrize("name", PAIRS)
def test_verdicts_and_messages(name):
    outcomes = []
    for lib in (rushlight, torch):
        try:
            lib.testing.assert_close(*PAIRS[name](lib))
            outcomes.append(None)
        except (AssertionError, TypeError) as e:
            outcomes.append((type(e), str(e).replace("rushlight.", "torch.")))
    assert outcomes[0] == outcomes[1]


def test_options():
    a, b = rushlight.tensor([1.0]), rushlight.tensor([1.5])
    check = rushlight.testing.assert_close
    check(a, b, rtol=0.5, atol=0)
    check(a, a.double(), check_dtype=False)
    nan = rushlight.tensor([float("nan")])
    check(nan, nan, equal_nan=True)
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted"):
        check(a, b, rtol=0.1)
    with pytest.raises(AssertionError, match="^mine$"):
        check(a, b, msg="mine")
    with pytest.raises(AssertionError, match="^see: Tensor-likes"):
        check(a, b, msg=lambda text: "see: " + text)
    with pytest.raises(AssertionError, match="stride"):
        check(rushlight.ones(2, 3), rushlight.ones(3, 2).t(), check_stride=True)


TENSORS = {
    "floats": ((3,), {"dtype": "float32"}),
    "ints": ((2, 2), {"dtype": "int32"}),
    "bools": ((3,), {"dtype": "bool"}),
    "complex": ((2,), {"dtype": "complex64"}),
    "uint8": ((3,), {"dtype": "uint8"}),
    "range": ((5,), {"dtype": "int64", "low": 2, "high": 5}),
    "spread": ((4,), {"dtype": "float64", "noncontiguous": True}),
    "no zeros": ((50,), {"dtype": "int8", "low": 0, "high": 3, "exclude_zero": True}),
    "one value": ((2,), {"dtype": "float32", "low": 3, "high": 3}),
}


@pytest.mark.parametrize("name", TENSORS)
def test_make_tensor(name):
    shape, options = TENSORS[name]
    made = []
    for lib in (rushlight, torch):
        lib.manual_seed(1)
        made.append(
            lib.testing.make_tensor(
                shape, device="cpu", **{**options, "dtype": getattr(lib, options["dtype"])}
            )
        )
    assert made[0].tolist() == made[1].tolist() and made[0].stride() == made[1].stride()


MISTAKES = [
    {"dtype": "float32", "low": 3, "high": 1},
    {"dtype": "bool", "low": 3, "high": 5},
    {"dtype": "int8", "low": 300, "high": 500},
    {"dtype": "int8", "requires_grad": True},
    {"dtype": "int8", "low": float("nan")},
]


@pytest.mark.parametrize("options", MISTAKES)
def test_make_tensor_messages(options):
    texts = []
    for lib in (rushlight, torch):
        with pytest.raises(ValueError) as info:
            lib.testing.make_tensor(3, device="cpu", **{**options, "dtype": getattr(lib, options["dtype"])})
        texts.append(str(info.value))
    assert texts[0] == texts[1]


def test_random_state():
    rushlight.manual_seed(3)
    assert rushlight.initial_seed() == 3
    state = rushlight.get_rng_state()
    first = rushlight.rand(3).tolist()
    with rushlight.random.fork_rng():
        rushlight.manual_seed(9)
        rushlight.rand(5)
    second = rushlight.rand(3).tolist()
    rushlight.set_rng_state(state)
    assert rushlight.rand(3).tolist() == first and rushlight.rand(3).tolist() == second
    assert rushlight.seed() != rushlight.seed()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_an_interval_of_one_number_warns(dtype):
    dtype = getattr(rushlight, dtype)
    with pytest.warns(FutureWarning, match="`low==high`"):
        made = rushlight.testing.make_tensor(3, dtype=dtype, device="cpu", low=2, high=2)
    part = rushlight.view_as_real(made) if dtype.is_complex else made
    assert (part == 2).all()
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        rushlight.testing.make_tensor(3, dtype=rushlight.int32, device="cpu", low=2, high=2)
    with pytest.raises(ValueError, match="only supports"):
        rushlight.testing.make_tensor(3, dtype=dtype, device="cpu", low=10**400, high=10**401)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr", "bsc"])
def test_parts_of_sparse_tensors_are_compared(kind):
    def told(t):
        dense = t.tensor([[0.0, 1.0], [2.0, 0.0]])

        def sparse(values):
            blocks = (1, 1) if kind.startswith("b") else None
            return values.to_sparse(layout=getattr(t, f"sparse_{kind}"), blocksize=blocks)

        t.testing.assert_close(sparse(dense), sparse(dense + 0))
        t.testing.assert_close(sparse(dense), dense, check_layout=False)
        errors = []
        for other in (dense + 1, dense * 2, dense * t.tensor([[1.0, 1.0], [0.0, 0.0]]), dense.flip(0)):
            with pytest.raises(AssertionError) as error:
                t.testing.assert_close(sparse(dense), sparse(other))
            errors.append(str(error.value))
        return errors

    assert told(rushlight) == told(torch)
