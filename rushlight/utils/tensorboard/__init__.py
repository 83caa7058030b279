"""Event files that TensorBoard opens. Needs the package ``tensorboard``, for its file format."""

try:
    import tensorboard as _tensorboard  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "torch.utils.tensorboard needs the package tensorboard: pip install tensorboard"
    ) from _error

from tensorboard.summary.writer.record_writer import RecordWriter

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
