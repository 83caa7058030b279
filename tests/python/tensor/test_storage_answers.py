"""Storages' conversions, copies and refusals beside PyTorch's."""

import pytest

import rushlight
from rushlight._command.names import is_aliased

UNTYPED_CALLS = [
    "type()", "new().nbytes()", "get_device()", "is_sparse", "is_sparse_csr", "is_hpu", "is_cuda",
    "float8_e4m3fn().tolist()", "float8_e5m2fnuz().dtype", "fill_(300).tolist()", "fill_(2.5)", "fill_('a')",
    "copy_(torch.UntypedStorage(2))", "copy_(3)", "copy_(torch.FloatStorage([2])).tolist()", "['a']", "[[0]]",
    "byteswap(3)", "pin_memory()",
]  # fmt: skip
TYPED_CALLS = [
    "get_device()", "is_sparse", "is_hpu", "copy_(torch.IntStorage([1])).tolist()",
    "copy_(torch.DoubleStorage(1))", "copy_(3)", "['a']", "[torch.tensor(0)]", "[[0]]",
    "float8_e5m2().tolist()", "pin_memory()",
]  # fmt: skip


def answer(library, kind, call):
    storage = library.FloatStorage([1.5]) if kind == "typed" else library.FloatStorage([1.5]).untyped()
    dot = "" if call.startswith("[") else "."
    try:
        return str(eval(f"storage{dot}{call}", {"storage": storage, "torch": library}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    ("kind", "call"),
    [("untyped", call) for call in UNTYPED_CALLS] + [("typed", call) for call in TYPED_CALLS],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_as_pytorchs(kind, call):
    if is_aliased():
        pytest.skip("compares with PyTorch")
    torch = pytest.importorskip("torch")
    assert answer(rushlight, kind, call).replace("rushlight", "torch") == answer(torch, kind, call)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_storage_goes_to_another_device_and_keeps_its_kind():
    typed = rushlight.FloatStorage([1.5])
    assert typed.to(device="cpu") is typed
    moved = typed.to(device="meta")
    assert (type(moved), moved.dtype, moved.size(), moved.device.type) == (
        rushlight.TypedStorage, rushlight.float32, 1, "meta",
    )  # fmt: skip
    copied = moved.clone()
    assert copied.device.type == "meta" and copied.size() == 1
    with pytest.raises(NotImplementedError, match="no data"):
        moved.cpu()
