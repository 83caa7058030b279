"""What a loader sets on the pipes that a dataset is made of: shares, shuffling, seeds."""

import inspect
import warnings

import rushlight
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from rushlight.utils.data.graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph):
    """The pipes of a graph, each once, those next to its end first."""
    found = {}

    def collect(level):
        for key, (pipe, below) in level.items():
            if key not in found:
                found[key] = pipe
                collect(below)

    collect(graph)
    return list(found.values())


def _has(pipe, *names):
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
    """Tells every step that splits the stream which share to keep."""

    def apply(level, above):
        for pipe, below in level.values():
            if not isinstance(pipe, _ShardingIterDataPipe) and not _has(pipe, "apply_sharding"):
                apply(below, above)
                continue
            if above is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                    f"Sharding already applied to {above} while trying to apply to {pipe}"
                )
            if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                pipe.apply_sharding(num_of_instances, instance_id)
            else:
                pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
            apply(below, pipe)

    apply(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle=None):
    """Turns shuffling on or off, adding a step for it where there is none."""
    if shuffle is None:
        return datapipe
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    shufflers = [pipe for pipe in pipes if _has(pipe, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
            "Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Seeds every step that draws random numbers from one generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(int(rushlight.empty((), dtype=rushlight.int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The former name of :func:`apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. "
        "Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


class _ShardingInit:
    """A worker's initialisation that first takes the worker's share of the pipeline."""

    def __init__(self, init_fn):
        self._init_fn = init_fn

    def __call__(self, worker_id):
        _sharding_worker_init_fn(self._init_fn, 1, 0, worker_id)


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id):
    """Takes a worker's share of a pipe, which processes share first, then their workers."""
    from rushlight.utils.data import get_worker_info

    info = get_worker_info()
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)
