"""Weights that are zero far from their diagonal."""

import rushlight

from .base_sparsifier import BaseSparsifier


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps the elements near a matrix's diagonal.

    Args:
        nearliness: how many diagonals stay, an odd number; 1 keeps the diagonal itself.

    Example::

        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4))
        >>> sparsifier = torch.ao.pruning.NearlyDiagonalSparsifier(nearliness=3)
        >>> sparsifier.prepare(model, config=None)
        >>> sparsifier.step()
        >>> int(model[0].parametrizations.weight[0].mask.sum())
        10
    """

    def __init__(self, nearliness=1):
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module, tensor_name, nearliness, **kwargs):
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = rushlight.zeros_like(mask)
        if nearliness <= 0:
            return
        height, width = getattr(module, tensor_name).shape
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        reach = nearliness // 2
        if reach >= min(height, width):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        rows = rushlight.arange(height, device=mask.device)[:, None]
        columns = rushlight.arange(width, device=mask.device)
        mask.masked_fill_((rows - columns).abs() <= reach, 1)
