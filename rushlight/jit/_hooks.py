"""Hooks of scripted modules: their signatures, which follow from that of `forward`, and their names.

Hooks run as Python, so one without types or that no script could call is left as it is: saving refuses it."""

from __future__ import annotations

import types

from rushlight.jit import _types as t
from rushlight.jit._checker import check_function
from rushlight.jit.frontend import FrontendError, script_function

__all__ = ["check_hooks"]


def check_hooks(module, original_name, functions):
    """Refuse typed hooks of a module whose names or types do not go with its methods."""
    forward = module._script_methods.get("forward")
    for table, kind in (("_forward_hooks", "Hook"), ("_forward_pre_hooks", "Pre-hook")):
        hooks = [h for h in getattr(module, table).values() if _is_compiled(h)]
        _check_names(hooks, kind, original_name)
        told = None if forward is None else forward.schema.returns
        for hook in dict.fromkeys(hooks):
            if hook.__name__ in module._script_methods:
                raise RuntimeError(
                    f"Can't define hook: {hook.__name__} on class: {type(module)._qualified_name} because a "
                    "method or hook with that name already exists."
                )
            try:
                unit = script_function(hook, functions, True)
                unit.checked(True)
                check_function(unit, unit.outside, True, module)
            except (FrontendError, RuntimeError, OSError, SyntaxError):
                continue
            check = _Signature(unit, kind, type(module)._qualified_name, forward)
            if kind == "Hook":
                told = check.hook(told)
            else:
                check.pre_hook()


def _is_compiled(hook):
    if not isinstance(hook, types.FunctionType) or getattr(hook, "_torchscript_modifier", None):
        return False
    code = hook.__code__
    return any(name in hook.__annotations__ for name in code.co_varnames[1 : code.co_argcount])


def _check_names(hooks, kind, original_name):
    known = {}
    for hook in hooks:
        if known.setdefault(hook.__name__, hook) is not hook:
            raise RuntimeError(
                f"{kind} '{hook.__name__}' on {original_name} has at least two different python definitions. "
                "Please use unique names for all hooks."
            )


class _Signature:
    """The signature of one hook beside that of the module's `forward`, None if that is the library's."""

    def __init__(self, unit, kind, owner, forward):
        self.unit, self.schema, self.kind = unit, unit.schema, kind
        self.start = f"{kind} '{unit.tree.name}' on module '{owner}' "
        self.expected = None if forward is None else [a.type for a in forward.schema.arguments]

    def refuse(self, reason):
        self.unit.refuse(f"{self.start}{reason}", self.unit.tree)

    def _inputs(self, count):
        found = len(self.schema.arguments) + 1
        if found != count:
            self.refuse(f"was expected to only have exactly {count} inputs but it had {found} inputs")
        given = self.schema.arguments[0].type
        if given.kind != "Tuple":
            self.refuse(
                f"expected the input argument to be typed as a Tuple but found type: '{given}' instead"
            )
        if self.expected is None:
            return
        received = f"Received type: '{given}'"
        if not self.expected and given.args:
            self.refuse(f"was expecting Tuple[()] as the input type. {received}")
        if len(given.args) != len(self.expected):
            self.refuse(f"has the wrong number of contained types for the input argument's Tuple. {received}")
        if not all(map(_agree, self.expected, given.args)):
            self.refuse(f"has the wrong inner types for the input tuple argument. {received}")

    def pre_hook(self):
        """The arguments in a tuple go in; a tuple of the same types, a lone argument or None comes out."""
        self._inputs(2)
        if self.unit.tree.returns is None:
            self.refuse("is missing a return annotation. Return annotations are required, please add one")
        returned = self.schema.returns
        if returned == t.NONE or self.expected is None:
            return
        wrong = f"returned the wrong type of: '{returned}'"
        if len(self.expected) == 1 and returned == self.expected[0]:
            if returned.kind == "Tuple":  # it would be taken for the arguments
                self.refuse(
                    f"{wrong}. When forward has a single tuple input argument, the return needs to be 'None' "
                    f"or a nested tuple containing forward's input tuple argument as in: 'Tuple[{returned}]'"
                )
            return
        if returned.kind != "Tuple" and returned.known:
            self.refuse(wrong)
        if returned.kind == "Tuple":
            if len(returned.args) != len(self.expected):
                self.refuse(f"{wrong}. The returned tuple holds another number of types than forward takes")
            if not all(map(_agree, self.expected, returned.args)):
                self.refuse(f"{wrong}. The returned tuple holds other types than forward takes")

    def hook(self, told):
        """Arguments and result go in; returns the type that comes out."""
        self._inputs(3)
        given = self.schema.arguments[1].type
        if told is not None and not _agree(told, given):
            self.refuse(
                f"has the wrong type for the output argument. Received type: '{given}'. Expected type: "
                f"'{told}'"
            )
        return self.schema.returns


def _agree(wanted, found):
    """Whether two types are the same, as far as they are known."""
    plain = [t.TENSOR if x == t.INFERRED else x for x in (wanted, found)]
    return not (wanted.known and found.known) or plain[0] == plain[1]
