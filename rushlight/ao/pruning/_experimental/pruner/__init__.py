"""Pruning of rows: layers become smaller."""

from .base_structured_sparsifier import BaseStructuredSparsifier as BaseStructuredSparsifier
from .FPGM_pruner import FPGMPruner as FPGMPruner
from .lstm_saliency_pruner import LSTMSaliencyPruner as LSTMSaliencyPruner
from .parametrization import BiasHook as BiasHook
from .parametrization import FakeStructuredSparsity as FakeStructuredSparsity
from .saliency_pruner import SaliencyPruner as SaliencyPruner
