"""Options of the fused linear and cross entropy loss."""

__all__ = ["LinearCrossEntropyOptions"]

_METHODS = ("auto", None)
_POLICIES = ("accurate", "balanced", "compact", "auto")


class LinearCrossEntropyOptions:
    """Hints on how `LinearCrossEntropyLoss` may split its work; the result does not depend on them.

    Args:
        allow_retain_graph (bool): whether a backward pass may be run again.
        batch_chunk_size (int or None): rows of a chunk; None chooses.
        chunking_method (str): how chunks are chosen.
        acc_policy (str): in which precision chunks are summed up.
        acc_dtype (dtype or None): the dtype of the sums.

    Example:
        >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=4).batch_chunk_size
        4
    """

    def __init__(
        self,
        allow_retain_graph=False,
        batch_chunk_size=None,
        chunking_method="auto",
        acc_policy="auto",
        acc_dtype=None,
    ):
        if acc_policy not in _POLICIES:
            raise ValueError(f"acc_policy must be one of {_POLICIES}, got {acc_policy!r}")
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self):
        return f"LinearCrossEntropyOptions({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def __eq__(self, other):
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]
