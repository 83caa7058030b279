"""Bad calls give exceptions of PyTorch's types with PyTorch's words."""

import pytest

import rushlight as rl

X = rl.ones(2, 3)
CASES = [
    (lambda: rl.exp(1.0), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float"),
    (lambda: rl.exp(X, 3), TypeError, r"exp\(\) takes 1 positional argument but 2 were given"),
    (lambda: rl.exp(), TypeError, r'exp\(\) missing 1 required positional arguments: "input"'),
    (lambda: rl.exp(X, foo=1), TypeError, r"exp\(\) got an unexpected keyword argument 'foo'"),
    (lambda: rl.exp(X, input=X), TypeError, r"exp\(\) got multiple values for argument 'input'"),
    (lambda: X.add("a"), TypeError, r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
    (lambda: rl.add(X, X, alpha="a"), TypeError, r"add\(\): argument 'alpha' must be Number, not str"),
    (
        lambda: X.view("a"),
        TypeError,
        r"view\(\) received an invalid combination of arguments - got \(str\), but expected one of:",
    ),
    (lambda: X.view(3, 2.5), TypeError, r"view\(\): argument 'size' failed to unpack the object at pos 2"),
    (
        lambda: rl.zeros("a"),
        TypeError,
        r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not str",
    ),
    (
        lambda: rl.zeros(("a", 2)),
        TypeError,
        r"argument 'size' \(position 1\) must be tuple of ints, but found element of type str at pos 0",
    ),
    (
        lambda: rl.cat(X),
        TypeError,
        r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
    ),
    (lambda: rl.cat([X, 1]), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
    (
        lambda: X.unsqueeze(True),
        TypeError,
        r"unsqueeze\(\): argument 'dim' \(position 1\) must be int, not bool",
    ),
    (
        lambda: rl.maximum(X, 1),
        TypeError,
        r"maximum\(\): argument 'other' \(position 2\) must be Tensor, not int",
    ),
    (lambda: X + "a", TypeError, r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"),
    (lambda: rl.Tensor.add(1, X), TypeError, "doesn't apply to a 'int' object"),
    (lambda: rl.zeros(2, dtype="f"), TypeError, r"zeros\(\): argument 'dtype' must be torch.dtype, not str"),
    (
        lambda: rl.zeros(2, device=1.5),
        TypeError,
        r"zeros\(\): argument 'device' must be torch.device, not float",
    ),
    (lambda: X.item(), RuntimeError, "a Tensor with 6 elements cannot be converted to Scalar"),
    (lambda: bool(X), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (lambda: int(X), ValueError, "only one element tensors can be converted to Python scalars"),
    (
        lambda: X.size(5),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)",
    ),
    (lambda: rl.tensor([[1, 2], [3]]), ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
    (lambda: rl.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda: rl.tensor([1, "a"]), TypeError, "new\\(\\): invalid data type 'str'"),
    (lambda: rl.tensor([300], dtype=rl.uint8), RuntimeError, "value cannot be converted to type"),
    (lambda: X.to("nowhere"), RuntimeError, "device type at start of device string: nowhere"),
    (lambda: X.cuda(), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda: "a" in X, RuntimeError, "Tensor.__contains__ only supports Tensor or scalar"),
    (lambda: X.no_such_thing, AttributeError, "'Tensor' object has no attribute 'no_such_thing'"),
    (lambda: rl.no_such_thing, AttributeError, "no attribute 'no_such_thing'"),
    (lambda: rl.zeros(2**62, 2**62), (RuntimeError, MemoryError), ""),
    (lambda: rl.zeros(-1), RuntimeError, "negative dimension"),
    (lambda: rl.device("cpu", "x"), (TypeError, RuntimeError), ""),
]


@pytest.mark.parametrize(
    "call, error, text", CASES, ids=[text[:40] or str(i) for i, (_, _, text) in enumerate(CASES)]
)
def test_error(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_comparison_with_a_stranger_is_false():
    assert (X == "a") is False and (X != None) is True  # noqa: E711


def test_out_of_memory_and_linalg_errors_are_runtime_errors():
    assert issubclass(rl.OutOfMemoryError, RuntimeError) and issubclass(rl.linalg.LinAlgError, RuntimeError)
