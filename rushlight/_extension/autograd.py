"""`torch._C._autograd`: what programs ask of the state of autograd."""

from rushlight import _C


def _saved_tensors_hooks_is_enabled():
    """Whether saved-tensor hooks may be set."""
    return _C._saved_tensors_hooks_disabled_message() is None


def _profiler_type():
    """Which of `torch._C._profiler.ActiveProfilerType` records this process."""
    from rushlight.autograd._profiler_enums import _state

    return _state.running


def _unsafe_set_version_counter(tensors, versions):
    """Set how many writes to the tensors are counted."""
    for tensor, version in zip(tensors, versions, strict=True):
        _C._set_version(tensor, version)


SavedTensor = _C.SavedTensor
_get_current_graph_task_keep_graph = _C._get_current_graph_task_keep_graph
