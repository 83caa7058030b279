"""Nested tensors against PyTorch: making them, what functions do with them, gradients, refusals."""

import copy
import pickle

import pytest
from engine import arguments, resolve
from loader import ROWS, main_dtype, records_of, samples

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.*nested")

BOTH = [rushlight, oracle]


def parts(t):
    return t.arange(6.0).view(2, 3), t.arange(12.0).view(4, 3) / 4


def jagged(t, **options):
    return t.nested.nested_tensor(list(parts(t)), layout=t.jagged, **options)


def strided(t, **options):
    return t.nested.nested_tensor(list(parts(t)), **options)


def shown(x):
    """A value, nested or not, in a form that compares across both libraries."""
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    if not hasattr(x, "is_nested"):
        return str(x)
    if x.is_nested:
        return ["nested", str(x.layout), str(x.dtype), [rounded(part.tolist()) for part in x.unbind()]]
    return [str(x.dtype), tuple(x.shape), rounded(x.tolist())]


def rounded(values):
    if isinstance(values, list):
        return [rounded(v) for v in values]
    return float(f"{values:.4g}") if isinstance(values, float) else values


def flipped(t, x):
    return t.nested.nested_tensor_from_jagged(x.values().flip(0), x.offsets())


JAGGED = {
    "facts": lambda t, n: [n.size(0), n.size(-1), n.dim(), n.is_nested, n.layout, n.dtype, n.numel(), len(n)],
    "parts": lambda t, n: [
        n.values(),
        n.offsets(),
        n.lengths(),
        n.unbind(),
        n[1],
        n[0, 1],
        n.is_contiguous(),
    ],
    "size": lambda t, n: [
        isinstance(n.shape, t.Size),
        t.Size(n.shape) == n.shape == (2, n.shape[1], 3),
        isinstance(n.shape[1], t.SymInt),
        isinstance(n.shape[1:], t.Size),
        str(n.shape)[:16],
        hash(t.Size(n.shape)) == hash(n.shape),
        t.Size(n.shape[::2]),
    ],
    "shape": lambda t, n: [
        n.shape[0],
        n.shape[2],
        n.size(1) == (n * 2).size(1),
        n.size(1) == jagged(t).size(1),
    ],
    "unary": lambda t, n: [n.exp(), -n, n.sqrt(), t.nn.functional.gelu(n), n.isnan(), n.bool(), n.double()],
    "binary": lambda t, n: [n + n, n * 2, 2 - n, n == n, n / (n + 1), n + flipped(t, n), n > 1, n**2],
    "broadcast": lambda t, n: [
        n + t.ones(3),
        n * t.arange(2.0).view(2, 1, 1),
        n + t.ones(2, 1, 3),
        n + t.arange(24.0).view(2, 4, 3),
        n * n.sum(-1, keepdim=True),
    ],
    "where": lambda t, n: [t.where(n > 2, n, -n), n.masked_fill(n > 2, 0), n.clamp(1, 2)],
    "in place": lambda t, n: [
        n.clone().add_(1),
        n.clone().fill_(2),
        t.zeros_like(n).copy_(n),
        n.clone().mul_(n),
    ],
    "like": lambda t, n: [t.zeros_like(n), t.ones_like(n), n.clone(), n.detach(), n.to(t.float64), n.half()],
    "sum": lambda t, n: [n.sum(), n.sum(1), n.sum(1, keepdim=True), n.sum(2), n.sum(-1, keepdim=True)],
    "mean": lambda t, n: [n.mean(), n.mean(dim=1), n.mean(-1)],
    "extremes": lambda t, n: [n.amax(dim=1), n.amin(2), n.max(), n.max(1), n.argmax(1), n.prod(1)],
    "any": lambda t, n: [(n > 1).any(), (n > 1).all(1), (n > 1).any(2)],
    "softmax": lambda t, n: [n.softmax(1), n.softmax(-1), t.nn.functional.log_softmax(n, 2)],
    "padded": lambda t, n: [
        n.to_padded_tensor(-1.0),
        n.to_padded_tensor(0.0, (2, 5, 3)),
        t.nested.to_padded_tensor(n, 0.0),
    ],
    "transpose": lambda t, n: [n.transpose(1, 2), n.transpose(1, 2).values(), n.permute(0, 2, 1) * 2],
    "shapes": lambda t, n: [
        n.unsqueeze(-1),
        n.unsqueeze(-1).squeeze(-1),
        n.view(2, -1, 3, 1),
        n.view(2, n.size(1), 1, 3),
        n.reshape(2, -1, 1, 3),
        n.unflatten(-1, (3, 1)).flatten(2, 3),
        n.expand(2, -1, 3),
    ],
    "pieces": lambda t, n: [n.chunk(3, -1), n.split(1, -1), n.select(2, 1), n[..., 0]],
    "join": lambda t, n: [t.cat([n, n], -1), t.stack([n, n], -1)],
    "linear": lambda t, n: [t.nn.functional.linear(n, t.ones(2, 3), t.ones(2)), n @ t.ones(3, 2)],
    "norm": lambda t, n: [t.nn.functional.layer_norm(n, (3,)), t.nn.functional.rms_norm(n, (3,))],
    "dropout": lambda t, n: [t.nn.functional.dropout(n, 0.0), t.nn.Dropout(0.5).eval()(n)],
    "embedding": lambda t, n: t.nn.functional.embedding(
        t.nested.nested_tensor([t.tensor([1, 2]), t.tensor([0])], layout=t.jagged), t.arange(6.0).view(3, 2)
    ),
    "repr": lambda t, n: repr(n).replace(str(n.size(1)), "j"),
}


@pytest.mark.parametrize("name", JAGGED)
def test_jagged(name):
    ours, theirs = (shown(JAGGED[name](t, jagged(t))) for t in BOTH)
    assert ours == theirs


STRIDED = {
    "batched product": lambda t, s: [t.bmm(s, s.transpose(1, 2)), s.bmm(t.ones(2, 3, 2))],
    "cat": lambda t, s: [t.cat([s, s + 1]), t.cat([s])],
    "split": lambda t, s: [s.split([1, 2], -1), t.split_with_sizes(s, [2, 1], 2)],
    "rest": lambda t, s: [s[..., 0], s.narrow(0, 1, 1)],
    "places": lambda t, s: [s._nested_tensor_strides(), s._nested_tensor_storage_offsets()],
    "pinned": lambda t, s: s.is_pinned(),
    "facts": lambda t, s: [s.size(0), s.size(2), s.dim(), s.is_nested, s.layout, s.numel(), s.values()],
    "parts": lambda t, s: [s.unbind(), s[1], s.select(0, 0), s._nested_tensor_size()],
    "pointwise": lambda t, s: [s + s, s * 2, s - 1, s.relu(), s.clone(), s.detach(), s.to(t.float64)],
    "padded": lambda t, s: [s.to_padded_tensor(-1.0), s.to_padded_tensor(0, (2, 5, 4))],
    "layers": lambda t, s: [
        t.nn.functional.linear(s, t.ones(2, 3)),
        s.softmax(-1),
        t.nn.LayerNorm(3)(s).detach(),
    ],
    "product": lambda t, s: s @ s.transpose(1, 2),
    "sum": lambda t, s: s.sum(-1, keepdim=True),
    "reshape": lambda t, s: s.reshape(2, -1, 3, 1),
    "repr": lambda t, s: repr(s),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided(name):
    ours, theirs = (shown(STRIDED[name](t, strided(t))) for t in BOTH)
    assert ours == theirs


MAKERS = {
    "lists": lambda t: [
        t.nested.nested_tensor([[1.0, 2], [3.0]]),
        t.nested.nested_tensor([[1.0, 2], [3.0]], layout=t.jagged, dtype=t.float64),
    ],
    "ragged second": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(2, 4)], layout=t.jagged),
    "two ragged": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 4)]),
    "rows": lambda t: [
        t.nested.as_nested_tensor(t.arange(12.0).view(2, 3, 2), layout=t.jagged),
        t.nested.as_nested_tensor(t.arange(12.0).view(2, 3, 2)),
    ],
    "from jagged": lambda t: [
        t.nested.nested_tensor_from_jagged(t.arange(10.0), t.tensor([0, 3, 10])),
        t.nested.nested_tensor_from_jagged(t.arange(10.0), lengths=t.tensor([2, 8])).offsets(),
        t.nested.nested_tensor_from_jagged(t.arange(10.0), t.tensor([0, 3, 10]), lengths=t.tensor([2, 4])),
    ],
    "narrow": lambda t: [
        t.nested.narrow(t.arange(24.0).view(2, 4, 3), 1, t.tensor([0, 1]), t.tensor([2, 3]), layout=t.jagged),
        t.nested.narrow(t.arange(24.0).view(2, 4, 3), 1, 0, t.tensor([2, 3]), layout=t.jagged).lengths(),
        t.nested.narrow(t.arange(24.0).view(2, 4, 3), 1, 0, t.tensor([2, 3]), layout=t.jagged).contiguous(),
    ],
    "masked_select": lambda t: t.nested.masked_select(
        t.arange(4.0).view(2, 2), t.tensor([[True, False], [True, True]])
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers(name):
    ours, theirs = (shown(MAKERS[name](t)) for t in BOTH)
    assert ours == theirs


REFUSED = {
    "other lengths": lambda t: jagged(t) + jagged(t),
    "batch sum": lambda t: jagged(t).sum(0),
    "two sums": lambda t: jagged(t).sum((1, 2)),
    "batch transpose": lambda t: jagged(t).transpose(0, 1),
    "T": lambda t: jagged(t).T,
    "ragged flatten": lambda t: jagged(t).flatten(1, 2),
    "ragged slice": lambda t: jagged(t)[:, 0],
    "batch cat": lambda t: t.cat([jagged(t), jagged(t)], 0),
    "no rule": lambda t: jagged(t).cumsum(1),
    "numpy": lambda t: jagged(t).numpy(),
    "tolist": lambda t: jagged(t).tolist(),
    "two ragged": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 4)], layout=t.jagged),
    "layout": lambda t: t.nested.nested_tensor([t.ones(2)], layout=t.sparse_coo),
    "no cuts": lambda t: t.nested.nested_tensor_from_jagged(t.ones(3)),
    "holes": lambda t: t.nested.nested_tensor_from_jagged(
        t.arange(10.0), t.tensor([0, 3, 10]), lengths=t.tensor([2, 4])
    ).to_padded_tensor(0.0),
    "strided shape": lambda t: strided(t).shape,
    "strided size": lambda t: strided(t).size(1),
    "strided and dense": lambda t: strided(t) + t.ones(3),
    "strided sum": lambda t: strided(t).sum(-1),
    "layouts": lambda t: t.nested.as_nested_tensor(jagged(t), layout=t.strided),
    "too small": lambda t: strided(t).to_padded_tensor(0, (2, 1, 1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    for t in BOTH:
        with pytest.raises((RuntimeError, ValueError, NotImplementedError)):
            REFUSED[name](t)


def test_cuts_are_checked():
    for offsets in ([0, 5, 3], [0, 2, 9], [-1, 2, 3], [[0, 3]]):
        with pytest.raises(RuntimeError):
            rushlight.nested.nested_tensor_from_jagged(rushlight.ones(4), rushlight.tensor(offsets))


def test_layout_belongs_to_nested_tensors():
    with pytest.raises(RuntimeError, match="torch.nested"):
        rushlight.ones(3, layout=rushlight.jagged)


# --- gradients and modules: compared with the same computation component by component ----------------


def attention(nn, heads, x):
    """A block of self-attention, for nested and for plain batches."""
    split = lambda layer: layer(x).unflatten(-1, (heads, -1)).transpose(1, 2)  # noqa: E731
    query, key, value = (split(layer) for layer in nn[:3])
    mixed = rushlight.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return nn[4](rushlight.nn.functional.gelu(nn[3](mixed.transpose(1, 2).flatten(-2))) + x)


def test_attention_block():
    rushlight.manual_seed(0)
    layers = rushlight.nn.ModuleList(
        [rushlight.nn.Linear(8, 8) for _ in range(4)] + [rushlight.nn.LayerNorm(8)]
    )
    components = [rushlight.randn(n, 8) for n in (3, 1, 5)]
    results = []
    for nested in (True, False):
        layers.zero_grad()
        leaves = [c.clone().requires_grad_() for c in components]
        if nested:
            batch = rushlight.nested.as_nested_tensor(leaves, layout=rushlight.jagged)
            outputs = attention(layers, 2, batch).unbind()
        else:
            outputs = [attention(layers, 2, leaf.unsqueeze(0)).squeeze(0) for leaf in leaves]
        sum((o**3).sum() for o in outputs).backward()
        results.append([*outputs, *(leaf.grad for leaf in leaves), *(p.grad for p in layers.parameters())])
    for ours, expected in zip(*results, strict=True):
        rushlight.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda n: n.sum(1),
        lambda n: n.mean(1),
        lambda n: n.amax(1),
        lambda n: n.softmax(1).values(),
        lambda n: n.to_padded_tensor(0.5),
        lambda n: (n * n.sum(-1, keepdim=True)).values(),
        lambda n: (n + rushlight.ones(2, 1, 3)).values() * n.values(),
        lambda n: n.transpose(1, 2).unbind()[1],
        lambda n: n.transpose(1, 2).matmul(n),
    ],
)
def test_gradcheck(function):
    def of_values(values):
        return function(rushlight.nested.nested_tensor_from_jagged(values, offsets))

    offsets = rushlight.tensor([0, 2, 6])
    rushlight.manual_seed(1)
    values = rushlight.randn(6, 3, dtype=rushlight.float64, requires_grad=True)
    assert rushlight.autograd.gradcheck(of_values, (values,))


@pytest.mark.parametrize("make", [jagged, strided])
def test_leaves(make):
    for t in BOTH:
        x = make(t, requires_grad=True)
        (x * 2).to_padded_tensor(0.0).sum().backward()
        assert x.is_leaf and x.grad.is_nested
        assert shown(x.grad) == shown(t.ones_like(x).detach() * 2)


def test_gradient_of_a_nested_input_is_nested():
    x = jagged(rushlight, requires_grad=True)
    (gradient,) = rushlight.autograd.grad((x * x).sum(), x)
    assert shown(gradient) == shown(x.detach() * 2)
    optimizer = rushlight.optim.SGD([x], lr=0.5)
    x.grad = gradient
    optimizer.step()
    assert shown(x.detach()) == shown(jagged(rushlight) * 0)


def test_modules():
    for t in BOTH:
        model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Dropout(0.0), t.nn.LayerNorm(4))
        for make in (jagged, strided):
            outputs = model(make(t)).unbind()
            for ours, component in zip(outputs, parts(t), strict=True):
                t.testing.assert_close(ours, model(component))


@pytest.mark.parametrize("make", [jagged, strided])
def test_copies(make):
    x = make(rushlight, requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(other) is type(x) and other.requires_grad
        assert shown(other.detach()) == shown(x.detach())
        assert other.values().data_ptr() != x.values().data_ptr()
    assert rushlight.equal(x, copy.deepcopy(x))


def test_ragged_sizes_are_copied():
    size = jagged(rushlight).size(1)
    for other in (copy.copy(size), copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
        assert other == size


def _pointwise_rows():
    records = [(row, records_of(row)) for row in ROWS]
    return [row for row, found in records if found and all(r["family"] == "pointwise" for r in found)]


@pytest.mark.parametrize("row", _pointwise_rows(), ids=lambda row: row.id)
def test_every_operator_by_element_takes_jagged_tensors(row):
    """As on each component; which operators these are is told by their records."""
    sample = samples(row)[0]
    args, kwargs = arguments(rushlight, sample, main_dtype(row))
    where = [i for i, a in enumerate(args) if isinstance(a, rushlight.Tensor) and a.dim() == 2]
    if where != [i for i, a in enumerate(args) if isinstance(a, rushlight.Tensor)]:
        pytest.skip("its first operands are no matrices")
    parts = {i: [args[i], args[i][:1]] for i in where}
    jagged = {
        i: rushlight.nested.nested_tensor(parts[i], layout=rushlight.jagged) if i == where[0] else None
        for i in where
    }
    for i in where[1:]:  # of the same lengths, not only of equal ones
        values = rushlight.cat(parts[i])
        jagged[i] = rushlight.nested.nested_tensor_from_jagged(values, jagged[where[0]].offsets())
    function = resolve(rushlight, row.name)
    found = function(*(jagged.get(i, a) for i, a in enumerate(args)), **kwargs)
    for k, mine in enumerate(found.unbind()):
        expected = function(*(parts[i][k] if i in parts else a for i, a in enumerate(args)), **kwargs)
        rushlight.testing.assert_close(mine, expected, equal_nan=True)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_jagged_tensors_are_pytorchs(name):
    def program(m):
        x = m.nested.nested_tensor([m.tensor([4, 6, 9]), m.tensor([10])], layout=m.jagged)
        return [t.tolist() for t in getattr(m, name)(x, x * 3).unbind()]

    assert program(rushlight) == program(oracle)


def test_attention_over_strided_nested_tensors():
    torch = rushlight
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    rows = [torch.rand(n, 8) for n in (3, 5, 1)]
    nested = torch.nested.nested_tensor(rows)
    out, weights = attention(nested, nested, nested)
    for row, found, seen in zip(rows, out.unbind(), weights, strict=True):
        expected, expected_weights = attention(row[None], row[None], row[None])
        torch.testing.assert_close(found, expected[0])
        torch.testing.assert_close(seen[: len(row), : len(row)], expected_weights[0])
        assert seen[:, len(row) :].eq(0).all()
    out.sum().backward()
    grad, attention.in_proj_weight.grad = attention.in_proj_weight.grad, None
    sum(attention(row, row, row)[0].sum() for row in rows).backward()
    torch.testing.assert_close(grad, attention.in_proj_weight.grad)
    assert attention(nested, nested, nested, need_weights=False)[1] is None
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    for row, found in zip(rows, layer(nested).unbind(), strict=True):
        torch.testing.assert_close(found, layer(row[None])[0])


def test_attention_over_nested_tensors_names_what_it_cannot_do():
    torch = rushlight
    nested = torch.nested.nested_tensor([torch.rand(2, 8), torch.rand(3, 8)])
    with pytest.raises(AssertionError, match="outside of its fast path.*batch_first was not True"):
        torch.nn.MultiheadAttention(8, 2)(nested, nested, nested)
    with pytest.raises(AssertionError, match="dropout is active"):
        torch.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)(nested, nested, nested)


@pytest.mark.parametrize(
    "name", ["isposinf", "isneginf", "erf", "sinh", "floor", "logical_and", "atan2", "signbit"]
)
def test_elementwise_functions_of_strided_nested_tensors(name):
    rows = [rushlight.randn(2, 3), rushlight.randn(4, 3)]
    nested, function = rushlight.nested.nested_tensor(rows), getattr(rushlight, name)
    operands = 2 if name in ("logical_and", "atan2") else 1
    for row, found in zip(rows, function(*[nested] * operands).unbind(), strict=True):
        assert rushlight.equal(found, function(*[row] * operands))


@pytest.mark.parametrize("make", [jagged, strided])
@pytest.mark.parametrize("name", ["uniform_", "exponential_", "geometric_", "random_"])
def test_random_numbers_fill_all_components(make, name):
    nested, arguments = make(rushlight), (0.5,) if name == "geometric_" else ()
    rushlight.manual_seed(3)
    assert getattr(nested, name)(*arguments) is nested
    rushlight.manual_seed(3)
    expected = getattr(rushlight.zeros(sum(t.numel() for t in nested.unbind())), name)(*arguments)
    assert rushlight.equal(rushlight.cat([t.flatten() for t in nested.unbind()]), expected)


@pytest.mark.parametrize("make", [jagged, strided])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_files_are_read_by_both_libraries(make, requires_grad, tmp_path):
    for writer in BOTH:
        path = tmp_path / f"{writer.__name__}.pt"
        x = make(writer, requires_grad=requires_grad)
        writer.save({"x": x}, path)
        for reader in BOTH:
            got = reader.load(path, weights_only=True)["x"]
            assert shown(got.detach()) == shown(x.detach()) and got.requires_grad == (
                requires_grad if make is jagged or writer is reader is rushlight else got.requires_grad
            )


def test_components_of_a_file_may_lie_anywhere():
    """PyTorch's transposed components, and those that leave gaps."""
    sizes, strides = rushlight.tensor([[2, 3], [1, 2]]), rushlight.tensor([[1, 2], [2, 1]])
    buffer, offsets = rushlight.arange(12.0), rushlight.tensor([0, 8])
    x = rushlight._utils._rebuild_nested_tensor(buffer, sizes, strides, offsets)
    assert [t.tolist() for t in x.unbind()] == [[[0, 2, 4], [1, 3, 5]], [[8, 9]]]


def test_a_file_cannot_make_a_nested_tensor_of_anything(tmp_path):
    from rushlight.nested._internal.nested_tensor import _rebuild_njt

    class Other:
        def __reduce__(self):
            return _rebuild_njt, ({"values": [1, 2], "offsets": rushlight.tensor([0, 2])},)

    rushlight.save(Other(), tmp_path / "x.pt")
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="values, offsets"):
        rushlight.load(tmp_path / "x.pt")


def test_refused_joins_and_products():
    x = strided(rushlight)
    with pytest.raises(RuntimeError, match="matching ragged structures"):
        rushlight.cat([x, rushlight.nested.nested_tensor([rushlight.ones(9, 9)])], 1)
    with pytest.raises(RuntimeError, match="to be nested"):
        rushlight.cat([x, rushlight.ones(2, 3)])
    with pytest.raises(RuntimeError, match="batch2 must be a 3D"):
        rushlight.bmm(x, rushlight.ones(3, 2))
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        x.narrow(0, 1, 2)


@pytest.mark.parametrize("make", [strided, jagged])
def test_sizes_are_compared_among_nested_tensors(make):
    for t in BOTH:
        nested, plain = make(t), t.ones(2, 3)
        assert nested.is_same_size(nested) and plain.is_same_size(t.ones(2, 3))
        for a, b in ((plain, nested), (nested, plain)):
            # PyTorch has words of its own for jagged tensors.
            with pytest.raises((RuntimeError, ValueError), match="other to be nested tensors|to be a jagged"):
                a.is_same_size(b)


def test_means_of_strided_components():
    parts = [rushlight.arange(6.0).view(3, 2), rushlight.arange(2.0).view(1, 2)]
    x = rushlight.nested.nested_tensor(parts, requires_grad=True)
    means = x.mean(-1, keepdim=True)
    assert [t.tolist() for t in means.unbind()] == [[[0.5], [2.5], [4.5]], [[0.5]]]
    (x.mean() + rushlight.nested.to_padded_tensor(means, 0.0).sum()).backward()
    assert x.grad.unbind()[1].tolist() == [[0.625, 0.625]]
    with pytest.raises(RuntimeError, match="always requires keepdim=True"):
        x.mean(-1)


def test_a_strided_result_prints_its_node_by_name():
    for lib in BOTH:
        nested = lib.nested.nested_tensor([lib.ones(1), lib.ones(2)], requires_grad=True)
        end = repr(nested * 2).splitlines()[-1]
        assert end.startswith("], grad_fn=<") and " object at " not in end
