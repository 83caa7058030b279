"""Pipelines put back to where they were."""

from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState
from rushlight.utils.data.graph_settings import apply_random_seed

__all__ = ["_simple_graph_snapshot_restoration"]


def _simple_graph_snapshot_restoration(datapipe, n_iterations, rng=None):
    """Reads the first samples of a pipeline anew, so that its next pass gives those that follow.

    Args:
        datapipe: the last step of the pipeline.
        n_iterations: how many samples to pass over: of a pipe that was unpickled, its
            ``_number_of_samples_yielded``.
        rng: what shuffling steps are seeded from, in the state in which the first pass had it.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if "
            "your graph has not been restored."
        )
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for passed in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples "
                f"available, {passed}."
            ) from None
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
