"""Losses of margins: scores or distances that should differ by so much."""

from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight.nn import functional as F

from ._loss_base import _Loss, _WeightedLoss
from .distance import PairwiseDistance


class HingeEmbeddingLoss(_Loss):
    """Distances of pairs that are alike (target 1) or not (target -1).

    Args:
        margin (float): distance beyond which pairs that are not alike count no more.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = x where target is 1, else max(0, margin - x)

    Example:
        >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.5]), torch.tensor([1.0, -1.0]))
        tensor(0.5000)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss between the classes of a sample and all others.

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: scores (batch, classes) and classes of that shape, ended by -1, give ().

    Formula: loss = sum over targets t, others i of max(0, 1 - (x[t] - x[i])) / classes

    Raises: RuntimeError where shapes differ or a class is out of range.

    Example:
        >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[0.1, 0.4]]), torch.tensor([[1, -1]]))
        tensor(0.3500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss for targets 1 and -1.

    Args:
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: input and target of one shape give ().

    Formula: loss = mean of log(1 + exp(-target * x))

    Example:
        >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of several labels, given logits, averaged over the classes.

    Args:
        weight (Tensor or None): a factor of each class.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: scores and targets (batch, classes) give ().

    Formula: loss = -mean over c of target * log sigmoid(x) + (1 - target) * log sigmoid(-x)

    Example:
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Pairs that are alike (target 1) should point one way, others (target -1) apart.

    Args:
        margin (float): cosine below which pairs that are not alike count no more.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: two inputs (batch, size) and targets (batch) give ().

    Formula: loss = 1 - cos(x1, x2) where target is 1, else max(0, cos(x1, x2) - margin)

    Raises: RuntimeError where shapes do not fit.

    Example:
        >>> loss = torch.nn.CosineEmbeddingLoss()
        >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1.0]))
        tensor(1.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """The first input should rank above the second (target 1), or below it (target -1).

    Args:
        margin (float): by how much.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: two inputs and a target of one shape give ().

    Formula: loss = max(0, -target * (x1 - x2) + margin)

    Raises: RuntimeError where the inputs' ranks differ.

    Example:
        >>> loss = torch.nn.MarginRankingLoss()
        >>> loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss between the target class and all others.

    Args:
        p (int): power of the hinge, 1 or 2.
        margin (float): by how much the target's score should be above.
        weight (Tensor or None): a factor of each class.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: scores (batch, classes) and classes (batch) give ().

    Formula: loss = sum over i of max(0, margin - x[t] + x[i])**p / classes

    Raises: ValueError where `p` is neither 1 nor 2.

    Example:
        >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.1, 0.4]]), torch.tensor([1]))
        tensor(0.3500)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p != 1 and p != 2:
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """An anchor should be nearer to a positive sample than to a negative one (Balntas and others 2016).

    Args:
        margin (float): by how much.
        p (float): the norm of distances.
        eps (float): added to differences.
        swap (bool): whether the positive sample stands for the anchor where it is nearer to the negative one.
        size_average, reduce: deprecated, see `reduction`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: anchor, positive and negative (batch, size) give ().

    Formula: loss = max(0, d(anchor, positive) - d(anchor, negative) + margin)

    Raises: ValueError where `margin` is not above 0.

    Example:
        >>> loss = torch.nn.TripletMarginLoss()
        >>> loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2))
        tensor(1.0000)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
    ):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance.

    Args:
        distance_function (callable or None): distance of two batches; None: that of `PairwiseDistance`.
        margin (float): by how much the negative sample should be farther.
        swap (bool): see `TripletMarginLoss`.
        reduction (str): 'mean', 'sum' or 'none'.

    Shape: anchor, positive and negative (batch, size) give ().

    Formula: loss = max(0, d(anchor, positive) - d(anchor, negative) + margin)

    Raises: ValueError where `margin` is not above 0.

    Example:
        >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1))
        >>> loss(torch.zeros(1, 2), torch.ones(1, 2), 2 * torch.ones(1, 2))
        tensor(0.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


show_from(
    "nn.modules.loss",
    HingeEmbeddingLoss,
    MultiLabelMarginLoss,
    SoftMarginLoss,
    MultiLabelSoftMarginLoss,
    CosineEmbeddingLoss,
    MarginRankingLoss,
    MultiMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
