"""What a write may share with what is read, what new memory holds, and which parts are no views."""

import warnings

import pytest

import rushlight as torch
from rushlight.nn import functional as F

INDEX = torch.tensor([0, 1])
ROWS = torch.zeros(2, 3, dtype=torch.int64)
WRITES = {
    "index_add_": lambda x: x.index_add_(0, INDEX, torch.ones(2, 3)),
    "index_copy_": lambda x: x.index_copy_(0, INDEX, torch.ones(2, 3)),
    "scatter_": lambda x: x.scatter_(0, ROWS, torch.ones(2, 3)),
    "scatter_add_": lambda x: x.scatter_add_(0, ROWS, torch.ones(2, 3)),
    "scatter_reduce_": lambda x: x.scatter_reduce_(0, ROWS, torch.ones(2, 3), "sum"),
    "put_": lambda x: x.put_(INDEX, torch.ones(2)),
    "masked_scatter_": lambda x: x.masked_scatter_(x == 0, torch.ones(9)),
}


@pytest.mark.parametrize("name", WRITES)
def test_expanded_targets_are_refused(name):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        WRITES[name](torch.zeros(1, 3).expand(3, 3))
    WRITES[name](torch.zeros(3, 3))


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[1:4].index_add_(0, INDEX, y[:2]),
        lambda y: y[1:].index_copy_(0, INDEX, y[:2]),
        lambda y: y[1:].scatter_(0, torch.zeros(5, dtype=torch.int64), y[:5]),
        lambda y: y.scatter_add_(0, torch.zeros(6, dtype=torch.int64), y),
        lambda y: y[1:].put_(INDEX, y[:2]),
    ],
)
def test_targets_that_share_memory_with_an_operand_are_refused(write):
    y = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        write(y)
    assert y.tolist() == [0, 1, 2, 3, 4, 5]


def test_expanded_targets_that_older_programs_fill():
    x = torch.zeros(3).expand(2, 3)
    mask = torch.tensor([[True, False, False], [False, False, True]])
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
        x.masked_fill_(mask, 7)
    assert x.tolist() == [[7, 0, 7]] * 2
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors is deprecated"):
        x.index_fill_(1, torch.tensor([1]), 2)
    assert x.tolist() == [[7, 2, 7]] * 2
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors is deprecated"):
        x[torch.tensor([0])] = torch.tensor([1.0, 2, 3])
    assert x.tolist() == [[1, 2, 3]] * 2


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(False)


FACTORIES = {
    "empty": lambda dtype: torch.empty(5, dtype=dtype),
    "empty_like": lambda dtype: torch.empty_like(torch.zeros(2, 3, dtype=dtype).t()),
    "empty_strided": lambda dtype: torch.empty_strided((2, 3), (1, 2), dtype=dtype),
    "empty_permuted": lambda dtype: torch.empty_permuted((2, 3), (1, 0), dtype=dtype),
    "new_empty": lambda dtype: torch.zeros(1, dtype=dtype).new_empty(2, 3),
    "resize_": lambda dtype: torch.zeros(0, dtype=dtype).resize_(4),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_deterministic_mode_fills_new_memory(name, deterministic):
    make = FACTORIES[name]
    assert make(torch.float32).isnan().all() and make(torch.bfloat16).isnan().all()
    assert make(torch.complex64).isnan().all()
    assert make(torch.bool).all()
    for dtype in (torch.uint8, torch.int32, torch.int64):
        assert make(dtype).eq(torch.iinfo(dtype).max).all()


def test_what_was_written_survives_a_resize(deterministic):
    grown = torch.tensor([1.0, 2.0]).resize_(4)
    assert grown[:2].tolist() == [1, 2] and grown[2:].isnan().all()


def test_filling_can_be_switched_off(deterministic):
    settings = torch.utils.deterministic
    assert settings.fill_uninitialized_memory is True
    settings.fill_uninitialized_memory = False
    torch.zeros(1000)  # leaves a block without NaN to the next tensor
    assert not torch.empty(1000).isnan().all()
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        settings.fill_uninitialized_memory = 1
    with pytest.raises(TypeError, match="'mode' \\(position 1\\) must be bool, not int"):
        torch.use_deterministic_algorithms(1)


@pytest.mark.parametrize(
    "split",
    [
        lambda x: torch.unsafe_split(x, 2),
        lambda x: torch.unsafe_chunk(x, 2),
        lambda x: torch.unsafe_split_with_sizes(x, [2, 2]),
    ],
)
def test_unsafe_splits_count_writes_apart(split):
    x = torch.arange(4.0)
    first, second = split(x)
    first.add_(1)
    assert (x._version, first._version, second._version) == (0, 1, 0)
    assert not first._is_view() and x.tolist() == [1, 2, 2, 3]

    leaf = torch.arange(4.0, requires_grad=True)
    first, second = split(leaf * 1)
    (first.mul_(3) + second).sum().backward()
    assert leaf.grad.tolist() == [3, 3, 1, 1]


def test_older_forms_of_products():
    m, a, v = torch.ones(2, 2), torch.full((2, 2), 2.0), torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.addmm(2, m, 3, a, a).tolist() == [[26, 26], [26, 26]]
        assert torch.addmm(2, m, a, a).tolist() == [[10, 10], [10, 10]]
        assert torch.addmv(2, v, 3, a, v).tolist() == [14, 14]
        assert torch.addr(2, m, 3, v, v).tolist() == [[5, 5], [5, 5]]
        assert torch.addbmm(2, m, 3, a[None], a[None]).tolist() == [[26, 26], [26, 26]]
        assert torch.baddbmm(2, m[None], a[None], a[None]).tolist() == [[[10, 10], [10, 10]]]
        out = torch.empty(2, 2)
        assert torch.addmm(2, m, 3, a, a, out=out) is out and out[0, 0] == 26
    with pytest.warns(UserWarning, match="This overload of addmm is deprecated"):
        torch.addmm(2, m, a, a)


def test_ranges_between_numbers_in_tensors():
    start, end = torch.tensor(1.0, requires_grad=True), torch.tensor(3)
    points = torch.linspace(start, end, 3)
    assert points.tolist() == [1, 2, 3] and not points.requires_grad
    assert torch.linspace(0, torch.tensor(4.0), 5).tolist() == [0, 1, 2, 3, 4]
    assert torch.logspace(start, 3, 3, 2).tolist() == [2, 4, 8]
    with pytest.raises(RuntimeError, match="linspace only supports 0-dimensional start and end tensors"):
        torch.linspace(torch.zeros(1), torch.tensor(1.0), 3)


@pytest.mark.parametrize("name", ["unbind_copy", "split_with_sizes_copy", "split_copy"])
def test_copies_of_views_take_out_lists(name):
    x = torch.arange(6.0).view(3, 2)
    sizes = {"unbind_copy": [], "split_with_sizes_copy": [[1, 2]], "split_copy": [2]}[name]
    views = getattr(torch, name)(x, *sizes)
    out = [torch.full_like(v, 9) if i else torch.empty(0) for i, v in enumerate(views)]
    assert getattr(torch, name)(x, *sizes, out=out) is None
    assert [o.tolist() for o in out] == [v.tolist() for v in views]
    with pytest.raises(RuntimeError, match="expected out"):
        getattr(torch, name)(x, *sizes, out=out[:1])
    with pytest.raises(RuntimeError, match="dtype"):
        getattr(torch, name)(x, *sizes, out=[o.double() for o in out])


def test_linear_takes_out():
    x, w = torch.arange(6.0).view(2, 3), torch.ones(4, 3)
    out = torch.empty(0)
    assert F.linear(x, w, out=out) is out and out.tolist() == F.linear(x, w).tolist()
    with pytest.raises(RuntimeError, match="dtype"):
        F.linear(x, w, out=torch.empty(2, 4, dtype=torch.float64))


def test_ravel_copies_what_is_not_contiguous():
    column = torch.zeros(8, 2)[:, 0]
    assert column.ravel().data_ptr() != column.data_ptr()
    assert torch.zeros(3, 4).ravel()._base is not None


def test_casts_leave_gaps_and_the_tensor_alone():
    column = torch.zeros(4, 3)[:, 0]
    assert column.float(memory_format=torch.contiguous_format) is column
    images = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert images.float(memory_format=torch.contiguous_format).is_contiguous()


def test_storages_stay_on_their_device():
    x = torch.empty(3, device="meta")
    for source in (torch.ones(3), torch.ones(3).untyped_storage()):
        with pytest.raises(RuntimeError, match="different device"):
            x.set_(source)


def test_outputs_of_complex_and_polar_have_their_dtype():
    x = torch.ones(3, dtype=torch.float64)
    for name in ("complex", "polar"):
        with pytest.raises(
            RuntimeError, match="Expected (object of scalar type ComplexDouble|out tensor to have dtype)"
        ):
            getattr(torch, name)(x, x, out=torch.empty(3, dtype=torch.complex64))
