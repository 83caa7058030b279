"""Loss functions as modules."""

from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from ._loss_base import _Loss, _WeightedLoss
from ._margin_losses import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)

__all__ = [
    "L1Loss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "MSELoss", "BCELoss",
    "BCEWithLogitsLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SmoothL1Loss", "HuberLoss",
    "SoftMarginLoss", "CrossEntropyLoss", "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss",
    "MarginRankingLoss", "MultiMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "CTCLoss",
    "LinearCrossEntropyLoss",
]  # fmt: skip


class L1Loss(_Loss):
    """Mean absolute error.

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = mean of |x - target|

    Raises: RuntimeError where shapes do not broadcast.

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Negative log likelihood of class targets, given log probabilities.

    Args:
        weight (Tensor or None): a factor of each class.
        size_average, reduce: deprecated, see `reduction`.
        ignore_index (int): a class that counts for nothing.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: log probabilities (batch, classes, ..) and classes (batch, ..) give ().

    Formula: loss = -sum of weight[t] * x[t] / sum of weight[t]

    Raises: ValueError where batches differ; IndexError where a class is not below `classes`.

    Example:
        >>> torch.nn.NLLLoss()(torch.tensor([[-0.1, -2.4]]), torch.tensor([1]))
        tensor(2.4000)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """The old name of `NLLLoss` on images; deprecated, which it warns of.

    Args:
        weight, size_average, ignore_index, reduce, reduction: see `NLLLoss`.

    Shape: log probabilities (batch, classes, height, width) and classes (batch, height, width) give ().

    Formula: that of `NLLLoss`

    Example:
        >>> torch.nn.NLLLoss2d()(torch.zeros(1, 2, 1, 1), torch.tensor([[[1]]]))
        tensor(0.)
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        import warnings

        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under a Poisson distribution.

    Args:
        log_input (bool): whether the input is the logarithm of the rate.
        full (bool): whether Stirling's approximation of log(target!) is added.
        size_average, reduce: deprecated, see `reduction`.
        eps (float): added to rates before their logarithm.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = exp(x) - target * x, or x - target * log(x + eps)

    Raises: ValueError where `reduction` is another word.

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood under a normal distribution with predicted variance.

    Args:
        full (bool): whether log(2 pi) / 2 is added.
        eps (float): the least variance.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input, target and var (or one for each row) give ().

    Formula: loss = (log(var) + (x - target)**2 / var) / 2

    Raises: ValueError where a variance is negative or of another shape.

    Example:
        >>> loss = torch.nn.GaussianNLLLoss()
        >>> loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0]))
        tensor(1.1931)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of the target from the input, given log probabilities as input.

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'batchmean' (the definition), 'sum' or 'none'.
        log_target (bool): whether the target is log probabilities too.

    Shape: input and target of one shape give ().

    Formula: loss = target * (log(target) - x)

    Raises: RuntimeError where shapes do not broadcast.

    Example:
        >>> loss = torch.nn.KLDivLoss(reduction="batchmean")
        >>> loss(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    """Mean squared error.

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = mean of (x - target)**2

    Raises: RuntimeError where shapes do not broadcast.

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """Binary cross entropy, given probabilities; `BCEWithLogitsLoss` is exact near 0 and 1.

    Args:
        weight (Tensor or None): a factor of each element.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = -(target * log(x) + (1 - target) * log(1 - x)), logarithms at least -100

    Raises: RuntimeError where a probability is not from 0 to 1; ValueError where shapes differ.

    Example:
        >>> torch.nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy, given logits.

    Args:
        weight (Tensor or None): a factor of each element, broadcast.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.
        pos_weight (Tensor or None): a factor of what is true, broadcast.

    Shape: scores and targets of one shape give ().

    Formula: loss = -(t * log sigmoid(x) + (1 - t) * log(1 - sigmoid(x))), averaged

    Raises: ValueError where shapes differ.

    Example:
        >>> torch.nn.BCEWithLogitsLoss()(torch.zeros(2), torch.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class SmoothL1Loss(_Loss):
    """Squared below `beta`, absolute above it (Girshick 2015).

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.
        beta (float): where the two meet.

    Shape: input and target of one shape give ().

    Formula: loss = d**2 / (2 * beta) where d < beta, else d - beta / 2; d = |x - target|

    Raises: RuntimeError where `beta` is negative.

    Example:
        >>> torch.nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor([0.1250, 2.5000])
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared below `delta`, absolute above it (Huber 1964): `SmoothL1Loss` times `delta`.

    Args:
        reduction (str): 'mean', 'sum' or 'none'.
        delta (float): where the two meet.

    Shape: input and target of one shape give ().

    Formula: loss = d**2 / 2 where d < delta, else delta * (d - delta / 2); d = |x - target|

    Raises: RuntimeError where `delta` is not above 0.

    Example:
        >>> torch.nn.HuberLoss(reduction="none")(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor([0.1250, 2.5000])
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of class targets or class probabilities, given logits.

    Args:
        weight (Tensor or None): a factor of each class.
        size_average, reduce: deprecated, see `reduction`.
        ignore_index (int): a class that counts for nothing.
        reduction (str): 'mean', 'sum' or 'none'.
        label_smoothing (float): the share of the target that is spread over all classes.

    Shape: scores (batch, classes, ..) and classes (batch, ..), or probabilities of the scores'
        shape, give ().

    Formula: loss = -sum over c of target[c] * log softmax(x)[c], averaged over the batch

    Raises: ValueError where batches differ; IndexError where a class is not below `classes`.

    Example:
        >>> loss = torch.nn.CrossEntropyLoss()
        >>> loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor(0.6931)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves and others 2006): a label sequence, summed over its
    alignments.

    Args:
        blank (int): the class of no label.
        reduction (str): 'mean' (each loss over its target's length), 'sum' or 'none'.
        zero_infinity (bool): whether targets that are too long count for nothing, not for infinity.

    Shape: log probabilities (time, batch, classes), targets (batch, length) or all in a row, their lengths
        (batch)
        give ().

    Formula: loss = -log of the sum over alignments of the product of their probabilities

    Raises: RuntimeError where lengths do not fit.

    Example:
        >>> scores = torch.zeros(3, 1, 2).log_softmax(2)
        >>> torch.nn.CTCLoss()(scores, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1]))
        tensor(0.2877)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its outputs, in chunks that never hold all scores.

    Args:
        in_features (int): size of the last dimension of the input.
        num_classes (int): how many classes.
        out_features (tuple): further dimensions of the target.
        bias (bool): whether a bias is added.
        device, dtype: where and in which dtype the parameters are made.
        reduction (str): 'mean', 'sum' or 'none'.
        weight (Tensor or None): a factor of each class.
        ignore_index (int or None): a class that counts for nothing.
        label_smoothing (float): the share of the target that is spread over all classes.
        options (LinearCrossEntropyOptions or None): how the work is split.

    Shape: (batch, in_features) and classes (batch) give ().

    Formula: loss = cross entropy of x @ weight.T + bias

    Raises: ValueError where batches differ.

    Example:
        >>> loss = torch.nn.LinearCrossEntropyLoss(4, 3)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2]))
        tensor(1.0986, grad_fn=<NllLossBackward0>)
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features,
        num_classes,
        *,
        out_features=(),
        bias=False,
        device=None,
        dtype=None,
        reduction="mean",
        weight=None,
        ignore_index=None,
        label_smoothing=0.0,
        options=None,
    ):
        from math import prod

        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = num_classes * prod(self.out_features)
        self.linear = torch.nn.Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.view(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.view(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
