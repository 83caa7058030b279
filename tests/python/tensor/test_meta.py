"""The meta device: modules and programs without memory."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._command.names import is_aliased


def test_a_module_is_made_on_the_meta_device_and_filled_later():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, device="meta"), nn.BatchNorm2d(8, device="meta"))
    assert all(p.is_meta for p in net.parameters())
    assert net(torch.empty(2, 3, 9, 9, device="meta")).shape == (2, 8, 7, 7)
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.to("cpu")
    real = net.to_empty(device="cpu")
    assert not any(t.is_meta for t in (*real.parameters(), *real.buffers()))


def test_device_context_and_default_device_make_meta_tensors():
    with torch.device("meta"):
        assert torch.zeros(3).is_meta
        assert nn.Linear(3, 4).weight.is_meta
    assert not torch.zeros(3).is_meta
    torch.set_default_device("meta")
    try:
        assert torch.rand(2).is_meta and nn.Embedding(3, 4).weight.is_meta
    finally:
        torch.set_default_device(None)
    assert torch.rand(2).device.type == "cpu"


def test_assign_takes_the_state_over():
    with torch.device("meta"):
        net = nn.Linear(3, 4)
    state = nn.Linear(3, 4).state_dict()
    net.load_state_dict(state, assign=True)
    assert net.weight.data_ptr() == state["weight"].data_ptr()
    assert isinstance(net.weight, nn.Parameter) and net.weight.requires_grad


def test_skip_init_gives_memory_without_initialising():
    net = nn.utils.skip_init(nn.Linear, 3, 4)
    assert net.weight.shape == (4, 3) and not net.weight.is_meta


def test_nothing_is_allocated_or_computed():
    huge = torch.empty(1 << 20, 1 << 20, device="meta")
    assert (huge @ huge).sum(0).shape == (1 << 20,)
    assert huge.add_(1) is huge and huge.nbytes == 1 << 42


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format])
def test_memory_format_is_carried_through(format):
    x = torch.empty(2, 4, 5, 6, device="meta").to(memory_format=format)
    real = torch.zeros(2, 4, 5, 6).to(memory_format=format)
    for f in (
        torch.relu,
        lambda t: t + 1,
        lambda t: t.clone(),
        lambda t: torch.empty_like(t),
        lambda t: t.double(),
    ):
        assert f(x).stride() == f(real).stride()


def test_gradients_have_shapes():
    x = torch.empty(3, 4, device="meta", requires_grad=True)
    torch.nn.functional.softmax(x @ torch.empty(4, 5, device="meta"), -1).sum().backward()
    assert x.grad.is_meta and x.grad.shape == (3, 4)


NO_VALUE = r"Tensor.item\(\) cannot be called on meta tensors"
VALUES = {
    "item": (lambda t: t[0, 0].item(), RuntimeError, NO_VALUE),
    "bool": (lambda t: bool(t[0, 0]), RuntimeError, NO_VALUE),
    "float": (lambda t: float(t[0, 0]), RuntimeError, NO_VALUE),
    "nonzero": (lambda t: t.nonzero(), NotImplementedError, "depends on their values"),
    "masked_select": (lambda t: t.masked_select(t > 0), NotImplementedError, "depends on their values"),
    "mask": (lambda t: t[t > 0], NotImplementedError, "meta"),
    "unique": (lambda t: t.unique(), NotImplementedError, "depends on their values"),
    "equal": (lambda t: torch.equal(t, t), NotImplementedError, "meta"),
    "tolist": (lambda t: t.tolist(), NotImplementedError, "no data"),
    "cpu": (lambda t: t.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    "copy_": (
        lambda t: torch.ones(2, 2).copy_(t),
        NotImplementedError,
        "Cannot copy out of meta tensor; no data!",
    ),
    "numpy": (lambda t: t.numpy(), TypeError, "meta"),
    "mixed": (lambda t: t + torch.ones(2, 2), RuntimeError, "not on the expected device meta"),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_needs_values_is_refused(name):
    call, error, text = VALUES[name]
    with pytest.raises(error, match=text):
        call(torch.empty(2, 2, device="meta"))


def test_refusals_are_in_the_records():
    refused = {r["name"] for r in torch._C._operator_records() if r["meta_refusal"]}
    assert {"nonzero", "masked_select", "equal", "_local_scalar_dense"} <= refused


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_output_that_is_resized_lies_as_a_new_result_would(device):
    x = torch.ones(2, 3, 4, 4, device=device).contiguous(memory_format=torch.channels_last)
    empty, full = torch.empty(0, device=device), torch.empty(2, 3, 8, 8, device=device)
    torch._C._nn.upsample_nearest2d(x, (8, 8), out=empty)
    assert empty.is_contiguous(memory_format=torch.channels_last)
    torch._C._nn.upsample_nearest2d(x, (8, 8), out=full)
    assert full.is_contiguous()
    if device == "cpu":
        assert empty.equal(full)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double"):
        torch._C._nn.upsample_nearest2d(x, (8, 8), out=full.double())


@pytest.mark.parametrize(
    "call",
    [
        lambda t, w, rows: t.nn.functional.embedding(rows, w),
        lambda t, w, rows: t.nn.functional.embedding_bag(rows, w, t.tensor([0, 4])),
        lambda t, w, rows: w.gather(0, rows[:, None]),
        lambda t, w, rows: w.index_select(0, rows),
        lambda t, w, rows: w @ t.ones(3, 5),
    ],
)
def test_forms_follow_from_operands_on_the_cpu(call):
    libraries = [torch] if is_aliased() else [torch, pytest.importorskip("torch")]
    found = []
    for t in libraries:
        weight = t.nn.Parameter(t.empty(10, 3, device="meta"))
        out = call(t, weight, t.tensor([1, 2, 4, 5, 4, 3, 2, 9]))
        found.append((tuple(out.shape), str(out.device), out.requires_grad))
    assert found[0] == found[-1] and found[0][1] == "meta"


def test_tensors_without_data_are_not_written_to_others():
    source, rows = torch.ones(1, device="meta"), torch.tensor([0])
    for write in (
        lambda x: x.scatter_(0, rows, source),
        lambda x: x.index_add_(0, rows, source),
        lambda x: x.addmv_(torch.ones(3, 3, device="meta"), torch.ones(3)),
        lambda x: torch.mv(torch.ones(3, 3, device="meta"), torch.ones(3), out=x),
    ):
        with pytest.raises(RuntimeError, match="meta"):
            write(torch.ones(3))


def test_fake_embeddings_without_data_take_rows_from_the_cpu():
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        bag = nn.EmbeddingBag(10, 3, mode="sum", device="meta")
        out = bag(torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2]))
        assert out.shape == (2, 3) and out.device.type == "meta"
        with pytest.raises(RuntimeError, match="found two different devices"):
            bag.weight @ torch.ones(3, 2)
