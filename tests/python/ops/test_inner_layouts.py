"""Operators that others call, backward passes above all, take their operands in any layout: saved results and
statistics too, which the library itself passes contiguous. Programs call them by `torch.ops.aten`."""

import engine
import pytest
from loader import each, main_dtype, samples
from test_ops import _reversed, _strided, _transposed

import rushlight as rl
from rushlight.utils._python_dispatch import TorchDispatchMode

# Views give what they are given, and a view may be refused where the layout does not allow it.
REFUSED = "view size is not compatible"


class _Calls(TorchDispatchMode):
    """Keeps the calls of operators, with their arguments."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        unknown = rl.Tag.nondeterministic_seeded in function.tags or "empty" in function._schema.name
        if not (function.is_view or function._schema.is_mutable or unknown):
            self.calls.append((function, args, kwargs or {}))
        return function(*args, **(kwargs or {}))


def _calls(row, sample, dtype):
    """What is called by the operator and its backward pass."""
    leaves, call = engine.variables(rl, row, sample, dtype)
    with _Calls() as seen:
        results = [t for t in engine.tensors_in(call(leaves)) if t.requires_grad]
        if results:
            rl.autograd.grad(results, leaves, [rl.ones_like(t) for t in results], allow_unused=True)
    return seen.calls


def _dense_tensor(value):
    return isinstance(value, rl.Tensor) and value.layout == rl.strided and not value.is_quantized


@each("gradients")
@pytest.mark.parametrize(
    "layout", [_transposed, _reversed, _strided], ids=["transposed", "reversed", "strided"]
)
def test_layouts_of_inner_calls(row, layout):
    dtype = main_dtype(row)
    if row.name in ("Tensor.resize_", "Tensor.resize_as_"):
        pytest.skip("variables cannot be resized")
    for sample in samples(row, dtype)[:3]:
        for function, args, kwargs in _calls(row, sample, dtype):
            wanted = engine.tensors_in(function(*args, **kwargs))
            for place in (i for i, value in enumerate(args) if _dense_tensor(value)):
                try:
                    found = function(*args[:place], layout(args[place]), *args[place + 1 :], **kwargs)
                except RuntimeError as error:
                    if REFUSED not in str(error):
                        raise
                    continue
                for one, other in zip(engine.tensors_in(found), wanted):
                    what = f"{function}, argument {place}"
                    rl.testing.assert_close(one, other, equal_nan=True, msg=what)
