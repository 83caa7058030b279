"""Turning generated source into methods, and attributes by qualified names."""

import builtins
import importlib
import linecache
import sys
import weakref

import rushlight as torch

from ._codegen import _custom_builtins
from ._names import _get_qualified_name, is_from_torch, type_name

FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"


class _EvalCacheLoader:
    """Gives the source of generated code to tracebacks and `inspect`."""

    def __init__(self):
        self.eval_cache = {}
        self.next_id = 0

    def cache(self, src, globals, co_fields=None):
        """Keep a source under a file name of its own, and tell it to `linecache` through the globals."""
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields:
            key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
        self.eval_cache[key] = src
        globals.update(__name__=key, __loader__=self)
        if not linecache.lazycache(key, globals):  # which takes no name that ends as "<lambda>" does
            linecache.cache[key] = len(src), None, src.splitlines(keepends=True), key
        return key

    def forget(self, key):
        self.eval_cache.pop(key, None)
        linecache.cache.pop(key, None)

    def get_source(self, module_name):
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    """`import`, where `torch` is this package whether or not the alias is on."""
    root, _, rest = name.partition(".")
    if root != "torch":
        return builtins.__import__(name, globals, locals, fromlist, level)
    module = importlib.import_module(f"{torch.__name__}.{rest}" if rest else torch.__name__)
    return module if fromlist else torch


def _exec_with_source(src, globals, co_fields=None):
    key = _loader.cache(src, globals, co_fields)
    globals["__builtins__"] = {**vars(builtins), "__import__": _import, "__build_class__": __build_class__}
    exec(compile(src, key, "exec", dont_inherit=True), globals)
    return key


def _method_from_src(method_name, src, globals, co_fields=None):
    """The method; its source is kept as long as it lives."""
    names = globals.copy()
    key = _exec_with_source(src, names, co_fields)
    method = names.pop(method_name)  # which holds the names
    weakref.finalize(method, _loader.forget, key).atexit = False
    return method


def _forward_from_src(src, globals, co_fields=None):
    return _method_from_src("forward", src, globals, co_fields)


def _format_import_statement(name, obj, importer=None):
    """How a fresh interpreter gets hold of what generated code calls `name`."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if getattr(obj, "__module__", None) == "builtins":
        return f"from builtins import {obj.__name__} as {name}"
    if importer is not None and not is_from_torch(obj):
        module, attribute = importer.get_name(obj)
        from rushlight.package._mangling import demangle

        return f"from {demangle(module)} import {attribute} as {name}"
    full = type_name(obj) if isinstance(obj, type) else _qualified_for_import(obj)
    module, _, attribute = full.rpartition(".")
    return f"from {module} import {attribute} as {name}"


def _qualified_for_import(obj):
    if is_from_torch(obj):
        return _get_qualified_name(obj)
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    if module is None or name is None:
        raise RuntimeError(f"cannot say how to import {obj!r}")
    return f"{module}.{name}"


def _format_import_block(globals, importer=None):
    lines = {_format_import_statement(name, obj, importer) for name, obj in globals.items()}
    return "\n".join(sorted(lines))


# --- attributes by qualified names ------------------------------------------------------------------


def _walk(root, names, create=False):
    """The module at the end of a path, or None."""
    for name in names:
        child = getattr(root, name, None)
        if child is None:
            if not create:
                return None
            child = torch.nn.Module()
            setattr(root, name, child)
        root = child
    return root


def _copy_attr(from_module, to_module, target):
    """Give `to_module` the attribute at a qualified name; modules on the way are made."""
    *path, field = target.split(".")
    source = _walk(from_module, path)
    if source is None or not hasattr(source, field):
        return
    # modules on the way that exist in the copy are shared, so an attribute may be there already
    owner = _walk(to_module, path, create=True)
    value = getattr(source, field)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        persistent = field not in getattr(source, "_non_persistent_buffers_set", ())
        if field in owner._buffers or field not in vars(owner):
            owner.register_buffer(field, value, persistent=persistent)
            return
    setattr(owner, field, value)


def _assign_attr(from_obj, to_module, target):
    """Set the attribute at a qualified name; plain tensors become buffers."""
    *path, field = target.split(".")
    owner = _walk(to_module, path, create=True)
    if isinstance(from_obj, torch.Tensor) and not isinstance(from_obj, torch.nn.Parameter):
        owner.register_buffer(field, from_obj)
    else:
        setattr(owner, field, from_obj)


def _get_attr_via_attr_list(model, attr_list):
    for name in attr_list:
        model = getattr(model, name)
    return model


def _get_attr(model, attr_name):
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _has_attr(model, attr_name):
    for name in attr_name.split("."):
        if not hasattr(model, name):
            return False
        model = getattr(model, name)
    return True


def _del_attr(model, attr_name):
    *path, field = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path), field)


# --- errors in generated code -----------------------------------------------------------------------


def _show_failing_line(trace):
    """For an exception from generated code: a few lines of it around the one that failed."""
    frame = trace[-1]
    source = _loader.eval_cache.get(frame.filename, "").split("\n")
    if not frame.lineno or frame.lineno > len(source):
        return
    start = max(0, frame.lineno - 3)
    before = "\n".join(source[start : frame.lineno])
    after = "\n".join(source[frame.lineno : frame.lineno + 2])
    mark = "~" * len(source[frame.lineno - 1]) + "~~~ <--- HERE"
    place = f"line {frame.lineno} of the traced Module's generated forward function:"
    head = f"Call using an FX-traced Module, {place}"
    print("\n".join([head, before, mark, after]), file=sys.stderr)
