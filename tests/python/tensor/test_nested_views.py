"""Nested tensors that are views; masks, files, padded batches; norms over ragged sizes."""

import io

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_a_batch_becomes_a_view(layout):
    batch = torch.randn(2, 3, 4, requires_grad=True)
    nested = torch.nested.as_nested_tensor(batch, layout=layout)
    assert nested._is_view() and nested._base is batch
    (nested * 2).values().sum().backward()
    assert torch.equal(batch.grad, torch.full((2, 3, 4), 2.0))
    assert torch.nested.as_nested_tensor(nested, layout=layout) is nested
    turned = torch.nested.as_nested_tensor(batch.detach().transpose(0, 1), layout=layout)
    assert turned.is_contiguous() and torch.equal(turned.unbind()[1], batch[:, 1])


def test_a_ragged_size_stays_out_of_files():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    other = nested * 2
    assert isinstance(nested.shape[1], torch.SymInt) and nested.shape[1] == other.shape[1]
    file = io.BytesIO()
    torch.save([nested, other], file)
    file.seek(0)
    first, second = torch.load(file, weights_only=True)
    assert torch.equal((first + second).values(), torch.full((5,), 3.0))


def test_padded_and_back():
    nested = torch.nested.nested_tensor(
        [torch.randn(n, 4) for n in (2, 5, 3)], layout=torch.jagged, requires_grad=True
    )
    from rushlight.nested._internal.nested_tensor import nested_from_padded

    again = nested_from_padded(nested.to_padded_tensor(7.0), nested.offsets())
    assert all(torch.equal(a, b) for a, b in zip(again.unbind(), nested.unbind(), strict=True))
    again.backward(torch.ones_like(again))
    assert torch.equal(nested.grad.values(), torch.ones(10, 4))


def test_of_a_mask():
    rows = torch.randn(3, 4, 2)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    nested = torch._nested_tensor_from_mask(rows, mask)
    assert [tuple(t.shape) for t in nested.unbind()] == [(2, 2), (4, 2), (1, 2)]
    assert torch._nested_tensor_from_mask_left_aligned(rows, mask)
    with pytest.raises(RuntimeError, match="left-aligned without gaps"):
        torch._nested_tensor_from_mask(rows, mask.flip(1))


def test_masked_select_of_several_dimensions():
    rows, mask = torch.arange(12.0).view(2, 3, 2), torch.tensor([True, False])
    nested = torch.nested.masked_select(rows, mask)
    assert nested.values().tolist() == [0, 2, 4, 6, 8, 10] and nested.offsets().tolist() == list(range(7))


def test_gradients_of_strided_results():
    parts = [torch.randn(9, 2), torch.randn(5, 3)]
    nested = torch.nested.nested_tensor(parts, requires_grad=True)
    out = nested * 3
    out.backward(out.detach())
    assert torch.allclose(nested.grad.unbind()[1], parts[1] * 9)
    with pytest.raises(RuntimeError, match="other sizes"):
        (nested * 3).backward(torch.nested.nested_tensor([torch.ones(2, 9), torch.ones(3, 5)]))


def test_norms_over_the_ragged_size():
    parts = [torch.randn(2, 4), torch.randn(5, 4)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    found = torch.nn.functional.layer_norm(nested, nested.shape[1:])
    for t, normed in zip(parts, found.unbind(), strict=True):
        assert torch.allclose(normed, torch.nn.functional.layer_norm(t, t.shape))
    with pytest.raises(RuntimeError, match="ragged size"):
        torch.nn.functional.layer_norm(nested, nested.shape[1:], torch.ones(4))


def test_overloads_are_found_by_their_operator():
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(5, 4)], layout=torch.jagged)
    assert torch.ops.aten.sum.dim_IntList(nested, [1]).tolist() == [[2.0] * 4, [5.0] * 4]
    assert torch.ops.aten.mean.dim(nested, [2], True).values().tolist() == [[1.0]] * 7


def test_attention_along_a_fixed_length():
    parts = [torch.randn(n, 8, 4) for n in (2, 3)]
    q = torch.nested.nested_tensor(parts, layout=torch.jagged)
    found = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    wanted = torch.nn.functional.scaled_dot_product_attention(*[torch.cat(parts)] * 3)
    assert torch.allclose(found.values(), wanted)


def test_operators_between_packed_and_padded_values():
    for t in [torch] if is_aliased() else [torch, pytest.importorskip("torch")]:
        pad, pack = (
            t.ops.aten._jagged_to_padded_dense_forward,
            t.ops.aten._padded_dense_to_jagged_forward,
        )
        values = t.arange(20.0).reshape(10, 2)
        offsets = t.tensor([0, 1, 3, 8, 10])
        padded = pad(values, [offsets], [5], 1.5)
        assert padded.shape == (4, 5, 2) and padded[0].tolist() == [[0.0, 1.0]] + [[1.5, 1.5]] * 4
        assert pad(values, [offsets], [4], 1.5).tolist() == padded[:, :4].tolist()
        assert pack(padded, [offsets], 10).tolist() == values.tolist()
        with pytest.raises(RuntimeError, match="only a single jagged dim is supported"):
            pad(values, [offsets, offsets], [5, 5], 0.0)
        with pytest.raises(RuntimeError, match="expected 1D offsets"):
            pack(padded, [offsets[:, None]], 10)
        with pytest.raises(RuntimeError, match="final offset should match total_L value"):
            pack(padded, [offsets + 1], 10)
        with pytest.raises(RuntimeError, match="expected padded dim >= 2"):
            pack(padded.flatten(), [offsets], 10)
        with pytest.raises(RuntimeError, match="found batch item of length 7"):
            pack(padded, [t.tensor([0, 1, 8, 9, 10])], 10)


def test_gradients_between_packed_and_padded_values():
    values = torch.rand(6, 2, dtype=torch.float64, requires_grad=True)
    offsets = torch.tensor([0, 2, 2, 6])
    aten = torch.ops.aten
    torch.autograd.gradcheck(
        lambda v: aten._jagged_to_padded_dense_forward(v, [offsets], [3], 0.5), (values,)
    )
    padded = torch.rand(3, 4, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda p: aten._padded_dense_to_jagged_forward(p, [offsets], 6), (padded,))
    assert aten._jagged_to_padded_dense_forward(values[:0], [offsets * 0], [2], 0.5).eq(0.5).all()
