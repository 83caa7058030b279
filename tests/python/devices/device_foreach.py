"""Operators over lists of tensors on a device, and how often they launch; run by test_cuda.py."""

import json
import sys

import pytest

import rushlight as torch
from rushlight.profiler import profile


def lists(dtype=torch.float32):
    """Two lists: of many lengths, with nothing, one element, columns, gaps and other dtypes among them."""
    torch.manual_seed(0)
    shapes = [(3,), (), (0, 2), (1,), (5000,), (4, 6), *[(7,)] * 70]
    first, second = ([torch.rand(s, dtype=dtype) + 0.5 for s in shapes] for _ in range(2))
    first[5] = torch.rand(6, 4, dtype=dtype).t() + 0.5
    second[6] = (torch.rand(14, dtype=dtype) + 0.5)[::2]
    second[7] = second[7].double()
    return first, second


def there(tensors):
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda").copy_(t) for t in tensors]


FRESH = {
    "sqrt": lambda a, b: torch._foreach_sqrt(a),
    "exp": lambda a, b: torch._foreach_exp(a),
    "lgamma": lambda a, b: torch._foreach_lgamma(a),
    "add of lists": lambda a, b: torch._foreach_add(a, b, alpha=3),
    "add of a number": lambda a, b: torch._foreach_add(a, 2),
    "mul by numbers": lambda a, b: torch._foreach_mul(a, [i / 7 for i in range(len(a))]),
    "mul by a tensor": lambda a, b: torch._foreach_mul(a, torch.tensor(3.0, device=a[0].device)),
    "pow": lambda a, b: torch._foreach_pow(a, b),
    "maximum": lambda a, b: torch._foreach_maximum(a, b),
    "lerp": lambda a, b: torch._foreach_lerp(a, [t * 2 for t in a], 0.25),
    "addcdiv": lambda a, b: torch._foreach_addcdiv(a, a, [t + 2 for t in a], list(range(len(a)))),
    "norm": lambda a, b: torch._foreach_norm(a),
    "norm of order 1": lambda a, b: torch._foreach_norm(a, 1),
    "norm of order 3": lambda a, b: torch._foreach_norm(a, 3),
    "norm of the largest": lambda a, b: torch._foreach_norm([t for t in a if t.numel()], float("inf")),
    "max": lambda a, b: torch._foreach_max([t for t in a if t.numel()]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FRESH)
def test_results(name, dtype):
    a, b = lists(dtype)
    tolerance = 1e-6 if dtype is torch.float32 else 1e-2
    for on_device, here in zip(FRESH[name](there(a), there(b)), FRESH[name](a, b), strict=True):
        torch.testing.assert_close(
            on_device.cpu(), here, atol=tolerance, rtol=tolerance * 10, check_stride=True
        )


def test_in_place():
    def steps(a, b):
        torch._foreach_mul_(a, 0.9)
        torch._foreach_add_(a, b, alpha=0.1)
        torch._foreach_addcmul_(a, a, a, 2)  # reads what it writes
        torch._foreach_sqrt_(a)
        torch._foreach_add_([t.view(-1) for t in a if t.is_contiguous()], 1)
        return a

    a, b = lists()
    on_device = steps(there(a), there(b))
    for x, y in zip(on_device, steps(a, b), strict=True):
        torch.testing.assert_close(x.cpu(), y, atol=1e-6, rtol=1e-5)


def test_a_tensor_that_comes_again_is_written_again():
    for device in ("cpu", "cuda"):
        x, y = torch.ones(4, device=device), torch.ones(4, device=device)
        torch._foreach_mul_([x, y, x, x[1:3]], [2.0, 3.0, 5.0, 7.0])
        assert x.tolist() == [10, 70, 70, 10] and y.tolist() == [3] * 4
        torch._foreach_add_([x, y], [y, x])  # the second reads what the first wrote
        assert x.tolist() == [13, 73, 73, 13] and y.tolist() == [16, 76, 76, 16]


def test_an_error_in_the_middle_leaves_what_came_before():
    a = [torch.ones(3, device="cuda") for _ in range(4)]
    b = [torch.ones(n, device="cuda") for n in (3, 3, 2, 3)]
    with pytest.raises(RuntimeError, match="size"):
        torch._foreach_add_(a, b)
    assert [t.sum().item() for t in a] == [6, 6, 3, 3]


def test_gradients():
    grads = []
    for device in ("cpu", "cuda"):
        a = [t.detach().to(device).requires_grad_() for t in lists()[0] if t.numel()]
        norms = torch._foreach_norm(torch._foreach_mul(a, [0.5 + i for i in range(len(a))]))
        torch.stack(norms).sum().backward()
        grads.append([t.grad.cpu() for t in a])
    torch.testing.assert_close(*grads)


def test_complex_numbers_take_the_way_round():
    a = [torch.randn(3, dtype=torch.complex64) for _ in range(3)]
    for x, y in zip(torch._foreach_add(there(a), 1j), torch._foreach_add(a, 1j), strict=True):
        torch.testing.assert_close(x.cpu(), y)


def launches(tmp_path, work):
    with profile() as p:
        work()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    return sum(e.get("cat") == "kernel" for e in events)


def test_lists_are_few_launches(tmp_path):
    a, b = ([torch.randn(11, 3, device="cuda") for _ in range(90)] for _ in range(2))
    factor = torch.tensor(0.5, device="cuda")
    for work in (
        lambda: torch._foreach_add_(a, b),
        lambda: torch._foreach_mul(a, factor),
        lambda: torch._foreach_addcdiv_(a, b, b, [float(i) for i in range(90)]),
        lambda: torch._foreach_norm(a),
    ):
        assert launches(tmp_path, work) <= 2


def test_clipping_is_few_launches(tmp_path):
    params = [torch.nn.Parameter(torch.randn(9, device="cuda")) for _ in range(80)]
    for p in params:
        p.grad = torch.ones(9, device="cuda")
    assert launches(tmp_path, lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)) <= 12
    torch.testing.assert_close(params[3].grad.cpu(), torch.full((9,), 720**-0.5))


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:], __file__]))
