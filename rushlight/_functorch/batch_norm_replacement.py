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
    """Switch off the running statistics of all batch normalisations of ``root``, in place."""
    for module in root.modules():
        batch_norm_without_running_stats(module)
    return root


show_from("func", replace_all_batch_norm_modules_)
