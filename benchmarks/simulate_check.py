"""Predictions of `rushlight.distributed.simulate` beside real steps, with 2 to 8 processes on this machine.

python benchmarks/simulate_check.py [--ranks 2 4 8] [--rounds 5]

Each process measures its kernels while the others do too, so that the processor is shared as in a step; the
network is measured in the same job, and predictions and steps alternate.
"""

import argparse
import json
import os
import tempfile
import time
from statistics import median

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight import nn
from rushlight.distributed import simulate

WIDTH, DEPTH, BATCH = 512, 6, 128


def _block():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Wrapped(nn.Module):
    """A block as one part."""

    def __init__(self):
        super().__init__()
        self.inner = _block()

    def forward(self, x):
        return x + self.inner(x)


def _model():
    torch.manual_seed(0)
    return nn.Sequential(*(Wrapped() for _ in range(DEPTH)))


def _loss(output):
    return output.square().mean()


def _data_parallel(ranks):
    model = nn.parallel.DistributedDataParallel(_model(), bucket_cap_mb=25)
    return simulate.Plan(data=ranks), model, model.parameters()


def _sharded(ranks):
    from rushlight.distributed.fsdp import fully_shard

    model = _model()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    return simulate.Plan(data=ranks, sharding="full"), model, model.parameters()


def _zero(ranks):
    from rushlight.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(_model(), bucket_cap_mb=25)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-4)
    return simulate.Plan(data=ranks, sharding="optimizer"), model, optimizer


def _tensor_parallel(ranks):
    from rushlight.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh, model = dist.init_device_mesh("cpu", (ranks,)), _model()
    for block in model:
        parallelize_module(block.inner, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return simulate.Plan(tensor=ranks, sums=1), model, model.parameters()


def _one_step(model, optimizer, x):
    def step():
        _loss(model(x)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _pipeline(ranks, x):
    from rushlight.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, share = dist.get_rank(), DEPTH // ranks
    part = nn.Sequential(*list(_model())[rank * share : (rank + 1) * share])
    stage = PipelineStage(part, rank, ranks, "cpu")
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda output, target: _loss(output))
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-4)

    def step():
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=x if rank == ranks - 1 else None)
        optimizer.step()
        optimizer.zero_grad()

    return simulate.Plan(pipeline=ranks, microbatches=4), step


def _made(name, ranks, x):
    if name == "pipeline":
        return _pipeline(ranks, x)
    plans = {
        "data parallel": _data_parallel,
        "sharded optimizer": _zero,
        "fully sharded": _sharded,
        "tensor parallel": _tensor_parallel,
    }
    plan, model, parameters = plans[name](ranks)
    if not isinstance(parameters, torch.optim.Optimizer):
        parameters = torch.optim.AdamW(parameters, lr=1e-4)
    return plan, _one_step(model, parameters, x)


def _seconds(step, repeats=3):
    times = []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return median(times)


def _average(cost):
    """The mean of what the ranks measured."""
    fields = [[b.forward, b.backward] for b in cost.blocks]
    t = torch.tensor([*(x for pair in fields for x in pair), cost.optimizer, cost.copy], dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.AVG)
    *times, optimizer, copy = t.tolist()
    from dataclasses import replace

    blocks = [replace(b, forward=times[2 * i], backward=times[2 * i + 1]) for i, b in enumerate(cost.blocks)]
    return replace(cost, blocks=tuple(blocks), optimizer=optimizer, copy=copy, jitter=0.0)


def _measured(x, batch):
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    dist.barrier()
    return _average(simulate.measure(model, (x[:batch],), optimizer, _loss, repeats=3))


def check(rank, ranks, folder, port, names, rounds):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", store=dist.TCPStore("127.0.0.1", port), rank=rank, world_size=ranks)
    x = torch.rand(BATCH, WIDTH)
    rows = []
    for name in names:
        if name == "pipeline" and DEPTH % ranks:
            continue
        plan, step = _made(name, ranks, x)
        _seconds(step)
        found = []
        for _ in range(rounds):
            network = simulate.calibrate(repeats=7)
            parts = plan.microbatches
            cost = _measured(x, BATCH // parts).scaled(batch=parts)
            predicted = simulate.predict(cost, plan, network)
            found.append((predicted.step_time, _seconds(step), predicted.memory_bytes))
        # Pairs were measured next to each other: the ratio is what the machine's load changes least.
        ratio = median(real / guess for guess, real, _ in found)
        rows.append((name, ranks, median(f[0] for f in found), median(f[1] for f in found), ratio))
        dist.barrier()
    if rank == 0:
        with open(os.path.join(folder, f"{ranks}.json"), "w") as file:
            json.dump(rows, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plans", nargs="+", default=["data parallel", "sharded optimizer", "fully sharded",
                                                       "tensor parallel", "pipeline"])  # fmt: skip
    options = parser.parse_args()
    print("| plan | ranks | predicted ms | measured ms | measured / predicted |\n|---|---|---|---|---|")
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            store = dist.TCPStore("127.0.0.1", 0, is_master=True)
            mp.spawn(check, (ranks, folder, store.port, options.plans, options.rounds), nprocs=ranks)
            with open(os.path.join(folder, f"{ranks}.json")) as file:
                for name, size, predicted, measured, ratio in json.load(file):
                    print(
                        f"| {name} | {size} | {predicted * 1e3:.0f} | {measured * 1e3:.0f} | {ratio:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
