"""The observer of reports: what a layer's numbers are like, over all batches and from batch to batch."""

import rushlight

from ...observer import ObserverBase

__all__ = ["ModelReportObserver"]


def _by_channel(x, axis):
    """The numbers of each channel as a row."""
    return x.transpose(0, axis).flatten(start_dim=1)


class ModelReportObserver(ObserverBase):
    """Keeps ranges and percentiles of what passes.

    * of the whole tensor: the range of an epoch, and the average range of a batch;
    * of each channel: the least and the greatest number, how many batches were constant, and how many times
      the percentile ``comp_percentile`` the greatest number is, on average.
    """

    epoch_activation_min: rushlight.Tensor
    epoch_activation_max: rushlight.Tensor
    min_val: rushlight.Tensor
    max_val: rushlight.Tensor
    comp_percentile: rushlight.Tensor
    average_percentile_ratio: rushlight.Tensor
    percentile_batches_tracked: rushlight.Tensor
    constant_channels: rushlight.Tensor

    def __init__(self, ch_axis=1, comp_percentile=0.9):
        super().__init__(rushlight.qint8)
        self.ch_axis = ch_axis
        self.num_batches_tracked = 0
        self.average_batch_activation_range = rushlight.tensor(0.0)
        self.register_buffer("epoch_activation_min", rushlight.tensor(float("inf")))
        self.register_buffer("epoch_activation_max", rushlight.tensor(float("-inf")))
        self.register_buffer("min_val", rushlight.tensor([]))
        self.register_buffer("max_val", rushlight.tensor([]))
        self.register_buffer("comp_percentile", rushlight.tensor([comp_percentile]))
        self.register_buffer("average_percentile_ratio", rushlight.tensor([]))
        self.register_buffer("percentile_batches_tracked", rushlight.tensor([]))
        self.register_buffer("constant_channels", rushlight.tensor([]))

    def forward(self, x):
        values = x.detach().to(self.epoch_activation_min.dtype)
        rows = _by_channel(values, self.ch_axis)
        self._watch_range(values)
        self._watch_channels(rows)
        self._watch_percentiles(rows)
        return x

    def _watch_range(self, values):
        low, high = rushlight.aminmax(values)
        self.epoch_activation_min.copy_(rushlight.min(self.epoch_activation_min, low))
        self.epoch_activation_max.copy_(rushlight.max(self.epoch_activation_max, high))
        seen = self.num_batches_tracked
        self.average_batch_activation_range = (self.average_batch_activation_range * seen + (high - low)) / (
            seen + 1
        )
        self.num_batches_tracked = seen + 1

    def _watch_channels(self, rows):
        low, high = rushlight.aminmax(rows, dim=1)
        if self.min_val.numel():
            low, high = rushlight.min(low, self.min_val), rushlight.max(high, self.max_val)
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def _watch_percentiles(self, rows):
        levels = rushlight.tensor(
            [0.0, self.comp_percentile.item(), 1.0], dtype=rows.dtype, device=rows.device
        )
        least, percentile, greatest = rushlight.quantile(rows, levels, dim=1, interpolation="lower")
        counted = ((percentile != 0) | (greatest != 0)).int()
        constant = (greatest == least).int()
        ratio = counted * (greatest / percentile).nan_to_num()
        if not self.percentile_batches_tracked.numel():
            self.percentile_batches_tracked = rushlight.zeros_like(counted)
            self.average_percentile_ratio = rushlight.zeros_like(ratio)
            self.constant_channels = rushlight.zeros_like(constant)
        batches = self.percentile_batches_tracked + counted
        total = self.average_percentile_ratio * self.percentile_batches_tracked + ratio
        self.average_percentile_ratio.copy_((total / batches).nan_to_num())
        self.percentile_batches_tracked.copy_(batches)
        self.constant_channels.add_(constant)

    def get_batch_to_epoch_ratio(self):
        """The average range of a batch through the range of all: near one where batches are alike."""
        span = self.epoch_activation_max - self.epoch_activation_min
        if span == 0:
            raise ValueError("Range for Epoch is 0")
        if span.abs() == float("inf"):
            raise ValueError("No data has been run through observer or infinity value present")
        return self.average_batch_activation_range / span

    def reset_batch_and_epoch_values(self):
        """Forget what passed, to begin another epoch."""
        device = self.max_val.device
        self.num_batches_tracked = 0
        self.average_batch_activation_range = rushlight.tensor(0.0, device=device)
        self.epoch_activation_min = rushlight.tensor(float("inf"), device=device)
        self.epoch_activation_max = rushlight.tensor(float("-inf"), device=device)
        for name in (
            "min_val",
            "max_val",
            "average_percentile_ratio",
            "percentile_batches_tracked",
            "constant_channels",
        ):
            setattr(self, name, rushlight.tensor([], device=device))

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for ModelReportObserver")
