"""Predictions of training steps: where the answer is known by hand, and beside real steps when asked for."""

import math
import os
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import simulate
from rushlight.distributed.simulate._plan import cut

MB = 1e6


def _cost(count=4, **settings):
    blocks = tuple(simulate.Block(f"b{i}", 0.01, 0.02, 8 * MB, 4 * MB, 1 * MB) for i in range(count))
    return simulate.Cost(blocks, **{"copy": 1e21, "hook": 0.0, **settings})


def _network(**settings):
    return simulate.Network(**{"latency": 0.0, "bandwidth": 1e9, "trees": False, **settings})


def test_one_process():
    found = simulate.predict(_cost(optimizer=0.005), simulate.Plan(), _network())
    assert math.isclose(found.step_time, 4 * 0.03 + 0.005) and found.communication == 0 == found.exposed
    assert found.memory["parameters"] == 32 * MB and found.memory["optimizer"] == 64 * MB
    assert found.memory["activations"] == 16 * MB and found.sent_bytes == 0 and found.overlap == 1


def test_collectives_cost_what_rings_cost():
    network = _network(latency=1e-3)
    assert math.isclose(network.time("all_reduce", 8 * MB, 4), 2 * (3 * 1e-3 + 0.75 * 8e-3))
    assert math.isclose(network.time("all_gather", 8 * MB, 4), 3 * 1e-3 + 0.75 * 8e-3)
    assert math.isclose(network.time("send", 8 * MB, 2), 1e-3 + 8e-3)
    assert network.time("all_reduce", 8 * MB, 1) == 0
    trees = _network(latency=1e-3, trees=True)
    assert math.isclose(trees.time("all_reduce", 1, 1024), 20e-3, rel_tol=1e-3)
    assert network.time("all_reduce", 1, 1024) > 2


def test_hosts_and_topologies():
    fast = _network(per_host=8, host_bandwidth=1e11)
    assert fast.time("all_reduce", 8 * MB, 8) < 0.02 * fast.time("all_reduce", 8 * MB, 16)
    alone = _network()  # eight ranks of a host reduce among themselves first, and share its link
    assert math.isclose(
        fast.time("all_reduce", 8 * MB, 16) - fast.time("all_reduce", 8 * MB, 8),
        alone.time("all_reduce", 8 * MB, 2),
    )
    assert fast.time("all_reduce", 8 * MB, 2, stride=8) > 7 * alone.time("all_reduce", 8 * MB, 2)
    tree = _network(topology="fat-tree", leaf=4, oversubscription=2.0)
    assert tree.time("send", MB, 2) == alone.time("send", MB, 2)
    assert tree.time("all_reduce", MB, 8) > 1.9 * alone.time("all_reduce", MB, 8)
    torus = _network(topology="torus", latency=1e-3, trees=True)
    assert torus.time("all_reduce", 1, 4096) > _network(latency=1e-3, trees=True).time("all_reduce", 1, 4096)
    with pytest.raises(ValueError, match="topology is one of"):
        simulate.Network(topology="star")


def test_averages_are_hidden_behind_the_backward_pass():
    slow = simulate.predict(_cost(), simulate.Plan(data=2, bucket=1), _network())
    one = 8e-3  # seconds to average a block's gradients
    assert math.isclose(slow.step_time, 4 * 0.03 + one) and math.isclose(slow.communication, 4 * one)
    assert math.isclose(slow.overlap, 0.75) and math.isclose(slow.sent_bytes, 32 * MB)
    together = simulate.predict(_cost(), simulate.Plan(data=2, bucket=1e12), _network())
    assert math.isclose(together.step_time, 4 * 0.03 + 4 * one) and together.overlap == pytest.approx(0)
    busy = simulate.predict(_cost(), simulate.Plan(data=2, bucket=1), _network(processor_share=1.0))
    assert busy.step_time > slow.step_time + 2 * one


def test_waits_are_for_the_slowest():
    """The longer ranks computed apart, the further apart they are."""
    once = simulate.predict(_cost(), simulate.Plan(data=2, bucket=1e12), _network(waiting=0.01))
    steady = simulate.predict(_cost(), simulate.Plan(data=2, bucket=1e12), _network())
    assert once.step_time - steady.step_time == pytest.approx(0.01 * math.sqrt(4 * 0.03))
    often = simulate.predict(_cost(), simulate.Plan(tensor=2, sums=1), _network(per_host=2, waiting=0.01))
    steady = simulate.predict(_cost(), simulate.Plan(tensor=2, sums=1), _network(per_host=2))
    waits = 0.01 * 4 * (math.sqrt(0.01 / 2) + math.sqrt(0.02 / 2))
    assert often.step_time - steady.step_time == pytest.approx(waits)
    with pytest.raises(ValueError, match="impossible network"):
        simulate.Network(waiting=-1.0)


def test_sharding_trades_memory_for_messages():
    plans = [simulate.Plan(data=8, sharding=s) for s in ("none", "optimizer", "full")]
    none, optimizer, full = (simulate.predict(_cost(), plan, _network()) for plan in plans)
    assert none.memory_bytes > optimizer.memory_bytes > full.memory_bytes
    assert full.memory["parameters"] == 4 * MB and optimizer.memory["optimizer"] == 8 * MB
    assert full.sent_bytes == pytest.approx(1.5 * none.sent_bytes)
    ahead = simulate.predict(_cost(), simulate.Plan(data=8, sharding="full", prefetch=True), _network())
    assert ahead.step_time < full.step_time and ahead.sent_bytes == pytest.approx(full.sent_bytes)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_pipelines_have_bubbles(schedule):
    for stages, parts in [(2, 1), (2, 8), (4, 4), (4, 16)]:
        plan = simulate.Plan(pipeline=stages, microbatches=parts, schedule=schedule)
        found = simulate.predict(_cost(8), plan, _network(bandwidth=1e21))
        ideal = 8 * 0.03 / stages
        assert found.step_time == pytest.approx(ideal * (parts + stages - 1) / parts), (stages, parts)
    plan = simulate.Plan(pipeline=4, microbatches=16, schedule=schedule)
    activations = simulate.predict(_cost(8), plan, _network()).memory["activations"]
    assert activations == pytest.approx((4 if schedule == "1f1b" else 16) * 2 * 4 * MB / 16)


def test_tensors_shared_and_recomputed():
    found = simulate.predict(_cost(), simulate.Plan(tensor=4), _network(per_host=4))
    sums = 4 * 2 * 2 * 2 * 0.75 * 1e-3  # blocks, sums a pass, passes, ways
    assert found.step_time == pytest.approx(4 * 0.03 / 4 + sums)
    assert found.memory["parameters"] == 8 * MB
    again = simulate.predict(_cost(), simulate.Plan(checkpoint=True), _network())
    assert again.step_time == pytest.approx(4 * 0.04) and again.memory["activations"] == 4 * MB


def test_cutting_and_limits():
    assert cut([1, 1, 1, 1], 2) == [(0, 2), (2, 4)] and cut([5, 1, 1, 1], 2) == [(0, 1), (1, 4)]
    with pytest.raises(ValueError, match="pipeline of 9 stages"):
        simulate.predict(_cost(), simulate.Plan(pipeline=9), _network())
    with pytest.raises(ValueError, match="sharding is one of"):
        simulate.Plan(sharding="half")
    with pytest.raises(ValueError, match="at least one rank"):
        simulate.Plan(data=0)


def test_a_hundred_thousand_ranks():
    network = simulate.Network(per_host=8, host_bandwidth=3e11, topology="fat-tree")
    plan = simulate.Plan(data=3125, tensor=8, pipeline=4, microbatches=16, sharding="optimizer")
    assert plan.ranks == 100_000
    found = simulate.predict(_cost(jitter=0.02), plan, network)
    assert 0.03 / 8 < found.step_time < 1 and found.compute < found.step_time
    steady = simulate.predict(_cost(), plan, network)
    assert steady.step_time < found.step_time < 1.1 * steady.step_time


def test_best_plans_fit_into_memory():
    network = _network(per_host=4, host_bandwidth=1e11, bandwidth=1e10)
    best = simulate.best_plans(_cost(8), network, 16)
    assert best and all(p.plan.ranks == 16 for p in best)
    assert [p.batches_per_second for p in best] == sorted((p.batches_per_second for p in best), reverse=True)
    limit = best[0].memory_bytes / 2
    small = simulate.best_plans(_cost(8), network, 16, memory=limit)
    assert small and all(p.memory_bytes <= limit for p in small)
    assert small[0].batches_per_second <= best[0].batches_per_second


def test_measuring_a_model():
    model = nn.Sequential(nn.Linear(64, 256), nn.Sequential(nn.ReLU(), nn.Linear(256, 8)))
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters())
    cost = simulate.measure(model, (torch.rand(32, 64),), optimizer, repeats=3)
    assert [b.name for b in cost.blocks] == ["0", "1.0", "1.1"]
    assert [b.parameters for b in cost.blocks] == [4 * (64 * 256 + 256), 0, 4 * (256 * 8 + 8)]
    assert cost.blocks[0].output == 4 * 32 * 256 == cost.blocks[1].saved
    assert all(b.forward > 0 for b in cost.blocks) and cost.optimizer > 0
    assert 1.9 < cost.state_bytes < 2.1
    assert all(p.equal(b) and p.grad is None for p, b in zip(model.parameters(), before))
    assert cost.scaled(speed=2, batch=4).step == pytest.approx(
        2 * (cost.step - cost.optimizer) + cost.optimizer / 2
    )


def test_pictures(tmp_path):
    plan = simulate.Plan(pipeline=2, microbatches=2)
    text = simulate.draw_timeline(simulate.predict(_cost(), plan, _network()), tmp_path / "step.svg")
    assert text == (tmp_path / "step.svg").read_text() and text.count("stage") == 2 and "b3 back" in text
    lines = simulate.draw_scaling({"a < b": [(1, 1.0), (100_000, 0.5)]})
    assert "a &lt; b" in lines and "polyline" in lines and ">100000<" in lines


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
@pytest.mark.skipif(
    not os.environ.get("RUSHLIGHT_SIMULATE"), reason="needs a quiet machine: RUSHLIGHT_SIMULATE=1"
)
@pytest.mark.timeout(600)
def test_predictions_come_true():
    script = os.path.join(os.path.dirname(__file__), "..", "..", "..", "benchmarks", "simulate_check.py")
    run = subprocess.run([sys.executable, script, "--ranks", "2"], capture_output=True, text=True, check=True)
    ratios = [float(line.split("|")[-2]) for line in run.stdout.splitlines()[2:]]
    assert len(ratios) == 5 and all(1 / 1.25 <= ratio <= 1.25 for ratio in ratios), run.stdout
