"""Profiles with stacks: calls of Python functions as events, in tables, traces and trees."""

import json
import threading

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight.autograd.profiler import record_function
from rushlight.profiler import profile

CPU = torch.profiler.ProfilerActivity.CPU


def inner(x):
    return x.exp()


def outer(x):
    with record_function("named"):
        y = inner(x)
    return sum([len([1]), 2]) and y


def fails():
    raise ValueError("as intended")


def by_name(prof):
    return {event.name.rsplit(": ")[-1]: event for event in prof.events()}


def chain(event):
    while event is not None:
        yield event.name.rsplit(": ")[-1]
        event = event.cpu_parent


def test_operators_lie_inside_of_the_functions_that_call_them():
    with profile(with_stack=True) as prof:
        outer(torch.ones(3))
    events = by_name(prof)
    here = list(chain(events["aten::exp"]))
    wanted = ["aten::exp", "inner", "named", "outer"]
    assert here[:4] == wanted
    assert "test_operators_lie_inside_of_the_functions_that_call_them" in here[4:]
    assert events["inner"].is_python_function and not events["aten::exp"].is_python_function
    assert events["inner"].name.endswith(f"({inner.__code__.co_firstlineno}): inner")
    # What was called after the range has ended is not inside of it.
    assert list(chain(events["<built-in function sum>"]))[:2] == ["<built-in function sum>", "outer"]


def test_functions_that_fail_and_generators_close_their_events():
    def numbers():
        yield inner(torch.ones(2))
        yield 1

    with profile(with_stack=True) as prof:
        with pytest.raises(ValueError):
            fails()
        values = numbers()
        next(values)
        outer(torch.ones(3))
        next(values)
    found = [list(chain(e)) for e in prof.events() if e.name == "aten::exp"]
    assert [here[1:3] for here in found] == [["inner", "numbers"], ["inner", "named"]]
    assert all("fails" not in here for here in found)
    assert sum(e.name.endswith(": numbers") for e in prof.events()) == 2


def test_recursion_is_not_one_call():
    def down(n):
        return down(n - 1) if n else 0

    with profile(with_stack=True) as prof:
        down(4)
    assert sum(e.name.endswith(": down") for e in prof.events()) == 5
    sums = {e.key.rsplit(": ")[-1]: e for e in prof.key_averages()}
    assert sums["down"].count == 5


def test_nothing_is_recorded_without_stacks_or_after_the_end():
    with profile() as prof:
        outer(torch.ones(3))
    assert not any(e.is_python_function for e in prof.events())
    with profile(with_stack=True) as prof:
        outer(torch.ones(3))
    count = len(prof.events())
    inner(torch.ones(3))
    assert len(prof.events()) == count and threading.getprofile() is None
    import sys

    assert sys.getprofile() is None


def test_a_profiler_of_the_programs_own_is_left_alone():
    import cProfile

    own = cProfile.Profile()
    own.enable()
    try:
        with profile(with_stack=True) as prof:
            inner(torch.ones(3))
    finally:
        own.disable()
    assert "aten::exp" in by_name(prof) and "inner" not in by_name(prof)
    assert any(entry.code == inner.__code__ for entry in own.getstats())


def test_modules_are_named_as_pytorchs_and_know_their_parameters():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model(torch.ones(1, 3)).sum().backward()
    with profile(with_stack=True) as prof:
        model(torch.ones(1, 3))
    tree = prof.profiler.kineto_results.experimental_event_tree()
    from rushlight.profiler import _utils

    nodes = [n for n in _utils.traverse_dfs(tree) if getattr(n.extra_fields, "module", None)]
    assert [n.name for n in nodes] == [
        f"nn.Module: {name}" for name in ("Sequential_0", "Linear_0", "ReLU_0", "Linear_1")
    ]
    last = nodes[-1].extra_fields.module
    assert last.cls_name == "Linear" and last.self_ptr == id(model[2])
    assert [(name, p.sizes, g.sizes) for name, p, g in last.parameters] == [
        ("weight", [2, 4], [2, 4]),
        ("bias", [2], [2]),
    ]
    assert last.parameters[0][1].storage_data_ptr == model[2].weight.untyped_storage().data_ptr()
    assert not any("_before" in n.name for n in _utils.traverse_dfs(tree))


def test_threads_that_run_are_recorded_from_their_next_call_on():
    ready, go, done = threading.Event(), threading.Event(), threading.Event()

    def known_before():
        ready.set()
        go.wait(20)
        inner(torch.ones(2))
        done.set()

    thread = threading.Thread(target=known_before)
    thread.start()
    ready.wait(20)
    try:
        with profile(with_stack=True) as prof:
            go.set()
            assert done.wait(20)
    finally:
        go.set()
        thread.join(20)
    found = [e for e in prof.events() if e.name.endswith((": inner", ": known_before"))]
    assert [e.name.rsplit(": ")[-1] for e in found] == ["known_before", "inner"]
    assert list(chain(found[1]))[1] == "known_before" and found[1].thread != threading.get_native_id()


def test_traces_name_functions_as_pytorchs(tmp_path):
    if is_aliased():
        pytest.skip("compares with PyTorch")
    oracle = pytest.importorskip("torch")
    found = []
    for t in (torch, oracle):
        model = t.nn.Linear(2, 2)

        def forward(x, model=model):
            return len([model(x)])

        with t.profiler.profile(with_stack=True, activities=[t.profiler.ProfilerActivity.CPU]) as prof:
            forward(t.ones(1, 2))
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        events = [e for e in events if e.get("cat") == "python_function"]
        ours = [e for e in events if e["name"].rsplit(": ")[-1] in ("forward", "<built-in function len>")]
        ours = [e for e in ours if "linear.py" not in e["name"]][:2]
        above = {e["args"]["Python id"]: e for e in events}
        module = next(e for e in events if e["name"] == "nn.Module: Linear_0")
        found.append(
            [e["name"] for e in ours]
            + [above[ours[1]["args"]["Python parent id"]]["name"], module["args"]["Python module id"]]
        )
    assert found[0] == found[1]


def test_trees_say_where_calls_came_from():
    with profile(with_stack=True) as prof:
        outer(torch.ones(3))
    from rushlight.profiler import _utils

    nodes = list(_utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()))
    call = next(n for n in nodes if n.name.endswith(": inner")).extra_fields
    first = inner.__code__.co_firstlineno
    assert (call.callsite.function_name, call.callsite.line_number) == ("inner", first)
    assert call.caller.function_name == "outer"
    assert call.caller.line_number == outer.__code__.co_firstlineno + 2
    builtin = next(n for n in nodes if n.name == "<built-in function len>")
    assert builtin.tag.name == "PyCCall" and builtin.extra_fields.caller.function_name == "outer"


def test_data_pipes_are_ranges():
    wrap = torch.utils.data.datapipes.iter.IterableWrapper
    with profile() as prof:
        assert list(wrap(range(2)).mux(wrap(range(2, 4)))) == [0, 2, 1, 3]
    names = [e.name for e in prof.events() if e.is_user_annotation]
    assert any(n.startswith("IterableWrapper") for n in names)
    assert any(n.startswith("Multiplexer") for n in names)


def test_events_number_calls_from_python(tmp_path):
    linear = torch.nn.Linear(2, 2)
    with profile(with_stack=True, record_shapes=True) as prof:
        outer(linear(torch.ones(1, 2)))
    events = by_name(prof)
    inside, op, module = events["inner"], events["aten::exp"], events["Linear_0"]
    assert inside.python_id == inside.id and inside.python_parent_id == events["outer"].id
    assert (op.python_id, op.python_parent_id, op.python_module_id) == (-1, -1, -1)
    assert module.python_module_id == 0
    kinds = [e.activity_type for e in (inside, op, events["named"])]
    assert kinds == ["python_function", "cpu_op", "user_annotation"]
    result = prof.profiler.kineto_results
    mine = next(e for e in result.events() if e.name() == inside.name)
    assert (mine.python_id(), mine.is_python_function()) == (inside.id, True)
    exp = next(e for e in result.events() if e.name() == "aten::exp")
    assert exp.structured_input_shapes() == [[1, 2]] and exp.activity_type() == "cpu_op"
    result.save(str(tmp_path / "saved.json"))
    assert "aten::exp" in {
        e["name"] for e in json.loads((tmp_path / "saved.json").read_text())["traceEvents"]
    }


def test_traces_say_which_process_they_are_of(tmp_path):
    dist = torch.distributed
    if not dist.is_available():
        pytest.skip("this build has no Gloo (libgloo-dev)")

    def recorded():
        with profile() as prof:
            torch.ones(2)
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        return json.loads((tmp_path / "trace.json").read_text())

    assert "distributedInfo" not in recorded()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        said = recorded()["distributedInfo"]
    finally:
        dist.destroy_process_group()
    assert (said["backend"], said["rank"], said["world_size"]) == ("gloo", 0, 1)
    assert said["pg_config"][0]["ranks"] == [0] and said["pg_config"][0]["pg_size"] == 1
    assert len(said["pg_config"]) == said["pg_count"] == 1
