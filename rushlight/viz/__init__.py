"""Pictures of what autograd recorded, of models, of profiles, and of tensors in notebooks. Beyond PyTorch.

`graph` draws the graph behind a tensor, `modules` a model's modules with the shapes of their results. Both
give a `Picture`: notebooks show it, `save` writes SVG, or DOT for Graphviz. `trace` writes a profile as an
HTML file to look around in.
"""

from rushlight.viz._graph import graph
from rushlight.viz._modules import modules
from rushlight.viz._page import trace
from rushlight.viz._picture import Picture

__all__ = ["Picture", "graph", "modules", "trace"]
