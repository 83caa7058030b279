"""Batch normalisation that keeps no running statistics, as vmap over single examples needs it."""

from rushlight._command.names import show_from
from rushlight.nn.modules.batchnorm import _BatchNorm

__all__ = ["batch_norm_without_running_stats", "replace_all_batch_norm_modules_"]


def batch_norm_without_running_stats(module):
    if isinstance(module, _BatchNorm) and module.track_running_stats:
        module.running_mean = None
        module.running_var = None
        module.num_batches_tracked = None
        module.track_running_stats = False


def replace_all_batch_norm_modules_(root):
    """Switches off the running statistics of all batch normalizations, in place, as `vmap` needs it.

    Args:
        root (Module): in which they are looked for.

    Returns: root.

    Example:
        >>> norm = torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2))
        >>> norm.running_mean is None
        True
    """
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root


show_from("func", replace_all_batch_norm_modules_)
