"""The rows of the neural-network kernels and of linear algebra against PyTorch, and their errors."""

import pytest
import samples_linalg
import samples_nn
from test_reduce_rows import assert_equal, gradients, oracle, run

import rushlight as torch

F = torch.nn.functional
ROWS = {**samples_nn.ROWS, **samples_linalg.ROWS}
CASES = [
    pytest.param(name, *row, id=f"{name}-{i}") for name, rows in ROWS.items() for i, row in enumerate(rows)
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_values(name, args, kwargs):
    assert_equal(run(torch, name, args, kwargs), run(oracle, name, args, kwargs), "output")


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_gradients(name, args, kwargs):
    with oracle.nn.attention.sdpa_kernel(oracle.nn.attention.SDPBackend.MATH):
        try:
            theirs = gradients(oracle, name, args, kwargs)
        except RuntimeError as error:
            pytest.skip(f"the oracle has no such gradient: {error}")
    if theirs is None:
        pytest.skip("no gradient to compare")
    ours = gradients(torch, name, args, kwargs)
    assert ours is not None, "the result does not require grad"
    assert_equal(ours[0], theirs[0], "gradient")
    if theirs[1] and ours[1]:
        assert_equal(ours[1], theirs[1], "second gradient")


def test_channels_last_is_kept():
    x = torch.randn(2, 5, 6, 7).to(memory_format=torch.channels_last)
    for f in (
        lambda t: F.max_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 1, 1),
        lambda t: F.batch_norm(t, None, None, training=True),
    ):
        last, plain = f(x), f(x.contiguous())
        assert last.is_contiguous(memory_format=torch.channels_last)
        assert torch.allclose(last, plain, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.cross_entropy(torch.randn(2, 3), torch.tensor([0, 10])),
            IndexError,
            "Target 10 is out of bounds.",
        ),
        (lambda: F.embedding(torch.tensor([7]), torch.randn(5, 2)), IndexError, "index out of range in self"),
        (lambda: F.max_pool2d(torch.randn(1, 1, 2, 2), 5), RuntimeError, "Output size is too small"),
        (
            lambda: F.max_pool2d(torch.randn(1, 1, 9, 9), 2, padding=2),
            RuntimeError,
            "at most half of effective kernel size",
        ),
        (lambda: F.avg_pool2d(torch.randn(1, 1, 9, 9), 2, 0), RuntimeError, "stride"),
        (lambda: F.layer_norm(torch.randn(2, 3), [4]), RuntimeError, "Given normalized_shape"),
        (
            lambda: F.batch_norm(torch.randn(1, 3), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel",
        ),
        (
            lambda: F.pad(torch.randn(1, 2, 3), (4, 4), mode="reflect"),
            RuntimeError,
            "Padding size should be less",
        ),
        (
            lambda: F.mse_loss(torch.randn(2), torch.randn(2), reduction="avg"),
            ValueError,
            "is not a valid value for reduction",
        ),
        (lambda: torch.linalg.inv(torch.zeros(2, 2)), torch.linalg.LinAlgError, "singular"),
        (
            lambda: torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(4, 2)),
            RuntimeError,
            "does not broadcast",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text.replace(".", r"\.")):
        call()
