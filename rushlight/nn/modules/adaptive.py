"""Softmax over very many classes, in clusters by frequency."""

from collections import namedtuple

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log softmax in two steps, over frequent classes and clusters, then within a cluster (Grave and others
    2017).

    Args:
        in_features (int): size of the last dimension of the input.
        n_classes (int): how many classes, the most frequent first.
        cutoffs (sequence of int): where clusters begin, rising.
        div_value (float): how much smaller each cluster's projection is than the one before.
        head_bias (bool): whether the first step has a bias.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, in_features) and classes (batch) give log probabilities of the targets (batch) and the loss
        ().

    Formula: log p(class) = log p(cluster) + log p(class in its cluster)

    Raises: ValueError where cutoffs do not rise; RuntimeError where a target is out of range.

    Example:
        >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4])
        >>> output, loss = layer(torch.zeros(3, 4), torch.tensor([0, 3, 5]))
        >>> output.shape, loss.shape
        (torch.Size([3]), torch.Size([]))
    """

    def __init__(
        self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **where),
                    Linear(hidden, size, bias=False, **where),
                )
            )

    def reset_parameters(self):
        self.head.reset_parameters()
        for project, out in self.tail:
            project.reset_parameters()
            out.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        output = self._log_prob_of(input, target)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _log_prob_of(self, input, target):
        """Log probability of each sample's target; only the clusters that occur are computed."""
        used = 0
        output = input.new_zeros(target.size(0))
        column = target.new_empty(target.size(0))
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            rows = ((target >= bounds[i]) & (target < bounds[i + 1])).nonzero().squeeze(-1)
            if rows.numel() == 0:
                continue
            used += rows.numel()
            if i == 0:
                column.index_copy_(0, rows, target[rows])
                continue
            within = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            column.index_fill_(0, rows, self.shortlist_size + i - 1)
            local = within.gather(1, (target[rows] - bounds[i]).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, local)
        if used != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        return output + head.gather(1, column.unsqueeze(1)).squeeze(1)

    def _get_full_log_prob(self, input, head_output):
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, start:stop] = cluster + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input):
        """Log probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each sample."""
        head_output = self.head(input)
        output = torch.argmax(head_output, dim=1)
        in_tail = output >= self.shortlist_size
        if not in_tail.any():
            return output
        if in_tail.all():
            return torch.argmax(self._get_full_log_prob(input, head_output), dim=1)
        full = self._get_full_log_prob(input[in_tail], head_output[in_tail])
        output[in_tail] = torch.argmax(full, dim=1)
        return output
