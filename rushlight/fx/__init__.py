"""Programs as graphs: trace a module symbolically, look at its operations, change them, and run the result.

`symbolic_trace` runs a module with proxies and gives back a `GraphModule`, whose `graph` is a list of nodes
and whose `code` is Python generated from it.
"""

from rushlight._command.submodules import submodules_of

from . import immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "symbolic_trace",
    "Tracer",
    "wrap",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Transformer",
    "Node",
    "Proxy",
    "replace_pattern",
    "has_side_effect",
    "map_arg",
]


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.fx import annotate as annotate
    from rushlight.fx import config as config
    from rushlight.fx import experimental as experimental
    from rushlight.fx import graph as graph
    from rushlight.fx import graph_module as graph_module
    from rushlight.fx import immutable_collections as immutable_collections
    from rushlight.fx import interpreter as interpreter
    from rushlight.fx import node as node
    from rushlight.fx import operator_schemas as operator_schemas
    from rushlight.fx import passes as passes
    from rushlight.fx import proxy as proxy
    from rushlight.fx import subgraph_rewriter as subgraph_rewriter
    from rushlight.fx import traceback as traceback

__getattr__ = submodules_of(__name__)
