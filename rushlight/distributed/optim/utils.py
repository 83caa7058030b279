"""Functional optimizers under the name that PyTorch gives their module."""

from ._functional import as_functional_optim, functional_optim_map, register_functional_optim

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]
