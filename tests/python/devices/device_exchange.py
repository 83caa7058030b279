"""Device memory shared with other libraries: DLPack and __cuda_array_interface__; test_cuda.py runs them."""

import subprocess
import sys

import pytest
from device_helpers import needs_two

import rushlight as torch


def test_array_interface():
    x = torch.arange(6.0, device="cuda").view(2, 3)
    seen = x.t().__cuda_array_interface__
    assert seen == {
        "typestr": "<f4",
        "shape": (3, 2),
        "strides": (4, 12),
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    kinds = {
        torch.float16: "<f2",
        torch.int64: "<i8",
        torch.uint8: "|u1",
        torch.bool: "|b1",
        torch.complex64: "<c8",
    }
    for dtype, text in kinds.items():
        assert x.to(dtype).__cuda_array_interface__["typestr"] == text
    assert x.__cuda_array_interface__["strides"] is None
    assert torch.empty(0, device="cuda").__cuda_array_interface__["data"] == (0, False)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.clone().requires_grad_().__cuda_array_interface__  # noqa: B018
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")


class Shared:
    """An object of another library: memory of a tensor by one of the protocols, and what it was asked."""

    def __init__(self, tensor, stream=None):
        self.tensor, self.stream, self.asked = tensor, stream, []


class Array(Shared):
    @property
    def __cuda_array_interface__(self):
        more = {"version": 3, "stream": self.stream} if self.stream is not None else {}
        return {**self.tensor.__cuda_array_interface__, **more}


class Producer(Shared):
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **given):
        self.asked.append(given)
        return self.tensor.__dlpack__(**given)


def late(stream, value):
    """Three numbers that a stream still has to compute."""
    with torch.cuda.stream(stream):
        x = torch.zeros(3, device="cuda")
        for _ in range(value):
            x += 1
    return x


def test_dlpack_shares_device_memory():
    x = torch.arange(6.0, device="cuda").view(2, 3).t()
    assert x.__dlpack_device__() == (2, 0) and torch.ones(1).__dlpack_device__() == (1, 0)
    producer = Producer(x)
    y = torch.from_dlpack(producer)
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    assert producer.asked == [{"max_version": (1, 0), "stream": 1}]
    y[0, 0] = 7
    assert x[0, 0].item() == 7
    again = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert again.equal(x) and torch.from_dlpack(producer, device="cpu").tolist() == x.tolist()
    copied = torch.from_dlpack(producer, copy=True)
    assert copied.data_ptr() != x.data_ptr() and copied.equal(x)
    for make in (torch.as_tensor, torch.asarray):
        assert make(producer, device="cuda").data_ptr() == x.data_ptr()
    assert (
        torch.asarray(producer).is_cuda and torch.tensor(producer, device="cuda").data_ptr() != x.data_ptr()
    )
    for dtype in (torch.bool, torch.bfloat16, torch.complex64, torch.uint8):
        assert torch.from_dlpack(x.to(dtype)).equal(x.to(dtype))
    assert torch.from_dlpack(torch.empty(0, 2, device="cuda")).shape == (0, 2)


def test_dlpack_keeps_memory():
    x = torch.ones(1 << 20, device="cuda")
    y = torch.from_dlpack(x)
    del x
    other = torch.zeros(1 << 20, device="cuda")
    assert y.sum().item() == 1 << 20 and other.sum().item() == 0


def test_dlpack_orders_streams():
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    x = late(one, 20)
    with torch.cuda.stream(two):
        with torch.cuda.stream(one):
            capsule = x.__dlpack__(stream=two.cuda_stream)
        assert (torch.from_dlpack(capsule) * 2).tolist() == [40.0] * 3
    x = late(one, 30)
    producer = Producer(x)
    with torch.cuda.stream(one):
        torch.from_dlpack(producer)
        capsule = x.__dlpack__(stream=None)  # the default stream waits
    assert producer.asked[0]["stream"] == one.cuda_stream
    assert (torch.from_dlpack(capsule) * 2).tolist() == [60.0] * 3
    for stream, text in ((0, "unsupported stream"), (2, "per-thread"), (-3, "unsupported stream")):
        with pytest.raises(BufferError, match=text):
            x.__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream="1")


def test_dlpack_moves_to_the_asked_device():
    x = torch.arange(3, device="cuda")
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0))).device.type == "cpu"
    assert torch.from_dlpack(torch.arange(3).__dlpack__(dl_device=(2, 0))).equal(x)
    assert torch.from_dlpack(x.__dlpack__(dl_device=(2, 0), copy=False)).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="without copying"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="require gradient"):
        x.float().requires_grad_().__dlpack__()


def test_array_interface_is_read():
    x = torch.arange(6.0, device="cuda").view(2, 3).t()
    y = torch.as_tensor(Array(x), device="cuda")
    assert y.data_ptr() == x.data_ptr() and y.stride() == x.stride() and y.equal(x)
    assert torch.tensor(Array(x), device="cuda").data_ptr() != x.data_ptr()
    assert torch.as_tensor(Array(x)).tolist() == x.tolist()
    assert torch.asarray(Array(x)).data_ptr() == x.data_ptr()
    for dtype in (torch.bool, torch.int16, torch.float16, torch.complex128):
        assert torch.as_tensor(Array(x.to(dtype)), device="cuda").equal(x.to(dtype))
    assert torch.as_tensor(Array(torch.empty(0, 2, device="cuda")), device="cuda").shape == (0, 2)
    stream = torch.cuda.Stream()
    seen = torch.as_tensor(Array(late(stream, 20), stream.cuda_stream), device="cuda")
    assert (seen * 2).tolist() == [40.0] * 3
    wrong = type("Wrong", (), {})()
    host = torch.zeros(1)
    for changed, error, text in (
        ({"data": (x.data_ptr(), True)}, TypeError, "read only"),
        ({"data": (host.data_ptr(), False)}, RuntimeError, "resides on host memory"),
        ({"typestr": ">f4"}, ValueError, "byte order"),
        ({"typestr": "<V2"}, TypeError, "typestr"),
        ({"strides": (3, 3)}, ValueError, "multiple of the element"),
        ({"shape": None}, TypeError, "must exist"),
    ):
        wrong.__cuda_array_interface__ = {**x.__cuda_array_interface__, **changed}
        with pytest.raises(error, match=text):
            torch.as_tensor(wrong, device="cuda")


@needs_two
def test_dlpack_wants_the_current_device():
    x = torch.ones(2, device="cuda:1")
    with pytest.raises(BufferError, match="different CUDA device"):
        x.__dlpack__()
    with torch.cuda.device(1):
        assert torch.from_dlpack(x).device == x.device
    assert torch.as_tensor(Array(x), device="cuda:1").data_ptr() == x.data_ptr()


OTHER_PROCESS = """
import sys
import rushlight as torch

event = torch.cuda.Event.from_ipc_handle(0, bytes.fromhex(sys.stdin.readline()))
before = event.query()
print("opened", before, flush=True)
assert sys.stdin.readline() == "recorded\\n"
torch.cuda.current_stream().wait_event(event)
x = torch.ones(3, device="cuda") + 1
assert x.tolist() == [2.0] * 3
event.synchronize()
print(event.query(), flush=True)
"""


def test_events_between_processes():
    event = torch.cuda.Event(interprocess=True)
    handle = event.ipc_handle()
    assert len(handle) == 64 and event.ipc_handle() == handle
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", OTHER_PROCESS], **pipes) as other:

        def say(line):
            other.stdin.write(line + "\n")
            other.stdin.flush()

        say(handle.hex())
        assert other.stdout.readline().split() == ["opened", "True"]
        x = torch.zeros(1 << 20, device="cuda")
        for _ in range(20):
            x += 1
        event.record()
        say("recorded")
        event.synchronize()
        assert other.stdout.readline() == "True\n"
        assert other.wait() == 0
    with pytest.raises(ValueError, match="measures no time"):
        torch.cuda.Event(enable_timing=True, interprocess=True)
    with pytest.raises(RuntimeError, match="interprocess=True"):
        torch.cuda.Event().ipc_handle()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
