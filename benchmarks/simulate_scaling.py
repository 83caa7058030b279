"""Draws docs/scaling.svg: how a model of 7 billion parameters would train on up to 100,000 ranks.

python benchmarks/simulate_scaling.py
"""

import os

from rushlight.distributed import simulate

GB = 1e9
RANKS = (8, 32, 128, 512, 2048, 8192, 32768, 98304)


def seven_billion():
    """32 blocks of width 4096 on an accelerator of 400 TFLOP/s, bfloat16, 8192 tokens a batch."""
    tokens, width = 8192, 4096
    forward = tokens * 2 * 12 * width**2 / 400e12
    block = simulate.Block(
        "block", forward, 2 * forward, 2 * 12 * width**2, 34 * tokens * width, 2 * tokens * width, 9
    )
    return simulate.Cost((block,) * 32, optimizer=4e-3, state_bytes=6.0, copy=1.5e12, hook=2e-6, jitter=0.01)


def cluster():
    """Hosts of 8 ranks at 400 GB/s, joined by eight links of 50 GB/s each in a fat tree."""
    return simulate.Network(5e-6, 400 * GB, 8, 2e-6, 400 * GB, topology="fat-tree", oversubscription=1.5)


PLANS = {
    "data parallel": lambda n: simulate.Plan(data=n),
    "fully sharded": lambda n: simulate.Plan(data=n, sharding="full", prefetch=True),
    "8 a tensor, rest data": lambda n: simulate.Plan(n // 8, 8, sharding="optimizer"),
    "4 stages, rest data": lambda n: simulate.Plan(n // 4, 1, 4, 16, sharding="optimizer"),
    "8 a tensor, 4 stages, data": lambda n: simulate.Plan(n // 32, 8, 4, 16, sharding="optimizer"),
}


def predicted(plan):
    """The prediction for 8192 tokens a rank, and the share of its time that is spent computing for them."""
    cost = seven_billion().scaled(batch=plan.tensor * plan.pipeline)
    found = simulate.predict(cost, plan, cluster())
    return found, found.batches_per_second * cost.step / plan.ranks


def main():
    curves = {}
    for name, plan in PLANS.items():
        least = 32 if "8 a tensor, 4" in name else 8
        curves[name] = [(n, predicted(plan(n))[1]) for n in RANKS if n >= least]
    path = os.path.join(os.path.dirname(__file__), "..", "docs", "scaling.svg")
    title = "Share of the ranks' computing that goes into training (7 billion parameters)"
    simulate.draw_scaling(curves, path, title)
    print("| plan, 1024 ranks | step | sent a rank | hidden | memory a rank | share |")
    print("|---|---|---|---|---|---|")
    for name, plan in PLANS.items():
        found, share = predicted(plan(1024))
        print(
            f"| {name} | {found.step_time:.2f} s | {found.sent_bytes / GB:.1f} GB | {found.overlap:.0%} | "
            f"{found.memory_bytes / GB:.0f} GB | {share:.0%} |"
        )


if __name__ == "__main__":
    main()
