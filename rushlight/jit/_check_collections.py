"""The types of lists and dictionaries that a script makes."""

from __future__ import annotations

import ast

from rushlight.jit import _types as t
from rushlight.jit._check_values import Checking, Iterated

__all__ = ["Collections"]

_KEYS = (t.INT, t.FLOAT, t.COMPLEX, t.TENSOR, t.DEVICE, t.STR, t.BOOL)
_SINGLE = ("int", "float", "bool", "complex", "str", "Tensor")
_ANYTHING = (t.UNKNOWN, t.UNKNOWN)


def _listed(kinds):
    *first, last = map(str, kinds)
    return f"{', '.join(first)} or {last}"


class Collections(Checking):
    """Literals, comprehensions and ``dict(...)``; their parts are worked out by the class below."""

    def expression_List(self, node, hint):  # noqa: N802
        wanted = self.hinted(hint, "List")
        if hint is not None and hint.kind in _SINGLE:
            self.refuse(f"Expected an annotation of type List but got {hint}", node)
        candidates = self.candidates(hint, "List", node, not node.elts)
        if not node.elts:
            return wanted or (t.list_of(t.TENSOR) if hint is None else t.list_of(t.UNKNOWN))
        element = wanted.args[0] if wanted is not None else None
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return t.UNKNOWN
        parts = [self.simple(e, element) for e in node.elts]
        exact = node is self.exact_list
        if wanted is not None and all(
            t.is_subtype(p if exact else self.converted(p, element), element) for p in parts
        ):
            return wanted
        found = t.list_of(self.common(parts))
        if exact and wanted is not None and not candidates and found.args[0].known:
            self.refuse(
                f"List type annotation `{wanted}` did not match the types of the given list elements, which "
                f"were unified to {found.args[0]}",
                node,
            )
        if candidates and not any(t.is_subtype(found, kind) for kind in candidates):
            self.refuse(
                f"Union type annotation `{hint}` can hold {_listed(candidates)}, but none of those types "
                f"match the types of the given list elements, which were unified to {found.args[0]}",
                node,
            )
        return found

    @staticmethod
    def hinted(hint, kind):
        """The part of an expected type that is of a kind."""
        if hint is None:
            return None
        found = [o for o in t.options(hint) if o.kind == kind]
        return found[0] if len(found) == 1 else None

    def candidates(self, hint, kind, node, empty):
        """The types of a kind in a Union, where there are several."""
        if hint is None or hint.kind != "Union" or not hint.known or t.ANY in hint.args:
            return []
        found = [o for o in hint.args if o.kind == kind]
        if not found:
            self.refuse(f"Expected an Union type annotation with an inner {kind} type, but got {hint}", node)
        if empty and len(found) > 1:
            self.refuse(
                f"Cannot assign an empty {kind.lower()} to a variable annotated to be type {hint} because "
                f"there are multiple possible {kind} type candidates in the Union annotation",
                node,
            )
        return found if len(found) > 1 else []

    @staticmethod
    def common(parts):
        found = parts[0]
        for part in parts[1:]:
            found = t.unify(found, part, to_union=True)
        return found

    def expression_Dict(self, node, hint):  # noqa: N802
        wanted = self.hinted(hint, "Dict")
        if None in node.keys:
            return t.UNKNOWN
        candidates = self.candidates(hint, "Dict", node, not node.keys)
        keys = [self.simple(k) for k in node.keys]
        values = [self.simple(v, wanted and wanted.args[1]) for v in node.values]
        if wanted is not None:
            for what, kinds, kind in (("keys", keys, wanted.args[0]), ("values", values, wanted.args[1])):
                for found in kinds:
                    if not t.is_subtype(self.converted(found, kind), kind) and found.kind not in (
                        "List",
                        "Dict",
                    ):
                        self.refuse(
                            f"Type annotation was inferred to be `{wanted}`, but the type of {what} "
                            "given by the "
                            f"dict literal is {found}",
                            node,
                        )
        if candidates:
            found = t.dict_of(self.common(keys), self.common(values))
            if not any(t.is_subtype(found, kind) for kind in candidates):
                self.refuse(
                    f"Union type annotation `{hint}` can hold {_listed(candidates)}, but none of those dict "
                    f"types can hold the types of the given keys and values, which were unified to {found}",
                    node,
                )
            return found
        if wanted is not None or hint is not None:
            return wanted or t.UNKNOWN
        if not keys:
            return t.dict_of(t.STR, t.TENSOR)
        return self.dict_type(keys, values, node)

    def dict_type(self, keys, values, node):
        key = self.common(keys)
        if key.known and key not in _KEYS and key.kind in ("Tuple", "List", "NoneType", "Dict"):
            self.refuse(
                f"Cannot create dict for key type '{key}', only int, float, complex, Tensor, device "
                "and string "
                "keys are supported",
                node,
            )
        return t.dict_of(key, self.common(values))

    def expression_ListComp(self, node, hint):  # noqa: N802
        wanted = self.hinted(hint, "List")
        self.candidates(hint, "List", node, False)
        self.comprehension(node)
        element = self.simple(node.elt, wanted and wanted.args[0])
        self.frames.pop()
        if wanted is not None and not t.is_subtype(element, wanted.args[0]):
            self.refuse(
                f"List type annotation `{wanted}` did not match the types of the given list elements, which "
                f"were unified to {element}",
                node,
            )
        return wanted or t.list_of(element)

    expression_GeneratorExp = expression_ListComp  # noqa: N815

    def expression_DictComp(self, node, hint):  # noqa: N802
        self.comprehension(node)
        self.candidates(hint, "Dict", node, False)
        wanted = self.hinted(hint, "Dict")
        key, value = self.simple(node.key), self.simple(node.value, wanted and wanted.args[1])
        self.frames.pop()
        if wanted is not None:
            return self.generated_dict(wanted, key, value, node)
        return self.dict_type([key], [value], node) if key.known else t.UNKNOWN

    def generated_dict(self, wanted, key, value, node):
        """The expected type of a dictionary whose entries come from elsewhere; refused if they do not fit."""
        if key.kind == "Union":
            self.refuse(
                f"Dicts may only contain homogeneous keys, but the type of the first generated key was {key}",
                node,
            )
        for what, found, kind in (("key", key, wanted.args[0]), ("value", value, wanted.args[1])):
            if not t.is_subtype(found, kind):
                self.refuse(
                    f"Dict type annotation `{wanted}` did not match the type of an actual {what} type "
                    f"`{found}`",
                    node,
                )
        return wanted

    def made_dict(self, node, hint):
        """``dict(...)``: of pairs, of another dictionary, of keywords."""
        wanted = self.hinted(hint, "Dict")
        if wanted is None and hint is not None and sum(o.kind == "Dict" for o in t.options(hint)) > 1:
            self.refuse(
                f"There are multiple candidate Dict types in the Union type annotation `{hint}`, and full "
                "type inference is not yet supported for the `dict()` constructor.",
                node,
            )
        entries = [(t.STR, self.simple(k.value, wanted and wanted.args[1])) for k in node.keywords if k.arg]
        for argument in node.args:
            if isinstance(argument, (ast.List, ast.Tuple)) and not argument.elts:
                continue
            given = self.expression(argument)
            if isinstance(given, Iterated) or isinstance(given, t.Type) and given.kind == "List":
                pair = self.element(given, argument)
                entries.append(pair.args if pair.kind == "Tuple" and len(pair.args) == 2 else _ANYTHING)
            else:
                is_dict = isinstance(given, t.Type) and given.kind == "Dict"
                entries.append(given.args if is_dict else _ANYTHING)
        if wanted is not None:
            for key, value in entries:
                self.generated_dict(wanted, key, value, node)
            return wanted
        if not node.args and not node.keywords:
            return t.dict_of(t.STR, t.TENSOR)
        if not entries or any(not kind.known for entry in entries for kind in entry):
            return t.UNKNOWN
        return self.dict_type([key for key, _ in entries], [value for _, value in entries], node)

    def comprehension(self, node):
        generator = node.generators[0]
        value = self.expression(generator.iter)
        unrolled = self.unrolled(value)
        element = t.UNKNOWN if unrolled is not None else self.element(value, generator.iter)
        self.frames.append({})
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name):
                self.frames[-1][name.id] = t.UNKNOWN  # hides what the name was outside
        scope, self.frames = self.frames, [{}, self.frames[-1]]
        self.store(generator.target, element, generator.iter)
        self.frames = scope
