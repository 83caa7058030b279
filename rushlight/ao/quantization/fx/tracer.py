"""Tracing for quantisation: which modules stay one node, and where each node came from."""

from rushlight import fx
from rushlight._command.names import is_own
from rushlight.ao.nn.intrinsic import _FusedModule

__all__ = ["QuantizationTracer", "Scope", "ScopeContextManager"]


class Scope:
    """The path and class of the module whose forward is being traced."""

    def __init__(self, module_path, module_type):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Inside, the scope is a submodule's."""

    def __init__(self, scope, current_module, current_module_path):
        self.scope, self.inner = scope, Scope(current_module_path, type(current_module))
        self.before = Scope(scope.module_path, scope.module_type)

    def __enter__(self):
        self.scope.module_path, self.scope.module_type = self.inner.module_path, self.inner.module_type
        return self.scope

    def __exit__(self, *_):
        self.scope.module_path, self.scope.module_type = self.before.module_path, self.before.module_type


class QuantizationTracer(fx.Tracer):
    """Layers, fused layers and what the program names stay one node each."""

    def __init__(self, skipped_module_names, skipped_module_classes):
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes
        self.scope = Scope("", None)
        self.node_name_to_scope = {}
        self.record_stack_traces = True

    def is_leaf_module(self, m, module_qualified_name):
        layer = is_own(m.__module__, "nn", "ao.nn")
        container = type(m).__name__ in ("Sequential", "ModuleList", "ModuleDict")
        return (
            (layer and not container)
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
            or isinstance(m, _FusedModule)
        )

    def call_module(self, m, forward, args, kwargs):
        with ScopeContextManager(self.scope, m, self.path_of_module(m)):
            return super().call_module(m, forward, args, kwargs)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        return node
