"""Rows of least norm of an LSTM's weights."""

from .base_structured_sparsifier import BaseStructuredSparsifier
from .parametrization import FakeStructuredSparsity
from .saliency_pruner import _row_norms


class LSTMSaliencyPruner(BaseStructuredSparsifier):
    """Prunes as many rows of each of the four gates, whose weights lie one below another in an LSTM's.

    The part of the rows is ``sparsity_level`` of the configuration.
    """

    def update_mask(self, module, tensor_name, **kwargs):
        weight = getattr(module, tensor_name)
        for step in getattr(module.parametrizations, tensor_name):
            if not isinstance(step, FakeStructuredSparsity):
                continue
            rows = len(step.mask) // 4
            for kept, norms in zip(step.mask.split(rows), _row_norms(weight).split(rows), strict=True):
                count = int(len(kept) * kwargs["sparsity_level"])
                kept.data[norms.topk(count, largest=False, sorted=False).indices] = False
