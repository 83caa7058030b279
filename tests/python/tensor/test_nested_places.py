"""Views of strided nested tensors: they share the buffer, and say where their components lie in it."""

import io

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.fixture
def oracle():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


def of(t, *sizes, **kwargs):
    count, parts = 0, []
    for size in sizes:
        n = t.Size(size).numel()
        parts.append(t.arange(count, count + n, dtype=t.float32).reshape(size))
        count += n
    return t.nested.nested_tensor(parts, **kwargs)


_VIEWS = {
    "transpose": lambda x: x.transpose(1, 2),
    "chunk": lambda x: x.chunk(2, -1)[1],
    "split": lambda x: x.split_with_sizes([1, 3], -1)[1],
    "narrow": lambda x: x.narrow(0, 1, 2),
    "select": lambda x: x.select(2, 1),
    "unsqueeze": lambda x: x.unsqueeze(2),
    "view": lambda x: x.view(3, -1, 2, 2).transpose(1, 2),
    "scaled": lambda x: x.transpose(1, 2) / 2,
    "clone": lambda x: x.transpose(1, 2).clone(),
    "sum of two": lambda x: x.chunk(2, -1)[0] + x.chunk(2, -1)[1],
    "product": lambda x: x.chunk(2, -1)[0].mul(x.chunk(2, -1)[0]),
    "contiguous": lambda x: x.transpose(1, 2).contiguous(),
    "matmul": lambda x: x.matmul(x.transpose(1, 2)),
    "softmax": lambda x: torch_softmax(x.transpose(1, 2)),
}


def torch_softmax(x):
    return x.softmax(-1)


@pytest.mark.parametrize("name", _VIEWS)
def test_places_are_pytorchs(oracle, name):
    mine, theirs = (_VIEWS[name](of(t, (2, 4), (1, 4), (3, 4))) for t in (torch, oracle))
    if name != "narrow":  # a slice of the buffer here, which its components fill
        assert mine.is_contiguous() == theirs.is_contiguous()
    assert mine._nested_tensor_size().tolist() == theirs._nested_tensor_size().tolist()
    assert mine.numel() == theirs.numel()
    for a, b in zip(mine.unbind(), theirs.unbind(), strict=True):
        assert a.shape == tuple(b.shape) and a.flatten().tolist() == pytest.approx(b.flatten().tolist())
    if name != "softmax":  # packed here, where PyTorch keeps the strides
        assert mine._nested_tensor_strides().tolist() == theirs._nested_tensor_strides().tolist()
    if name not in ("narrow", "softmax"):
        offsets = (x._nested_tensor_storage_offsets().tolist() for x in (mine, theirs))
        assert next(offsets) == next(offsets)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x.relu(),
        lambda t, x: x.tanh_(),
        lambda t, x: x.half(),
        lambda t, x: t.nn.functional.silu(x, inplace=True),
        lambda t, x: x.to_padded_tensor(0.0),
        lambda t, x: x.chunk(2, -1),
        lambda t, x: x.split_with_sizes([1, 1], -1),
        lambda t, x: x.narrow(0, 0, 1),
        lambda t, x: x / x.contiguous(),
        lambda t, x: t.cat([x, x]),
        lambda t, x: t.nn.functional.linear(x, t.ones(2, 2)),
        lambda t, x: x.transpose(1, 2).chunk(3, -1),
        lambda t, x: x.transpose(1, 2).chunk(2, 1),
        lambda t, x: x.transpose(1, 2).split_with_sizes([1, 1], -1),
        lambda t, x: x.transpose(1, 2).narrow(1, 0, 1),
        lambda t, x: x[:],
    ],
)
def test_refusals_are_pytorchs(oracle, call):
    words = []
    for t in (torch, oracle):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            call(t, of(t, (2, 4), (2, 4)).transpose(1, 2))
        words.append((caught.type, str(caught.value).partition(".")[0].partition(" with")[0]))
    if words[0][0] is NotImplementedError:
        assert words[1][0] is NotImplementedError
    else:
        assert words[0][1].split("):")[-1].strip()[:40] in words[1][1]


def test_writes_reach_the_base_and_only_the_piece():
    x = of(torch, (2, 4), (1, 4))
    first, second = x.chunk(2, -1)
    assert first._base is x
    first.mul_(0)
    second.fill_(7)
    assert x.unbind()[0].tolist() == [[0, 0, 7, 7]] * 2 and x.unbind()[1].tolist() == [[0, 0, 7, 7]]
    x.transpose(1, 2).unbind()[1].zero_()
    assert x.unbind()[1].abs().sum() == 0
    x.transpose(1, 2).copy_(of(torch, (4, 2), (4, 1)))
    assert x.unbind()[0].tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_gradients_flow_through_pieces():
    x = of(torch, (2, 4), (3, 4), requires_grad=True)
    left, right = x.chunk(2, -1)
    (left + 2 * right).values().sum().backward()
    assert x.grad.unbind()[1].tolist() == [[1, 1, 2, 2]] * 3
    y = of(torch, (2, 4), (3, 4), requires_grad=True)
    y.transpose(1, 2).unbind()[1][0].sum().backward()
    assert y.grad.unbind()[0].abs().sum() == 0 and y.grad.unbind()[1].tolist() == [[1, 0, 0, 0]] * 3


def test_overlapping_components_are_read():
    buffer = torch.arange(6.0)
    sizes, ones = torch.tensor([[3], [3]]), torch.tensor([[1], [1]])
    x = torch._utils._rebuild_nested_tensor(buffer, sizes, ones, torch.tensor([0, 1]))
    assert [t.tolist() for t in x.unbind()] == [[0, 1, 2], [1, 2, 3]]


def test_files_keep_the_places():
    file = io.BytesIO()
    torch.save(of(torch, (2, 4), (3, 4)).transpose(1, 2), file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    assert not read.is_contiguous() and read.unbind()[0].tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize("fused", [False, True])
def test_corners_of_padded_batches(oracle, fused):
    shape, sizes = ((2, 2, 3, 4), [[2, 8], [3, 8]]) if fused else ((2, 3, 4), [[2, 4], [3, 2]])
    found = []
    for t in (torch, oracle):
        padded = t.arange(float(t.Size(shape).numel())).reshape(shape).requires_grad_()
        nested = t._nested_from_padded(padded, t.tensor(sizes), fused)
        nested.to_padded_tensor(0.0).square().sum().backward()
        found.append(([part.tolist() for part in nested.unbind()], padded.grad.tolist()))
    assert found[0] == found[1]
    example = of(torch, (2, 4), (1, 4))
    again = torch._nested_from_padded_and_nested_example(example.to_padded_tensor(9.0), example)
    assert torch.equal(again, example)
    with pytest.raises(RuntimeError, match="larger than the padded batch"):
        torch._nested_from_padded(torch.ones(1, 2, 2), torch.tensor([[3, 1]]))


_JAGGED = {
    "new dimension": lambda t, x, y: x[..., None],
    "repeat_interleave": lambda t, x, y: x.repeat_interleave(2, dim=-1),
    "movedim": lambda t, x, y: x.unflatten(-1, (2, 2)).movedim(2, 3),
    "one_hot": lambda t, x, y: t.nn.functional.one_hot(x.select(-1, 0).long(), 40),
    "embedding_bag": lambda t, x, y: t.nn.functional.embedding_bag(x.select(-1, 0).long(), t.eye(40)),
    "l1_loss": lambda t, x, y: t.nn.functional.l1_loss(x, y),
    "kl_div": lambda t, x, y: t.nn.functional.kl_div(x, y.sigmoid(), reduction="sum"),
    "diff": lambda t, x, y: x.diff(dim=-1),
    "isclose": lambda t, x, y: x.isclose(y),
    "dsplit": lambda t, x, y: x.dsplit(2)[1],
    "dstack": lambda t, x, y: t.dstack([x, y]),
    "view_as": lambda t, x, y: x.view_as(y),
    "reshape_as": lambda t, x, y: x.reshape_as(y),
    "frexp": lambda t, x, y: t.frexp(x)[0],
    "turned": lambda t, x, y: x.transpose(1, 2).contiguous(),
}


@pytest.mark.parametrize("name", _JAGGED)
def test_jagged_tensors_follow_pytorch(oracle, name):
    found = []
    for t in (torch, oracle):
        x = of(t, (2, 4), (1, 4), (3, 4), layout=t.jagged)
        y = x * 0.5 + 1
        found.append(_JAGGED[name](t, x, y))
    mine, theirs = found
    assert mine.is_nested == theirs.is_nested and str(mine.dtype)[-7:] == str(theirs.dtype)[-7:]
    if mine.is_nested:
        assert mine._ragged_idx == theirs._ragged_idx and mine.is_contiguous() == theirs.is_contiguous()
        assert [t.tolist() for t in mine.unbind()] == [t.tolist() for t in theirs.unbind()]
    else:
        assert mine.flatten().tolist() == pytest.approx(theirs.flatten().tolist())


def test_a_narrowed_batch_without_holes_is_contiguous(oracle):
    found = []
    for t in (torch, oracle):
        rows = t.arange(12.0).view(3, 4)
        x = t.nested.narrow(rows, 1, t.tensor([1, 0, 0]), t.tensor([3, 4, 2]), layout=t.jagged)
        found.append((x.is_contiguous(), [part.tolist() for part in x.unbind()]))
    assert found[0] == found[1] and found[0][0]
    x = torch.nested.narrow(
        torch.ones(3, 4), 1, torch.tensor([1, 0, 1]), torch.tensor([3, 4, 2]), layout=torch.jagged
    )
    assert not x.is_contiguous() and x.numel() == 9


def test_jagged_tensors_take_new_dimensions_anywhere():
    x = of(torch, (2, 4), (1, 4), (3, 4), layout=torch.jagged)
    for index in ((slice(None), None), (slice(None), slice(None), None, slice(1, 3)), (..., 1, None)):
        found = x[index]
        for mine, part in zip(found.unbind(), x.unbind(), strict=True):
            assert torch.equal(mine, part[index[1:] if index[0] is not Ellipsis else index])
    assert x[:, None]._ragged_idx == 2 and x[:, None].shape[2] == x.shape[1]
    with pytest.raises(RuntimeError, match="dim=0"):
        x[None]


@pytest.mark.parametrize("first", ["packed", "transposed"])
def test_sums_take_operands_in_any_places_and_give_gradients_there(first):
    parts = [torch.randn(2, 3, 2), torch.rand(4, 2, 2)]
    a = torch.nested.nested_tensor(parts, requires_grad=True)
    b = torch.nested.nested_tensor([p.transpose(1, 2).contiguous() for p in parts], requires_grad=True)
    operands = [a, b.transpose(-1, -2)]
    x, y = operands if first == "packed" else operands[::-1]
    total = x + y
    for piece, part in zip(total.unbind(), parts, strict=True):
        torch.testing.assert_close(piece, part + part)
    total.backward(total.detach().clone())
    for piece, part in zip(b.grad.unbind(), parts, strict=True):
        torch.testing.assert_close(piece, 2 * part.transpose(1, 2))
    assert all(not d.any() for d in (x - y).unbind())


def test_copies_in_the_contiguous_format_are_packed():
    parts = [torch.randn(2, 3, 2), torch.rand(4, 2, 2)]
    x = torch.nested.nested_tensor([p.transpose(1, 2).contiguous() for p in parts]).transpose(-1, -2)
    assert not x.is_contiguous()
    copy = x.clone(memory_format=torch.contiguous_format)
    assert copy.is_contiguous() and torch.equal(copy.unbind()[1], parts[1])
    for like in (torch.empty_like, torch.zeros_like, torch.ones_like):
        made = like(x, memory_format=torch.contiguous_format)
        assert made.is_contiguous() and made.unbind()[0].shape == parts[0].shape
