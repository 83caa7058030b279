"""Libraries: what a program defines operators and gives kernels through, for as long as the library lives."""

import contextlib
import warnings
import weakref

import rushlight as torch
from rushlight import _C, _ops
from rushlight._command.names import show_from
from rushlight._library import replaced_kernels, simple_registry

__all__ = ["KEYS", "Library", "fallthrough_kernel", "overload_named"]

# Kernels and rules for operators that are not there yet, or never will be because their library did not load:
# what registers each, by the operator.
_to_come: dict = {}
_told_of_replacing = False

# Dispatch keys that kernels are registered for, and where the record keeps them.
KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": "any",
    "CompositeExplicitAutogradNonFunctional": "any",
    "CompositeImplicitAutograd": "composite",
    "": "composite",
}
_namespaces_defined: set = set()
_impls: set = set()  # "namespace/operator/key" of the kernels that libraries have given


def _check_key(name):
    from rushlight._extension.dispatch_keys import DispatchKey  # seldom needed

    if name not in DispatchKey.__members__:  # type: ignore[attr-defined]
        raise RuntimeError(f"could not parse dispatch key: {name}")


def fallthrough_kernel():
    """Stands for "skip this dispatch key" in Library.impl."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A place to define operators (``DEF``: a new namespace, ``FRAGMENT``: any) or kernels (``IMPL``)."""

    __module__ = "rushlight.library"
    _reserved: tuple = ("prim",)  # namespaces that programs may not add to

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind of library: {kind!r}; there are IMPL, DEF and FRAGMENT")
        if dispatch_key:
            _check_key(dispatch_key)
        if ns in self._reserved and kind in ("DEF", "FRAGMENT"):
            raise ValueError(ns, " is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in {"aten", *_namespaces_defined}:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all "
                "of your "
                "definitions in a single TORCH_LIBRARY block. Use Library(ns, 'FRAGMENT') to add to it."
            )
        if kind == "DEF":
            _namespaces_defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs: dict = {}
        self._op_impls: set = set()
        self._replaced: list = []  # kernels of built-in operators
        self._finalizer = weakref.finalize(
            self, _forget, ns, kind, self._op_defs, self._op_impls, self._replaced
        )

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema: ``lib.define("mysum(Tensor x) -> Tensor")``.

        Returns its name as the schema has it, with the namespace where that is given.
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                "Library.define: an IMPL library gives kernels; use DEF or FRAGMENT to define operators"
            )
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        given = schema.split("(", 1)[0].strip()
        full = schema if "::" in given else f"{self.ns}::{schema}"
        name, _, overload = full.split("(", 1)[0].strip().partition("::")[2].partition(".")
        if overload in _ops._defined.get(self.ns, {}).get(name, {}):
            raise RuntimeError(
                f"Tried to register an operator ({full}) with the same name and overload name multiple times."
            )
        schema = _core_schema(full)
        unused = _unused_records.get(schema)
        index = unused.pop() if unused else _C._define_operator(schema)
        defined = _ops._define(self.ns, name, overload, index, full)
        _C._watch_operator(index, True)
        defined.tags = list(tags) if isinstance(tags, (list, tuple)) else [tags]
        self._op_defs[name, overload] = index, schema
        for register in _to_come.pop((self.ns, name, overload), ()):
            register()
        return given

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True):
        """Give a kernel for a dispatch key: "CPU", "Meta", "Autograd", "CompositeImplicitAutograd", ...

        One that is there already is replaced, with a warning the first time, or with `allow_override=False`
        refused by a RuntimeError.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        if self.dispatch_key not in ("", key):
            raise RuntimeError(
                f'impl("{op_name}", ...): Explicitly provided dispatch key ({key}) is inconsistent with the '
                f"dispatch key of the enclosing TORCH_LIBRARY_IMPL block ({self.dispatch_key}). Please make "
                "a Library for that key."
            )
        if self._is_built_in(op_name):
            return self._impl_built_in(op_name, fn, key, allow_override)
        if self._is_to_come(op_name):
            options = {"with_keyset": with_keyset, "allow_override": allow_override}
            _to_come.setdefault(self._parts(op_name), []).append(
                lambda: self.impl(op_name, fn, key, **options)
            )
            return
        index = self._index(op_name)
        self._note(op_name, key)
        if fn is fallthrough_kernel:
            if key in replaced_kernels.AUTOGRAD_KEYS:  # it means to have no derivative
                _C._watch_operator(index, False)
            return
        if with_keyset:
            raise NotImplementedError(
                "Library.impl(with_keyset=True): there are no dispatch key sets to pass on"
            )
        if key in replaced_kernels.AUTOCAST_DEVICES:
            _C._set_operator_autocast(index, replaced_kernels.AUTOCAST_DEVICES[key], fn)
        elif key in replaced_kernels.AUTOGRAD_KEYS:
            _C._set_operator_autograd(index, fn)
        elif key in KEYS:
            if _C._get_operator_kernel(index, KEYS[key]) is not None:
                self._replace(op_name, key, allow_override)
            _C._set_operator_kernel(index, KEYS[key], fn)
        elif key not in replaced_kernels.ELSEWHERE:
            raise NotImplementedError(f"Library.impl: no kernels can be registered for dispatch key {key!r}")

    def _impl_stand_in(self, op_name, fn):
        """The composite kernel of an operator that another package takes for its own: it gives it fakes and
        kernels of meta tensors, which are not needed."""
        self.impl(op_name, fn, "CompositeImplicitAutograd")
        _impls.discard(self._known(op_name, "CompositeImplicitAutograd"))

    def _is_built_in(self, op_name):
        space, name, overload = self._parts(op_name)
        return space == "aten" and overload not in _ops._defined.get(space, {}).get(name, {})

    def _impl_built_in(self, op_name, fn, key, allow_override):
        """Replace a kernel of a built-in operator for as long as this library lives."""
        space, name, overload = self._parts(op_name)
        if space != self.ns:
            raise RuntimeError(
                f"impl({space}::{name}): the namespace does not match that of the library ({self.ns}): "
                "operator name does not match namespace"
            )
        try:
            found = overload_named(f"{space}::{name}" + (f".{overload}" if overload else ""))
        except AttributeError:
            raise RuntimeError(f"There are no operators named {space}::{name}") from None
        if self._known(op_name, key) in _impls and not allow_override:
            self._replace(op_name, key, False)
        if fn is fallthrough_kernel:
            self._replaced += replaced_kernels.skip(found, key)
        else:
            self._replaced += replaced_kernels.replace(found, key, fn)
        self._note(op_name, key)

    def _known(self, op_name, key):
        """What `_impls` knows a kernel by."""
        space, name, overload = self._parts(op_name)
        return f"{space}/{name}{'.' + overload if overload else ''}/{key}"

    def _note(self, op_name, key):
        known = self._known(op_name, key)
        _impls.add(known)
        self._op_impls.add(known)

    def _replace(self, op_name, key, allowed):
        global _told_of_replacing
        if not allowed:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding "
                f"{op_name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        if not _told_of_replacing:
            _told_of_replacing = True
            warnings.warn(
                "Warning only once for all operators, other operators may also be overridden.\n"
                "  Overriding a previously registered kernel for the same operator and the same dispatch "
                "key\n"
                f"  operator: {op_name} of {self.ns}\n  dispatch key: {key}",
                UserWarning,
                stacklevel=3,
            )

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        raise NotImplementedError(
            "Library.fallback: a namespace has no fallback kernels; register each operator's"
        )

    def _parts(self, op_name):
        """(namespace, name, overload)"""
        if isinstance(op_name, _ops.OpOverload):
            return op_name.namespace, op_name._opname, op_name._entry.overload
        space, _, rest = op_name.rpartition("::")
        name, _, overload = rest.partition(".")
        return space or self.ns, name, overload

    def _qualified_name(self, op_name):
        space, name, overload = self._parts(op_name)
        return f"{space}::{name}" + (f".{overload}" if overload else "")

    def _is_to_come(self, op_name):
        space, name, overload = self._parts(op_name)
        return space != "aten" and overload not in _ops._defined.get(space, {}).get(name, {})

    def _index(self, op_name):
        space, name, overload = self._parts(op_name)
        entry = _ops._defined.get(space, {}).get(name, {}).get(overload)
        if entry is None:
            if space == "aten":
                raise NotImplementedError(
                    f"Library.impl: the kernels of {space}::{name} cannot be replaced; use a "
                    "TorchDispatchMode"
                )
            raise RuntimeError(f"There are no operators named {space}::{name}: define it first")
        return entry.index

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=True):
        if self._is_to_come(op_name):
            waiting = _to_come.setdefault(self._parts(op_name), [])
            waiting.append(lambda: self._register_fake(op_name, fn))
            return
        index = self._index(op_name)
        if any(self._known(op_name, key) in _impls for key in ("CompositeImplicitAutograd", "")):
            raise RuntimeError(
                f"register_fake(...): the operator {op_name} has a kernel for CompositeImplicitAutograd. "
                "Such operators need no fake impl: the operators that they call may have one."
            )
        _C._set_operator_kernel(index, "meta", fn)
        simple_registry.singleton.note_fake(self._qualified_name(op_name), fn)

    def _register_torch_dispatch_rule(self, op_name, torch_dispatch_class, fn):
        _C._set_operator_rule(self._index(op_name), torch_dispatch_class, fn)

    def _destroy(self):
        """Forget what this library defined."""
        self._finalizer()

    @property
    def m(self):
        """What registers: the library itself."""
        return self

    @m.deleter
    def m(self):
        self._destroy()


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A library for the length of a block; what it defined is gone afterwards."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_unused_records: dict = {}  # schema -> records of operators that are gone; those of the core stay for good


def _forget(ns, kind, defs, impls, replaced):
    replaced_kernels.undo(replaced)
    replaced.clear()
    _impls.difference_update(impls)
    impls.clear()
    for (name, overload), (index, schema) in list(defs.items()):
        _ops._undefine(ns, name, overload)
        simple_registry.singleton.forget(f"{ns}::{name}" + (f".{overload}" if overload else ""))
        _C._forget_operator(index)
        _unused_records.setdefault(schema, []).append(index)
    defs.clear()
    if kind == "DEF":
        _namespaces_defined.discard(ns)


def _core_schema(text):
    """The schema as the core reads it: without what only Python knows."""
    return text.replace("SymInt", "int")


def overload_named(name):
    space, _, rest = name.partition("::")
    plain, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), plain), overload or "default")


show_from("library", fallthrough_kernel)
