"""What layers share that normalisation is folded into: its statistics, and whether they go on."""

__all__ = ["FoldedNorm", "share_statistics"]


class FoldedNorm:
    """A layer with normalisation in ``bn``, whose statistics are the batch's own or frozen."""

    def reset_running_stats(self):
        self.bn.reset_running_stats()

    def update_bn_stats(self):
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self):
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode=True):
        """Frozen statistics stay frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self


def share_statistics(own, other):
    """The parameters and statistics of another normalisation, shared with it."""
    own.weight, own.bias = other.weight, other.bias
    own.running_mean, own.running_var = other.running_mean, other.running_var
    own.num_batches_tracked = other.num_batches_tracked
