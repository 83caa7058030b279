"""How long a training step would take on many processes, before there are any.

    cost = simulate.measure(model, (inputs,), optimizer)      # kernel times of this machine
    network = simulate.Network(latency=5e-6, bandwidth=50e9, per_host=8, host_bandwidth=300e9)
    found = simulate.predict(cost, simulate.Plan(data=1024, sharding="full"), network)
    found.step_time, found.exposed, found.sent_bytes, found.memory

`predict` plays a step of one process of each pipeline stage, all others doing the same: up to 100,000 ranks
take no longer than one. `calibrate` measures a network among the processes at hand, `best_plans` compares
plans.
"""

from ._cost import Block, Cost, measure
from ._network import Network, calibrate
from ._picture import draw_scaling, draw_timeline
from ._plan import Plan
from ._predict import Prediction, best_plans, predict

__all__ = [
    "Block",
    "Cost",
    "Network",
    "Plan",
    "Prediction",
    "best_plans",
    "calibrate",
    "draw_scaling",
    "draw_timeline",
    "measure",
    "predict",
]
