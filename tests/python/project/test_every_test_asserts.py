"""Each test of this suite can fail by what it finds out: it asserts, or calls a helper that does."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
# Calls that fail when something is wrong: pytest's, those that run other programs, and checks of the library.
CHECKS = {"raises", "warns", "deprecated_call", "fail", "spawn", "check_call", "gradcheck", "gradgradcheck"}
SWITCHES = {"check", "verify"}  # arguments that make a call one of these


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def files():
    return {path.stem: path for path in sorted(TESTS.rglob("*.py"))}


@cache
def helpers(path):
    """What names mean in a file: its functions, aliases at its top, what it imports, and fixtures."""
    tree = parsed(path)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in files():
            there = helpers(files()[node.module])
            found |= {name.asname or name.name: there.get(name.name, []) for name in node.names}
        elif isinstance(node, ast.Import):
            for name in node.names:
                found |= helpers(files()[name.name]) if name.name in files() else {}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = [(path, node)]
    for fixtures in (folder / "conftest.py" for folder in path.parents):
        if fixtures.exists() and fixtures != path:
            found |= helpers(fixtures)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return found | {node.name: [(path, node)] for node in functions}


def is_check(node):
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Call):
        on = {k.arg for k in node.keywords if isinstance(k.value, ast.Constant) and k.value.value is True}
        return bool(on & SWITCHES)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in CHECKS or name.startswith("assert_") or (isinstance(node, ast.Raise) and bool(node.exc))


@cache
def names_in(node):
    return {
        getattr(inner, "id", None) or getattr(inner, "arg", None) or inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Name, ast.arg, ast.Attribute))
    }


def checks(path, node):
    """Whether code can fail by what it finds out, itself or through what it names."""
    reached, left = {node}, [(path, node)]
    while left:
        path, node = left.pop()
        if any(map(is_check, ast.walk(node))):
            return True
        for name in names_in(node):
            new = [found for found in helpers(path).get(name, ()) if found[1] not in reached]
            reached.update(helper for _, helper in new)
            left += new
    return False


def empty_tests(path):
    return [
        f"{path.relative_to(TESTS)}:{node.lineno} {node.name}"
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not checks(path, node)
    ]


def test_every_test_asserts():
    assert sum((empty_tests(path) for path in files().values()), []) == []


def test_one_that_asserts_nothing_is_found(tmp_path, monkeypatch):
    program = tmp_path / "test_written.py"
    program.write_text(
        "def helper(x):\n    return x\n\n\ndef close(x):\n    assert x\n\n\n"
        "def test_empty():\n    helper(1)\n\n\ndef test_full():\n    helper(close(1))\n"
    )
    monkeypatch.setitem(globals(), "TESTS", tmp_path)
    assert empty_tests(program) == ["test_written.py:9 test_empty"]
