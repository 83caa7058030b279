"""`GraphModule`: a module whose forward is generated from a graph."""

from __future__ import annotations

import contextlib
import copy
import os
from pathlib import Path

import rushlight as torch

from ._codegen import _PyTreeCodeGen
from ._module_source import (  # noqa: F401
    FX_GRAPH_MODULE_FILE_PREFIX,
    _assign_attr,
    _copy_attr,
    _del_attr,
    _EvalCacheLoader,
    _exec_with_source,
    _format_import_block,
    _format_import_statement,
    _forward_from_src,
    _get_attr,
    _get_attr_via_attr_list,
    _has_attr,
    _loader,
    _method_from_src,
)
from ._wrapped_call import _WrappedCall, call_wrapped
from .graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx._codegen import PythonCode
    from rushlight.nn import Module

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

# meta entries that survive deepcopy
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


_KEPT_HOOKS = """
    _state_dict_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks _forward_hooks _forward_pre_hooks
    _backward_hooks _backward_pre_hooks _forward_hooks_with_kwargs _forward_pre_hooks_with_kwargs
    _forward_hooks_always_called
""".split()


class _CodeOnlyModule(torch.nn.Module):
    """A module that has its attributes already, and only wants to be traced again."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward, body, graph_module_cls=None):
    """Trace generated code again: pickled modules hold their code, not their graph."""
    _CodeOnlyModule.forward = forward
    from ._symbolic_trace import Tracer

    tracer_cls = body.get("_tracer_cls") or Tracer
    made_by = body.get("_graphmodule_cls_name", "GraphModule")

    class KeepModules(tracer_cls):
        # the code calls what was a leaf when it was made
        def is_leaf_module(self, m, module_qualified_name):
            return True

    module = _CodeOnlyModule(body)
    graph = KeepModules().trace(module, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = tracer_cls
    made = (graph_module_cls or GraphModule)(module, graph, class_name=made_by)
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made


def reduce_graph_module(body, import_block):
    """Unpickle a GraphModule from its code."""
    source = body.get("_code") or body.get("code")
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


def reduce_package_graph_module(importer, body, generated_module_name):
    """Take a GraphModule out of a package."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


def _indented(text):
    """Four spaces deeper; blank lines stay blank."""
    return "\n".join("    " + line if line.strip() else "" for line in text.split("\n"))


def _print_readable(
    module,
    module_name,
    print_output=True,
    include_stride=False,
    include_device=False,
    colored=False,
    expanded_def=False,
):
    """The source of a module with types and origins, and of the graph modules in it."""
    graph = getattr(module, "graph", None)
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    options = dict(include_stride=include_stride, include_device=include_device, colored=colored)
    code = graph.python_code(root_module="self", verbose=True, expanded_def=expanded_def, **options)
    own = f"class {module_name}(torch.nn.Module):\n" + _indented(code.src.lstrip("\n"))
    children = [
        _print_readable(child, name, False, expanded_def=expanded_def, **options)
        for name, child in module.named_children()
        if hasattr(child, "graph")
    ]
    text = own + _indented("\n".join(["", *children]))
    if print_output:
        print(text)
    return text


class GraphModule(torch.nn.Module):
    """A module with a ``graph``, and the ``code`` and ``forward`` generated from it.

    ``root`` is where its parameters and submodules come from: a module, or a dict from qualified names. After
    editing the graph, call `recompile`.
    """

    def __new__(cls, *args, **kwargs):
        # Each instance is of a class of its own, for `forward` belongs to a class.
        cls = next(base for base in cls.__mro__ if not base.__qualname__.endswith(".GraphModuleImpl"))

        class GraphModuleImpl(cls):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, torch.nn.Module):
            self._take_from_module(root, graph)
        elif isinstance(root, dict):
            self._take_from_dict(root, graph)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        self._tracer_cls = None
        if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__:
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = {}
        self._replace_hooks, self._create_node_hooks = [], []
        self._erase_node_hooks, self._deepcopy_hooks = [], []

    def _take_from_module(self, root, graph):
        self.training = getattr(root, "training", False)
        if isinstance(getattr(root, "meta", None), dict):
            root_meta = root.meta
        else:
            root_meta = {}
        self.__dict__["meta"] = dict(root_meta)
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)
        if isinstance(root, _CodeOnlyModule):  # a copy, or out of a file: what no node uses is kept, too
            for table in (root._modules, root._buffers, root._parameters):
                for name in table:
                    _copy_attr(root, self, name)

    def _take_from_dict(self, root, graph):
        targets = []
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in "
                        "``root``!"
                    )
                targets.append(node.target)
        # outer modules first, so that a submodule does not get lost under a later one
        for target in sorted(targets, key=lambda t: t.count(".")):
            _assign_attr(root[target], self, target)

    # -- graph and code

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates the code anew.

        Example:
            >>> traced = torch.fx.symbolic_trace(torch.nn.ReLU())
            >>> [node.op for node in traced.graph.nodes]
            ['placeholder', 'call_function', 'output']
        """
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code again, after the graph was edited."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code = code.src
        self._lineno_map, self._prologue_start = code._lineno_map, code._prologue_start
        cls = type(self)
        cls.forward = _forward_from_src(self._code, code.globals, self._graph._co_fields)
        cls.forward.__qualname__ = f"{cls.__name__}.forward"
        self._wrap_call(cls)
        return code

    def _wrap_call(self, cls):
        own_call = cls.__dict__.get("__call__")
        if "_wrapped_call" in cls.__dict__:
            return
        cls._wrapped_call = _WrappedCall(cls, own_call)
        cls.__call__ = call_wrapped

    def _recompile_submodules(self):
        return [
            child.recompile()
            for child in self.modules()
            if isinstance(child, GraphModule) and child is not self
        ]

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        **options,
    ) -> str:
        """Print the source with what is known of each value."""
        return _print_readable(
            self, self._get_name(), print_output, include_stride, include_device, colored, expanded_def
        )

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    # -- submodules

    def add_submodule(self, target, m):
        """Install a module at a qualified name; says whether that was possible."""
        *path, field = target.split(".")
        owner = self
        for name in path:
            child = getattr(owner, name, None)
            if child is None:
                child = torch.nn.Module()
                setattr(owner, name, child)
            if not isinstance(child, torch.nn.Module):
                return False
            owner = child
        owner.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Remove the module at a qualified name; says whether there was one."""
        *path, field = target.split(".")
        owner = self
        for name in path:
            owner = getattr(owner, name, None)
            if not isinstance(owner, torch.nn.Module):
                return False
        if not isinstance(getattr(owner, field, None), torch.nn.Module):
            return False
        delattr(owner, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node uses."""
        used = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            names = node.target.split(".")
            used.update(".".join(names[: i + 1]) for i in range(len(names)))
            if node.op == "call_module":
                try:
                    used.update(
                        f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules()
                    )
                except AttributeError:
                    continue  # the target is gone already; lint says so
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- copies and files

    def _reduced_dict(self):
        state = self.__dict__.copy()
        state.pop("_graph", None)
        for name in ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks"):
            state[name] = []
        return state

    def __reduce__(self):
        state = self._reduced_dict()
        code = self._graph.python_code(root_module="self")
        return reduce_graph_module, (state, _format_import_block(code.globals) + "\n")

    def __reduce_package__(self, exporter):
        state = self._reduced_dict()
        name = f"fx-generated._{exporter.get_unique_id()}"
        code = self._graph.python_code(root_module="self")
        imports = _format_import_block(code.globals, exporter.importer)
        exporter.save_source_string(name, imports + "\n" + self.code)
        return reduce_package_graph_module, (state, name)

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        held = _CodeOnlyModule(copy.deepcopy({**self.__dict__, "_graph": None}, memo))
        self._deepcopy_init()(made, held, copy.deepcopy(self.graph, {}), type(self).__name__)
        made.graph._codegen = copy.deepcopy(self.graph._codegen)
        for name in _KEPT_HOOKS:
            setattr(made, name, copy.copy(self.__dict__[name]))
        made.meta = held.meta
        for name, value in self.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in self._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self):
        made = GraphModule(self, copy.copy(self.graph), type(self).__name__)
        made.meta = getattr(self, "meta", {})
        return made

    def _replicate_for_data_parallel(self):
        made = copy.copy(self)
        made.__dict__["_is_replica"] = True
        return made

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as a Python package of its own, with its parameters beside."""
        from ._to_folder import write_module

        write_module(self, Path(os.fspath(folder)), module_name)

    # -- hooks on edits

    @contextlib.contextmanager
    def _set_replace_hook(self, f):
        """Within it, `f(old, new, user)` is called when a node takes another input."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f):
        self._replace_hooks.append(_checked_hook(f, "replace"))

    def _unregister_replace_node_hook(self, f):
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f):
        self._create_node_hooks.append(_checked_hook(f, "create_node"))

    def _unregister_create_node_hook(self, f):
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f):
        self._erase_node_hooks.append(_checked_hook(f, "erase_node"))

    def _unregister_erase_node_hook(self, f):
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f):
        self._deepcopy_hooks.append(_checked_hook(f, "deepcopy"))

    def _unregister_deepcopy_hook(self, f):
        self._deepcopy_hooks.remove(f)


def _checked_hook(f, kind):
    if not callable(f):
        raise AssertionError(f"{kind} hook must be a callable.")
    return f
