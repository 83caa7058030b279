"""Profiles of what devices do; test_cuda.py runs them on the emulated one."""

import json
import sys

import pytest
from device_helpers import emulated

import rushlight as torch
from rushlight.profiler import ProfilerActivity, profile, record_function, supported_activities


def recorded(tmp_path, **options):
    model = torch.nn.Linear(64, 32).cuda()
    x = torch.randn(16, 64)
    torch.cuda.synchronize()
    with profile(**options) as p:
        with record_function("step"):
            loss = model(x.cuda()).relu().sum()
            loss.backward()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    return p, json.loads(path.read_text())["traceEvents"]


def test_kernels_are_in_the_trace_with_their_causes(tmp_path):
    assert supported_activities() == {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    p, events = recorded(tmp_path)
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    names = {e["name"] for e in work}
    if emulated:
        assert {"copy", "formula"} <= names and any("product" in name for name in names), names
    assert any(e["cat"] == "gpu_memcpy" and e["args"]["bytes"] == 16 * 64 * 4 for e in work)
    calls = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    causes = {(calls[e["args"]["External id"]], e["name"]) for e in work}
    if emulated:
        assert ("aten::addmm", "product_bias") in causes and ("aten::relu", "formula") in causes, causes
        assert any("mm" in op and kernel == "product" for op, kernel in causes)  # of the backward pass
    assert {"aten::addmm", "aten::relu", "aten::sum"} <= {op for op, _ in causes}, causes
    starts = {e["id"]: e for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e.get("cat") == "ac2g" and e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == len(work)
    # Work begins after the call that asked for it, on the same clock.
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)
    metadata = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"]
    assert sorted(metadata) == ["GPU 0", "python"]


def test_sums_and_tables(tmp_path):
    p, events = recorded(tmp_path, record_shapes=True)
    sums = {e.key: e for e in p.key_averages()}
    assert sums["aten::addmm"].self_device_time_total > 0
    if emulated:
        kernel = sums["product_bias"]
        assert kernel.device_time_total > 0 and kernel.cpu_time_total == 0
        assert sums["aten::addmm"].self_device_time_total == pytest.approx(kernel.device_time_total)
    assert sums["step"].device_time_total >= sums["aten::addmm"].device_time_total
    durations = sum(e["dur"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy"))
    operators = sum(e.self_device_time_total for e in p.events() if e.device_type.name == "CPU")
    assert operators == pytest.approx(durations, rel=1e-3)
    table = p.key_averages().table(sort_by="cuda_time_total")
    assert "Self CUDA" in table and "Self CUDA time total" in table
    assert next(iter(p.events().table(sort_by="self_cuda_time_total"))) is not None


def test_only_the_host_when_only_the_host_is_asked_for(tmp_path):
    p, events = recorded(tmp_path, activities=[ProfilerActivity.CPU])
    assert not [e for e in events if e.get("cat") == "kernel"]
    assert "CUDA" not in p.key_averages().table()


def test_streams_are_told_apart(tmp_path):
    a = torch.ones(100, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.autograd.profiler.profile(use_device="cuda") as p:
        a.mul(2)
        with torch.cuda.stream(side):
            a.mul(3)
    kernels = [e for e in p.function_events if e.device_type.name == "CUDA"]
    assert len({e.thread for e in kernels}) == 2
    assert emulated is None or {e.name for e in kernels} == {"formula"}


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
