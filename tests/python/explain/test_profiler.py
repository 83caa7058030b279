"""torch.profiler and torch.autograd.profiler: what is recorded, summed up and written."""

import gzip
import json
import threading

import pytest

import rushlight as torch
from rushlight.autograd import profiler as autograd_profiler
from rushlight.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def names(prof):
    return [event.name for event in prof.events()]


def inside(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event.name


def test_operators_nest_as_they_call_each_other():
    x, w = torch.randn(2, 4), torch.randn(3, 4)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function("forward"):
            torch.nn.functional.linear(x, w).relu_()
    by_name = {event.name: event for event in prof.events()}
    assert {"forward", "aten::linear", "aten::relu_"} <= set(by_name)
    assert list(inside(by_name["aten::linear"])) == ["forward"]
    forward = by_name["forward"]
    assert forward.is_user_annotation and forward.cpu_time_total >= by_name["aten::linear"].cpu_time_total
    parts = sum(child.cpu_time_total for child in forward.cpu_children)
    assert forward.self_cpu_time_total == pytest.approx(forward.cpu_time_total - parts)


def test_the_backward_pass_is_part_of_it_and_is_linked_to_the_forward_pass():
    w = torch.randn(4, 4, requires_grad=True)
    with profile() as prof:
        (w @ w).sum().backward()
    events = {event.name: event for event in prof.events()}
    node, product = events["MmBackward0"], events["aten::mm"]
    forward = next(e for e in prof.events() if e.name == "aten::mm")
    assert node.sequence_nr == forward.sequence_nr >= 0
    assert "autograd::engine::evaluate_function: MmBackward0" in inside(node)
    assert "MmBackward0" in inside(product)  # the last product is the derivative's
    assert "torch::autograd::AccumulateGrad" in events


def test_nothing_is_recorded_outside_and_in_other_threads():
    x = torch.ones(3)
    with profile() as prof:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        x.sin()
    x.cos()
    assert names(prof) == ["aten::sin"]
    assert torch._C._profiler_enabled() is False


def all_threads(**options):
    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    return profile(experimental_config=config, **options)


def test_threads_that_begin_are_recorded_where_that_is_asked_for():
    x = torch.ones(3)
    previous = threading.getprofile()
    with all_threads(record_shapes=True) as prof:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        x.sin()
    assert sorted(names(prof)) == ["aten::exp", "aten::sin"]
    assert len({event.thread for event in prof.events()}) == 2
    assert threading.getprofile() is previous


def test_threads_that_run_join_and_leave():
    x = torch.ones(3)
    turns, done = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(3)]

    def program():
        for turn, ready in zip(turns, done):
            turn.wait(60)
            x.exp()
            ready.set()

    def take_turn(number):
        turns[number].set()
        assert done[number].wait(60)

    thread = threading.Thread(target=program)
    thread.start()
    with all_threads() as first:
        take_turn(0)
    take_turn(1)
    with profile() as second:
        take_turn(2)
        x.sin()
    thread.join()
    assert names(first) == ["aten::exp"] and names(second) == ["aten::sin"]


def test_the_end_of_a_recording_does_not_disturb_threads_that_go_on():
    stop = threading.Event()
    w = torch.randn(64, 64, requires_grad=True)

    failures = []

    def program():
        try:
            while not stop.is_set():
                (w.detach().requires_grad_() @ w).sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=program) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            with all_threads(record_shapes=True, profile_memory=True, with_stack=True) as prof:
                w.detach().exp()
            assert "aten::exp" in names(prof)
            assert all(event.time_range.end >= event.time_range.start for event in prof.events())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_deep_reentrant_backward_passes_are_recorded_on_their_threads():
    class Reenter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth > 0:
                with torch.enable_grad():
                    y = torch.ones(1, requires_grad=True)
                    Reenter.apply(y, ctx.depth - 1).sum().backward()
            return grad, None

    x = torch.ones(1, requires_grad=True)
    with profile() as prof:
        Reenter.apply(x, 70).sum().backward()
    nodes = [event for event in prof.events() if event.name == "ReenterBackward"]
    assert len(nodes) == 71
    assert len({event.thread for event in nodes}) > 1


def test_shapes_memory_stacks_and_flops():
    a, b = torch.randn(32, 8), torch.randn(8, 64)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
        a.matmul(b)
        torch.cat([a, a])
    events = {event.name: event for event in prof.events()}
    assert events["aten::mm"].input_shapes == [[32, 8], [8, 64]]
    assert events["aten::cat"].structured_input_shapes[0] == [[32, 8], [32, 8]]
    assert events["aten::cat"].input_shapes[0] == []
    assert events["aten::mm"].flops == 2 * 32 * 8 * 64
    assert events["aten::matmul"].flops is None  # its product is counted once
    assert events["aten::matmul"].cpu_memory_usage >= 32 * 64 * 4
    assert "test_profiler.py" in events["aten::mm"].stack[0]
    assert "test_shapes_memory_stacks_and_flops" in events["aten::mm"].stack[0]
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
    for heading in ("Input Shapes", "CPU Mem", "Total KFLOPs"):
        assert heading in table
    by_stack = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in by_stack


def test_memory_outside_of_operators_is_an_event_of_its_own(tmp_path):
    with profile(profile_memory=True) as prof:
        x = torch.ones(1000)
        del x
    outside = [event for event in prof.events() if event.name == "[memory]"]
    assert [event.cpu_memory_usage for event in outside] == [-4000]
    (row,) = [total for total in prof.key_averages() if total.key == "[memory]"]
    assert row.cpu_memory_usage == row.self_cpu_memory_usage == -4000 and row.cpu_time_total == 0
    assert "[memory]" in prof.key_averages().table()
    assert sum(event.self_cpu_memory_usage for event in prof.events()) == 0
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["ph"] for event in trace if event["name"] == "[memory]"} == {"i"}


def test_sums_and_tables():
    x = torch.ones(8)
    with autograd_profiler.profile() as prof:
        for _ in range(5):
            x.exp()
        x.log()
    sums = {total.key: total for total in prof.key_averages()}
    assert sums["aten::exp"].count == 5 and sums["aten::log"].count == 1
    exps = [event.cpu_time_total for event in prof.function_events if event.name == "aten::exp"]
    assert sums["aten::exp"].cpu_time_total == pytest.approx(sum(exps))
    assert sums["aten::exp"].cpu_time == pytest.approx(sum(exps) / 5)
    assert prof.total_average().count == 6
    table = prof.key_averages().table(sort_by="count", row_limit=1, header="loop")
    assert "aten::exp" in table and "aten::log" not in table and "loop" in table
    assert table.rstrip().splitlines()[-1].startswith("Self CPU time total: ")
    assert "aten::log" in str(prof)
    with pytest.raises(ValueError, match="sort_by should be one of"):
        prof.table(sort_by="colour")
    with pytest.raises(RuntimeError, match="didn't finish"):
        autograd_profiler.profile().function_events  # noqa: B018


def test_the_table_looks_like_pytorchs():
    oracle = pytest.importorskip("torch")

    def headings(torch):
        with torch.autograd.profiler.profile(record_shapes=True, profile_memory=True) as prof:
            torch.ones(2).exp()
        return prof.key_averages(group_by_input_shape=True).table(max_name_column_width=20).splitlines()[1]

    assert headings(torch).split() == headings(oracle).split()


def test_chrome_traces(tmp_path):
    w = torch.randn(4, 4, requires_grad=True)
    with profile(record_shapes=True) as prof:
        prof.add_metadata("run", "first")
        with record_function("step"):
            (w @ w).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        trace = json.load(file)
    assert trace["run"] == "first" and trace["schemaVersion"] == 1
    complete = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["cat"] for e in complete} == {"cpu_op", "user_annotation", "Trace"}
    product = next(e for e in complete if e["name"] == "aten::mm")
    assert product["args"]["Input Dims"] == [[4, 4], [4, 4]] and product["args"]["Input type"][0] == "float"
    step = next(e for e in complete if e["name"] == "step")
    assert step["ts"] <= product["ts"] <= product["ts"] + product["dur"] <= step["ts"] + step["dur"]
    arrows = [e for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
    assert {e["ph"] for e in arrows} == {"s", "f"}
    starts = {e["id"]: e["ts"] for e in arrows if e["ph"] == "s"}
    assert all(starts[e["id"]] <= e["ts"] for e in arrows if e["ph"] == "f")


def test_stacks_for_flame_graphs(tmp_path):
    with profile(with_stack=True) as prof:
        torch.randn(300, 300).exp()
    prof.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)
    assert any("test_stacks_for_flame_graphs" in line for line in lines)


@pytest.mark.parametrize("arguments", [(1, 1, 2, 2, 0), (0, 2, 3, 0, 4), (2, 1, 1, 1, 1), (3, 1, 2, 2, 0, 1)])
def test_schedules_are_pytorchs(arguments):
    oracle = pytest.importorskip("torch")
    words = dict(zip(("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"), arguments))
    ours, theirs = schedule(**words), oracle.profiler.schedule(**words)
    assert [ours(step).name for step in range(30)] == [theirs(step).name for step in range(30)]


def test_a_schedule_records_its_active_steps(tmp_path):
    seen = []

    def ready(prof):
        seen.append([name for name in names(prof) if name.startswith("ProfilerStep")])
        torch.profiler.tensorboard_trace_handler(str(tmp_path))(prof)

    x = torch.ones(3)
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(10):
            x.exp()
            prof.step()
    assert seen == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert len(list(tmp_path.glob("*.pt.trace.json"))) == 2
    assert plan(0) is ProfilerAction.NONE


def test_start_and_stop_by_hand_and_accumulation():
    calls = []
    prof = profile(on_trace_ready=calls.append, acc_events=True)
    for _ in range(2):
        prof.start()
        torch.ones(2).exp()
        prof.stop()
    assert len(calls) == 2
    assert names(prof).count("aten::exp") == 2


def test_recording_can_pause():
    x = torch.ones(2)
    with profile() as prof:
        x.exp()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        x.log()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        x.sin()
    assert names(prof) == ["aten::exp", "aten::sin"]


def test_ranges_decorate_functions_and_survive_errors():
    @record_function("named")
    def fail():
        raise KeyError("inside")

    with profile() as prof:
        with pytest.raises(KeyError):
            fail()
        torch.ones(2).exp()
    events = {event.name: event for event in prof.events()}
    assert events["named"].cpu_parent is None and events["aten::exp"].cpu_parent is None
    with record_function("unobserved"):  # no profiler is running
        pass
    with pytest.raises(TypeError):
        with profile(), record_function(3):
            pass


def test_optimizers_name_their_steps():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([p])
    p.sum().backward()
    with profile() as prof:
        optimizer.step()
        optimizer.zero_grad()
    assert {"Optimizer.step#Adam.step", "Optimizer.zero_grad#Adam.zero_grad"} <= set(names(prof))


def test_loaders_name_their_batches():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(4)), batch_size=2)
    with profile() as prof:
        assert len(list(loader)) == 2
    batches = [e for e in prof.events() if e.name.startswith("enumerate(DataLoader)#")]
    assert len(batches) == 3 and all(e.name.endswith(".__next__") for e in batches)  # the last finds the end
    assert batches[0].cpu_children and not batches[2].cpu_children


def test_custom_operators_have_their_own_names():
    @torch.library.custom_op("profiled::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with profile() as prof:
        double(torch.ones(2))
        torch.linalg.inv(torch.eye(2))
        torch.ones(2).add_(1)
    assert {"profiled::double", "aten::linalg_inv", "aten::add_"} <= set(names(prof))


def test_only_one_profiler_runs_at_a_time():
    with profile() as outer:
        with pytest.raises(RuntimeError, match="another profiler is running"):
            with profile():
                pass
        torch.ones(2).exp()
    assert "aten::exp" in names(outer)
    with pytest.raises(RuntimeError, match="no profiler is running"):
        torch._C._profiler_stop()


def test_what_is_not_there_says_so():
    with pytest.raises(RuntimeError, match="CUDA"):
        with autograd_profiler.emit_nvtx():
            pass
    with autograd_profiler.emit_nvtx(enabled=False):
        pass
    with pytest.warns(UserWarning, match="not available"):
        autograd_profiler.profile(use_device="cuda")
    assert torch.profiler.supported_activities() == {ProfilerActivity.CPU}


def test_classes_of_the_program_do_not_stop_a_profile():
    """Modules that can't be hashed or lack shapes, optimizers that keep their state in their own way."""

    class Compared(torch.nn.Linear):
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError("not comparable")

    class Keeps(torch.optim.Optimizer):
        def step(self, closure=None):
            self.state["steps"] = self.state.get("steps", 0) + 1

    layer = torch.nn.Linear(2, 2)
    keeps = Keeps(layer.parameters(), {})
    keeps.step()
    unfinished = torch.optim.SGD.__new__(torch.optim.SGD)  # alive, and without any state
    lazy = torch.nn.LazyLinear(2)  # whose parameters have no memory
    module = Compared(2, 2)
    with torch.profiler.profile(with_modules=True, profile_memory=True, with_stack=True) as prof:
        module(torch.ones(1, 2)).sum().backward()
    names = {event.key for event in prof.key_averages()}
    assert "nn.Module: Compared" in names and "aten::linear" in names
    assert keeps.state["steps"] == 1 and not vars(unfinished) and lazy.has_uninitialized_params()


def test_traces_end_with_the_window_of_the_recording(tmp_path):
    with profile(with_stack=True, profile_memory=True) as prof:
        torch.ones(4, 4) + 1
    prof.export_chrome_trace(tmp_path / "trace.json")
    *events, span, _, begin, end = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert span["name"] == "PyTorch Profiler (0)" and begin["name"] == "Iteration Start: PyTorch Profiler"
    assert end["name"] == "Record Window End" and span["ts"] + span["dur"] <= end["ts"]
    timed = [event for event in events if "ts" in event]
    assert all(span["ts"] <= event["ts"] <= event["ts"] + event.get("dur", 0) <= end["ts"] for event in timed)
    assert any(event["name"] == "aten::add" for event in timed)
