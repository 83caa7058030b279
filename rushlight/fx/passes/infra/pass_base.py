"""`PassBase`: a pass with conditions before and after."""

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """Override ``call``; ``requires`` and ``ensures`` check the module before and after."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Run the pass; returns a PassResult, or None."""

    def requires(self, graph_module):  # noqa: B027
        """Raise if the pass can't run on the module."""

    def ensures(self, graph_module):  # noqa: B027
        """Raise if the pass left the module as it must not be."""
