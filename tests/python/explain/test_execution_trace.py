"""Execution traces: calls with their operands, alone and beside a profile; what chrome traces say of them."""

import json

import pytest

import rushlight as torch
from rushlight.autograd.profiler import _record_function_with_args_enter, _record_function_with_args_exit
from rushlight.profiler import ExecutionTraceObserver, profile, record_function, schedule


def nodes_of(path):
    return json.loads(path.read_text())["nodes"]


def facts(node):
    return {fact["name"]: fact["value"] for fact in node["attrs"]}


def test_nodes_name_their_caller_operands_and_results(tmp_path):
    observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
    x = torch.randn(2, 3)
    observer.start()
    with record_function("block", "said"):
        y = torch.cat([x, x.t().contiguous().t()])
        y.add_(1.5, alpha=2)
    observer.stop()
    x.exp()  # not seen
    observer.unregister_callback()
    nodes = nodes_of(tmp_path / "t.json")
    by_name = {node["name"]: node for node in nodes}
    assert nodes[0]["name"] == "[pytorch|profiler|execution_trace|process]" and nodes[0]["id"] == 1
    assert "aten::exp" not in by_name
    block, cat, add = by_name["block"], by_name["aten::cat"], by_name["aten::add_"]
    assert block["inputs"]["values"] == ["said"] and block["inputs"]["types"] == ["String"]
    assert cat["ctrl_deps"] == add["ctrl_deps"] == block["id"]
    assert cat["inputs"]["types"] == ["GenericList[Tensor(float),Tensor(float)]", "Int"]
    assert cat["inputs"]["shapes"][0] == [[2, 3], [2, 3]]
    assert cat["inputs"]["strides"][0] == [[3, 1], [1, 2]]
    (result,) = cat["outputs"]["values"]
    assert result[2:] == [0, 12, 4, "cpu"]
    assert add["inputs"]["values"][0] == result and add["inputs"]["values"][2] == 2
    assert facts(cat)["op_schema"] == "aten::cat(Tensor[] tensors, int dim=0) -> Tensor"


def test_arguments_of_ranges(tmp_path):
    observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
    x = torch.ones(2)
    observer.start()
    _record_function_with_args_exit(
        _record_function_with_args_enter("r", 1, True, 2.5, [x, x], "text", float("inf"), object())
    )
    observer.cleanup()
    (node,) = [node for node in nodes_of(tmp_path / "t.json") if node["name"] == "r"]
    assert node["inputs"]["types"] == [
        "Int", "Bool", "Double", "GenericList[Tensor(float),Tensor(float)]", "String", "Double", "None",
    ]  # fmt: skip
    assert node["inputs"]["values"][:3] == [1, True, 2.5] and node["inputs"]["values"][4:6] == ["text", "inf"]


def test_beside_a_profile_both_number_calls_alike(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(schedule=steps, execution_trace_observer=observer) as prof:
        for i in range(6):
            with record_function(f"loop {i}"):
                torch.ones(3).add(1)
            prof.step()
    prof.export_chrome_trace(tmp_path / "c.json")
    nodes = nodes_of(tmp_path / "t.json")
    assert [node["name"] for node in nodes if node["name"].startswith("loop")] == ["loop 2", "loop 3"]
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    seen = sorted(
        e["args"]["Record function id"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")
    )
    assert seen and seen == sorted(number for node in nodes if (number := facts(node)["rf_id"]))


def test_a_profile_may_begin_while_an_observer_runs(tmp_path):
    first = ExecutionTraceObserver().register_callback(tmp_path / "1.json")
    second = ExecutionTraceObserver().register_callback(tmp_path / "2.json")
    x = torch.ones(2)
    first.start()
    x.sin()
    second.start()
    with profile() as prof:
        x.cos()
    x.tan()
    first.stop()
    x.exp()
    second.cleanup()
    first.cleanup()
    assert [e.name for e in prof.events()] == ["aten::cos"]
    names = [{node["name"] for node in nodes_of(tmp_path / f"{i}.json")} for i in (1, 2)]
    assert {"aten::sin", "aten::cos", "aten::tan"} <= names[0] and "aten::exp" not in names[0]
    assert {"aten::cos", "aten::tan", "aten::exp"} <= names[1]


def test_a_file_is_complete_without_a_call_and_an_unusable_one_refused(tmp_path):
    observer = ExecutionTraceObserver().register_callback(tmp_path / "t.json")
    assert observer.is_registered and not observer.is_running()
    assert observer.get_output_file_path() == str(tmp_path / "t.json")
    observer.unregister_callback()
    assert len(nodes_of(tmp_path / "t.json")) == 1
    with pytest.raises(OSError):
        ExecutionTraceObserver().register_callback(tmp_path / "none" / "t.json")


def test_chrome_traces_tell_numbers_and_strides(tmp_path):
    x = torch.ones(4, 6)
    with profile(record_shapes=True) as prof:
        torch.add(x.t(), x.t(), alpha=3)
        torch.ones([64, 32], dtype=torch.float32)
    prof.export_chrome_trace(tmp_path / "c.json")
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    said = {e["name"]: e["args"] for e in events if e.get("cat") == "cpu_op"}
    assert said["aten::add"]["Input Strides"] == [[1, 6], [1, 6], []]
    assert said["aten::add"]["Concrete Inputs"] == ["", "", "3"]
    assert said["aten::ones"]["Concrete Inputs"][:2] == ["[64, 32]", "6"]
    assert said["aten::ones"]["Input type"][:2] == ["ScalarList", "Scalar"]
    event = next(e for e in prof.events() if e.name == "aten::ones")
    assert event.concrete_inputs[0] == [64, 32]


def test_fast_ranges_have_values_and_words():
    fast, x = torch._C._profiler._RecordFunctionFast, torch.ones(4, 4)
    with profile(record_shapes=True) as prof:
        with fast("plain"):
            x.add(1)
        scope = fast("full", [x, "text"], {"stream": 0, "grid": "(1,)", "object": object()})
        for _ in range(2):
            with scope:
                x.add(1)
    events = {e.name: e for e in prof.events()}
    assert events["plain"].input_shapes == [] and events["plain"].kwinputs == {}
    assert events["full"].input_shapes == [[4, 4], []]
    assert events["full"].kwinputs == {"stream": 0, "grid": "(1,)"}
    assert sum(e.name == "full" for e in prof.events()) == 2


def test_which_profiler_runs_and_what_it_cost():
    kinds, of_autograd = torch._C._profiler.ActiveProfilerType, torch.autograd.profiler
    assert torch._C._autograd._profiler_type() == kinds.NONE and not of_autograd._is_profiler_enabled
    with profile() as prof:
        assert torch._C._autograd._profiler_type() == kinds.KINETO and of_autograd._is_profiler_enabled
        torch.ones(2)
    assert not of_autograd._is_profiler_enabled
    stats = prof._stats()
    assert stats.number_of_events == 0
    prof.events()
    assert stats.number_of_events == 1 and stats.profiling_window_duration_sec > 0
    with legacy():
        assert torch._C._autograd._profiler_type() == kinds.LEGACY


def legacy():
    from rushlight.autograd.profiler_legacy import profile as former

    return former()


def test_arrows_to_the_backward_pass_count_from_one(tmp_path):
    def arrows():
        w = torch.ones(2, requires_grad=True)
        with profile() as prof:
            (w * 2).sum().backward()
        prof.export_chrome_trace(tmp_path / "c.json")
        events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
        return [e["id"] for e in events if e.get("cat") == "fwdbwd" and e["ph"] == "s"]

    assert arrows() == [1, 2]
    torch._C._profiler._set_fwd_bwd_enabled_val(False)
    try:
        assert arrows() == []
    finally:
        torch._C._profiler._set_fwd_bwd_enabled_val(True)
