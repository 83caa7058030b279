"""What a finished profile gives to tools: PyTorch's `kineto_results`, events and their tree."""

import threading

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased


@pytest.fixture
def oracle():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


def recorded(t, **options):
    x = t.ones(40, 40, requires_grad=True)
    with t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], **options) as p:
        with t.profiler.record_function("forward"):
            y = (x.mm(x) * 2).sum()
        y.backward()
    return p.profiler.kineto_results


def names(nodes, wanted):
    """(name, the named entry that it ran inside of) of some entries of a tree."""
    for node in nodes:
        if node.name in wanted:
            above = node.parent
            while above is not None and above.name not in wanted:
                above = above.parent
            yield node.name, above and above.name
        yield from names(node.children, wanted)


def test_trees_are_pytorchs(oracle):
    wanted = ("forward", "aten::mm", "aten::mul", "MmBackward0", "SumBackward0", "MulBackward0")
    trees = [recorded(t, record_shapes=True).experimental_event_tree() for t in (torch, oracle)]
    assert list(names(trees[0], wanted)) == list(names(trees[1], wanted))


def test_entries_say_what_operators_were_given(oracle):
    found = []
    for t in (torch, oracle):
        forward = recorded(t, record_shapes=True).experimental_event_tree()[0]
        mm, mul = (next(c for c in forward.children if c.name == name) for name in ("aten::mm", "aten::mul"))
        first = mm.extra_fields.inputs[0]
        assert mm.typed == (mm.tag, mm.extra_fields) and mm.parent.id == forward.id
        assert forward.start_time_ns <= mm.start_time_ns <= mm.end_time_ns <= forward.end_time_ns
        assert mm.duration_time_ns == mm.end_time_ns - mm.start_time_ns
        assert first.storage_data_ptr == mm.extra_fields.inputs[1].storage_data_ptr
        found.append(
            [mm.tag.name, list(first.sizes), list(first.strides), str(first.device), mm.extra_fields.name]
            + [str(first.dtype)[-7:], mul.extra_fields.inputs[1].__class__ is not None]
            + [mm.extra_fields.scope.name, forward.extra_fields.scope.name]
        )
    assert found[0] == found[1]


def test_events_answer_as_pytorchs(oracle):
    found = []
    for t in (torch, oracle):
        result = recorded(t, record_shapes=True)
        events = {e.name(): e for e in reversed(list(result.events()))}
        mm, forward = events["aten::mm"], events["forward"]
        assert result.trace_start_ns() <= mm.start_ns() <= mm.end_ns() - mm.duration_ns() + 1
        assert mm.sequence_nr() >= 0 and mm.start_thread_id() == mm.end_thread_id()
        found.append(
            [mm.shapes(), mm.device_type().name, mm.scope(), mm.is_async(), mm.linked_correlation_id()]
            + [forward.is_user_annotation(), mm.is_user_annotation(), mm.flops(), mm.nbytes(), mm.stack()]
        )
    assert found[0] == found[1]


def test_numbers_of_calls_are_unique_in_the_process():
    first, second = (recorded(torch).events() for _ in range(2))
    numbers = [e.correlation_id() for e in [*first, *second]]
    assert len(set(numbers)) == len(numbers)


def test_modules_and_blocks_of_memory_are_entries():
    linear = torch.nn.Linear(64, 64)
    with torch.profiler.profile(with_modules=True, profile_memory=True) as p:
        linear(torch.ones(64, 64))
    from rushlight.profiler import _utils

    entries = list(_utils.traverse_bfs(p.profiler.kineto_results.experimental_event_tree()))
    assert len({e.id for e in entries}) == len(entries)
    module = next(e for e in entries if e.tag is torch._C._profiler._EventType.PyCall)
    assert module.extra_fields.module.cls_name == "Linear"
    assert [c.name for c in module.children] == ["aten::linear"]
    blocks = [e for e in entries if e.tag is torch._C._profiler._EventType.Allocation]
    inside = [e for e in blocks if e.parent is not None and e.parent.name == "aten::addmm"]
    assert any(e.extra_fields.alloc_size == 64 * 64 * 4 for e in inside)


def test_walks_through_trees(oracle):
    from types import SimpleNamespace

    from rushlight.profiler import _utils

    def tree(depth, name=""):
        below = [tree(depth - 1, name + str(i)) for i in range(depth)]
        return SimpleNamespace(name=name, children=below)

    roots = [tree(3, "a"), tree(2, "b")]
    theirs = oracle.profiler._utils
    for walk in ("traverse_dfs", "traverse_bfs"):
        for options in ({}, {"reverse": False}, {"reverse": True}):
            mine, other = (
                [e.name for e in getattr(where, walk)(roots, **options)] for where in (_utils, theirs)
            )
            assert mine == other and len(mine) == 21


def test_profiles_say_what_they_cost():
    with torch.profiler.profile() as p:
        torch.ones(4).mul(2)
    stats = p._stats()
    assert stats.profiler_prepare_call_duration_us > 0 and stats.parse_kineto_call_duration_us > 0
    assert stats.function_events_build_tree_call_duration_us == 0  # nobody has asked for events
    p.key_averages()
    assert stats.number_of_events >= 2 and stats.function_events_build_tree_call_duration_us > 0
    with torch.autograd.profiler.profile() as p:
        assert p.kineto_results is None
    assert p.kineto_results is not None and p.kineto_results is p.kineto_results


def test_threads_have_their_own_numbers():
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(experimental_config=config) as p:
        torch.ones(3).add(1)
        thread = threading.Thread(target=lambda: torch.ones(3).mul(2))
        thread.start()
        thread.join()
    roots = p.profiler.kineto_results.experimental_event_tree()
    of = {e.name: e.start_tid for e in roots}
    assert of["aten::add"] != of["aten::mul"]
