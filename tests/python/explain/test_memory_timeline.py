"""What a profile tells of memory and of modules: blocks and their use, timelines, events in traces."""

import gc
import gzip
import json

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.profiler import profile
from rushlight.profiler._memory_profiler import Action, Category


def train(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()


def bytes_by_category(timeline):
    sums = {}
    for block in timeline.blocks:
        sums[block.category] = sums.get(block.category, 0) + block.bytes
    return sums


def make_model():
    return nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))


def test_blocks_are_told_apart():
    gc.collect()
    with profile(profile_memory=True) as prof:  # models that other tests left count, too
        pass
    others = bytes_by_category(prof.profiler.memory_timeline())
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 64)
    with profile(profile_memory=True, with_modules=True) as prof:
        train(model, optimizer, x)
    timeline = prof.profiler.memory_timeline()
    sums = bytes_by_category(timeline)
    sums = {category: bytes - others.get(category, 0) for category, bytes in sums.items()}
    weights = 4 * sum(p.numel() for p in model.parameters())
    assert sums[Category.PARAMETER] == weights
    assert sums[Category.GRADIENT] == pytest.approx(weights, rel=0.05)
    assert sums[Category.OPTIMIZER_STATE] == pytest.approx(2 * weights, rel=0.05)
    # The backward pass wants the results of tanh and of the last layer, 32 rows of 256 and 64.
    assert sums[Category.ACTIVATION] == 4 * 32 * (256 + 64)
    tanh = [b for b in timeline.blocks if b.module == "1 (Tanh)" and b.category is Category.ACTIVATION]
    assert [b.bytes for b in tanh] == [4 * 32 * 256] and tanh[0].operator == "aten::tanh"
    assert all(b.end is None or b.start is None or b.start <= b.end for b in timeline.blocks)


def test_what_was_there_before_is_counted_and_may_be_freed():
    kept, freed = torch.randn(1000, 100), torch.randn(1000, 50)
    with profile(profile_memory=True) as prof:
        del freed
        made = kept + 1
    events = prof.profiler.memory_timeline().events()
    before = sum(n for _, action, n, _ in events if action is Action.PREEXISTING)
    assert before >= 600_000
    assert [n for _, action, n, _ in events if action is Action.DESTROY] == [200_000]
    assert [n for _, action, n, _ in events if action is Action.CREATE] == [400_000]
    assert made is not None


def test_temporaries_of_operators_and_blocks_between_them():
    x = torch.randn(300, 300)
    with profile(profile_memory=True) as prof:
        y = x + 1
        del y
    (block,) = [b for b in prof.profiler.memory_timeline().blocks if b.start is not None]
    assert (block.bytes, block.operator, block.category) == (360_000, "aten::add", Category.TEMPORARY)
    assert block.end > block.start


def test_batches_of_loaders_are_input():
    data = torch.utils.data.TensorDataset(torch.randn(64, 500))
    with profile(profile_memory=True) as prof:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=32):
            batch.sum()
    inputs = [b for b in prof.profiler.memory_timeline().blocks if b.category is Category.INPUT]
    assert sum(b.bytes == 64_000 for b in inputs) == 2


def test_exported_timelines(tmp_path):
    x = torch.randn(100, 100)
    with profile(profile_memory=True) as prof:
        y = (x + 1).exp()
    prof.export_memory_timeline(str(tmp_path / "m.json"))
    prof.export_memory_timeline(str(tmp_path / "m.json.gz"), device="cpu")
    prof.export_memory_timeline(str(tmp_path / "m.raw.json.gz"))
    times, sizes = json.loads((tmp_path / "m.json").read_text())
    with gzip.open(tmp_path / "m.json.gz", "rt") as file:
        assert json.load(file) == [times, sizes]
    assert len(times) == len(sizes) and times == sorted(times)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
    assert sum(sizes[-1]) - sum(sizes[0]) == 40_000  # the sum was freed, its exponential is left
    with gzip.open(tmp_path / "m.raw.json.gz", "rt") as file:
        rows = json.load(file)
    assert [(action, bytes) for _, action, bytes, _ in rows[-3:]] == [(1, 40_000), (1, 40_000), (3, -40_000)]
    with pytest.raises(ValueError, match="only the CPU's memory"):
        prof.export_memory_timeline(str(tmp_path / "m.json"), device="cuda:0")
    with profile() as without:
        y.sum()
    with pytest.raises(AssertionError, match="profile_memory=True"):
        without.export_memory_timeline(str(tmp_path / "m.json"))


def test_traces_show_blocks_as_pytorchs_do(tmp_path):
    oracle = pytest.importorskip("torch")
    totals = {}
    for name, module in (("ours", torch), ("theirs", oracle)):
        x = module.ones(1000)
        with module.profiler.profile(profile_memory=True) as prof:
            y = x + 1
            del y
        prof.export_chrome_trace(str(tmp_path / name))
        events = json.loads((tmp_path / name).read_text())["traceEvents"]
        found = [e for e in events if e["name"] == "[memory]"]
        assert all(
            {"Total Allocated", "Bytes", "Addr", "Device Id", "Device Type"} <= e["args"].keys()
            for e in found
        )
        # Numbers of a few bytes have blocks of their own in PyTorch, and none here.
        large = [e for e in found if abs(e["args"]["Bytes"]) > 64]
        totals[name] = [(e["ph"], e["cat"], e["args"]["Bytes"]) for e in large]
    assert (
        totals["ours"]
        == totals["theirs"]
        == [
            ("i", "cpu_instant_event", 4000),
            ("i", "cpu_instant_event", -4000),
        ]
    )


def test_other_threads_memory_counts_too():
    import threading

    with profile(profile_memory=True) as prof:
        thread = threading.Thread(target=lambda: torch.ones(5000))
        thread.start()
        thread.join()
    sizes = [n for _, _, n, _ in prof.profiler.memory_timeline().events()]
    assert sizes.count(20_000) == 2


def test_modules_are_scopes():
    model = nn.Sequential(make_model(), nn.Identity())
    with profile(with_modules=True) as prof:
        model(torch.randn(2, 64))
    names = [e.name for e in prof.events() if e.name.startswith("nn.Module: ")]
    assert names == [
        "nn.Module: Sequential",
        "nn.Module: 0 (Sequential)",
        "nn.Module: 0.0 (Linear)",
        "nn.Module: 0.1 (Tanh)",
        "nn.Module: 0.2 (Linear)",
        "nn.Module: 1 (Identity)",
    ]
    tanh = next(e for e in prof.events() if e.name == "aten::tanh")
    assert tanh.cpu_parent.name == "nn.Module: 0.1 (Tanh)"
    model(torch.randn(2, 64))  # the hooks are gone
    assert not nn.modules.module._global_forward_hooks


def test_modules_that_fail_close_their_scopes():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 3))
    with profile(with_modules=True) as prof:
        with pytest.raises(RuntimeError):
            model(torch.randn(1, 2))
        torch.ones(2).exp()
    assert next(e for e in prof.events() if e.name == "aten::exp").cpu_parent is None
