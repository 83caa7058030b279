"""Graph modules are compiled when they are made; the names that ask for laziness are kept."""

import contextlib

from .graph_module import GraphModule


def _make_graph_module(*args, graph_module_cls=None, **kwargs):
    return (graph_module_cls or GraphModule)(*args, **kwargs)


class _LazyGraphModule(GraphModule):
    """A graph module; compiling is cheap enough not to wait for the first call."""

    @classmethod
    def force_recompile(cls, gm):
        return gm

    def real_recompile(self):
        return self.recompile()


@contextlib.contextmanager
def _use_lazy_graph_module(should_use):
    yield
