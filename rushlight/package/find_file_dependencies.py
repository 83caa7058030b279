"""What a source imports."""

import ast

__all__ = ["find_files_source_depends_on"]


def find_files_source_depends_on(src, package):
    """(module, name or None) for all imports of a source in this package, without repetition, in order."""
    found = {}
    for node in ast.walk(ast.parse(src)):
        if isinstance(node, ast.Import):
            found.update(((alias.name, None), None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node.module or "", node.level, package)
            found.update(((module, None if a.name == "*" else a.name), None) for a in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "__import__":
            found.update(_called(node, package))
    return list(found)


def _absolute(name, level, package):
    if level == 0:
        return name
    base = package.rsplit(".", level - 1)
    if not package or len(base) < level:
        raise ValueError("attempted relative import beyond top-level package")
    return f"{base[0]}.{name}" if name else base[0]


def _called(call, package):
    """The imports of a call of `__import__`, as far as its arguments are written out."""
    names = ("name", "globals", "locals", "fromlist", "level")
    said = {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords}}
    values = {}
    for name in ("name", "fromlist", "level"):
        try:
            values[name] = ast.literal_eval(said[name]) if name in said else None
        except ValueError:
            return {}  # only a run could tell
    if not isinstance(values["name"], str):
        return {}
    module = _absolute(values["name"], values["level"] or 0, package)
    chosen = [name for name in values["fromlist"] or () if name not in ("", "*")]
    return dict.fromkeys((module, name) for name in chosen or [None])
