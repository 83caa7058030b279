"""What nested tensors refuse, in words that programs match, and joins and views of them, beside PyTorch's."""

import re

import pytest

import rushlight
from rushlight._command.names import is_aliased

STRIDED = {
    "no sizes": (lambda t, x: x.reshape(()), "shape '[]' is invalid for a nested tensor"),
    "nothing": (
        lambda t, x: t.nested.nested_tensor([]).reshape(-1),
        "empty nested tensor cannot be reshaped",
    ),
    "batch": (
        lambda t, x: x.reshape(-1, 2, 2),
        "reshape: For now nested reshape cannot change or infer the implicit batch dimension",
    ),
    "two sizes": (lambda t, x: x.reshape(2, -1, -1, 2, 2), "only one dimension can be inferred"),
    "softmax": (lambda t, x: t.softmax(x, 0), "Cannot apply softmax across nested dimension 0"),
    "clone": (
        lambda t, x: t.nested.nested_tensor([t.ones(1, 2, 2)]).clone(memory_format=t.channels_last),
        "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory",
    ),
    "copy_": (
        lambda t, x: t.nested.nested_tensor([t.ones(2, 2)]).copy_(x),
        "copy_ only supports tensors that are the same size for Nested implementations",
    ),
    "ranks": (
        lambda t, x: t.nested.nested_tensor([t.tensor(1.0), t.tensor([1.0])]),
        "Found dimension 1 for Tensor at index 1 and dimension 0 for Tensor at index 0.",
    ),
    "mul": (
        lambda t, x: x * t.ones(1),
        "Expected both self and other to be nested, but got a nested self and non-nested other",
    ),
    "mul by": (
        lambda t, x: t.ones(1) * x,
        "Expected both self and other to be nested, but got a non-nested self and nested other",
    ),
    "bmm": (lambda t, x: t.bmm(x, x), "0-th nested matrices in batch cannot be multiplied (2x4 and 2x4)"),
    "matmul": (lambda t, x: t.matmul(x, x), "matmul: Nested tensors cannot be matrix multiplied"),
    "matmul, vectors": (
        lambda t, x: t.matmul(x, t.nested.nested_tensor([t.ones(4), t.ones(4)])),
        "only inputs with >= 3 dims are currently supported. 2nd input has rank: 2",
    ),
    "matmul, batch": (
        lambda t, x: t.matmul(x, t.nested.nested_tensor([t.ones(4, 1)])),
        "matmul: Expected size for the 1st dimension of 2nd input tensor to be: 2 but got: 1.",
    ),
    "linear": (
        lambda t, x: t.nn.functional.linear(x, t.ones(2, 3)),
        "to equal 'weight.size(1), but got: last_dim = 4, and weight.size(1) = 3",
    ),
    "linear, ragged": (
        lambda t, x: t.nn.functional.linear(
            t.nested.nested_tensor([t.ones(2, 4), t.ones(2, 3)]), t.ones(2, 3)
        ),
        "Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension",
    ),
    "layer_norm": (
        lambda t, x: t.nn.functional.layer_norm(x, (2, 4), t.ones(2, 4), t.ones(2, 4)),
        "normalized_shape extends into irregular dimensions for the nested tensor",
    ),
    "cat": (
        lambda t, x: t.cat([x, t.nested.nested_tensor([t.ones(3, 4), t.ones(2, 4)])], -1),
        "expected all nested tensors to have matching ragged structures outside of the concatenated dim",
    ),
}
JAGGED = {
    "ranks": (
        lambda t, x: t.nested.nested_tensor([t.ones(2, 3), t.ones(2, 3, 4)], layout=t.jagged),
        "When constructing a nested tensor, all tensors in list must have the same dim",
    ),
    "numbers": (
        lambda t, x: t.nested.nested_tensor([t.tensor(3.0), t.tensor(4.0)], layout=t.jagged),
        "Cannot construct a nested tensor from a list of zero-dim tensors",
    ),
    "copy_": (
        lambda t, x: x.copy_(cut(t, [0, 2, 4, 6])),
        "copy_(): expected compatible input and src shapes, but got: torch.Size([3, j",
    ),
    "permute": (
        lambda t, x: x.permute(0, 1),
        "permute(): number of dimensions in the tensor input (3) does not match the length",
    ),
    "permute twice": (lambda t, x: x.permute(0, 2, 2), "permute(): duplicate dims are not allowed."),
    "split": (
        lambda t, x: t.split(x, [1, 2], 1),
        "split_with_sizes(): not supported for NestedTensor on ragged dim",
    ),
}


def libraries():
    return [rushlight] if is_aliased() else [rushlight, pytest.importorskip("torch")]


def cut(t, offsets):
    return t.nested.nested_tensor_from_jagged(t.arange(12.0).reshape(6, 2), t.tensor(offsets))


@pytest.mark.parametrize("case", STRIDED)
def test_strided(case):
    run, words = STRIDED[case]
    for t in libraries():
        x = t.nested.nested_tensor([t.ones(2, 4), t.ones(3, 4)])
        with pytest.raises(RuntimeError, match=re.escape(words)):
            run(t, x)


@pytest.mark.parametrize("case", JAGGED)
def test_jagged(case):
    run, words = JAGGED[case]
    for t in libraries():
        with pytest.raises((RuntimeError, ValueError), match=re.escape(words)):
            run(t, cut(t, [0, 1, 3, 6]))


def test_components_are_joined_along_inner_dimensions():
    for t in libraries():
        x, y = (t.nested.nested_tensor([t.full((2, n), 1.0), t.full((3, n), 2.0)]) for n in (4, 1))
        joined = t.cat([x, y], -1)
        assert [tuple(part.shape) for part in joined.unbind()] == [(2, 5), (3, 5)]
        assert joined.unbind()[1].tolist() == [[2.0] * 5] * 3


def test_a_view_of_another_base():
    for t in libraries():
        base = t.arange(24.0).reshape(6, 2, 2).clone()
        x = t.nested.nested_tensor_from_jagged(
            base.flatten(0, 0)[:, 1], t.tensor([0, 1, 3, 6]), min_seqlen=1, max_seqlen=3
        )
        again = x._view_func(base * 2)
        assert again.values().tolist() == (x.values() * 2).tolist() and again.shape == x.shape
        assert again._metadata_cache.keys() == x._metadata_cache.keys()
        assert again.size(1) == x.size(1) and again._base is not None


def test_functions_run_over_jagged_values_in_place():
    for t in libraries():
        x = cut(t, [0, 1, 3, 6]).detach().requires_grad_()
        assert x.apply_(lambda n: n + 1) is x
        assert x.values().detach().flatten().tolist() == list(range(1, 13)) and x.grad is None


def test_ragged_sizes_are_known_as_such():
    for t in libraries():
        from_library = __import__(f"{t.__name__}.fx.experimental.symbolic_shapes", fromlist=["x"])
        x = cut(t, [0, 1, 3, 6])
        assert [from_library.is_nested_int(n) for n in x.shape] == [False, True, False]
