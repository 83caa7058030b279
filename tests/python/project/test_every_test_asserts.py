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
def named(path):
    """What names mean in a file: its functions, aliases at its top, and what it imports."""
    tree = parsed(path)
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in files():
            there = named(files()[node.module])
            found |= {name.asname or name.name: there.get(name.name, []) for name in node.names}
        elif isinstance(node, ast.Import):
            for name in node.names:
                found |= named(files()[name.name]) if name.name in files() else {}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = [(path, node)]
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return found | {node.name: [(path, node)] for node in functions}


@cache
def helpers(path):
    """As `named`, with the fixtures that a file's tests may ask for."""
    found = {}
    for fixtures in (folder / "conftest.py" for folder in path.parents):
        if fixtures.exists():
            found |= named(fixtures)
    return found | named(path)


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


BROAD = {"Exception", "BaseException"}


def gives_a_verdict(node):
    """Whether a function's results are true and false, which somebody must look at."""
    returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
    return any(isinstance(v, ast.Constant) and isinstance(v.value, bool) for v in returned)


def is_silent(handler):
    """Whether a handler takes any error and tells nobody."""
    name = handler.type.id if isinstance(handler.type, ast.Name) else None
    plain = (ast.Pass, ast.Continue)
    told = [s for s in handler.body if not isinstance(s, plain) and not _returns_a_constant(s)]
    return (handler.type is None or name in BROAD) and not told


def _returns_a_constant(statement):
    return isinstance(statement, ast.Return) and isinstance(statement.value, (ast.Constant, type(None)))


def is_always_true(test):
    """`x or True`, a constant, or a pair in parentheses."""
    if isinstance(test, ast.Tuple) or isinstance(test, ast.Constant) and test.value:
        return True
    choices = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else ()
    return any(isinstance(v, ast.Constant) and v.value for v in choices)


def vacuous(path):
    """Places that look like checks and are none."""
    tree, found = parsed(path), []
    verdicts = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and gives_a_verdict(n)}
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if call and isinstance(call.func, ast.Name) and call.func.id in verdicts:
            found.append((node.lineno, f"nobody looks at what {call.func.id}() returns"))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            found.append((node.lineno, "a comparison that is no assertion"))
        if isinstance(node, ast.ExceptHandler) and is_silent(node):
            found.append((node.lineno, "any error is swallowed"))
        if isinstance(node, ast.Assert) and is_always_true(node.test):
            found.append((node.lineno, "an assertion that always holds"))
    return [f"{path.relative_to(TESTS)}:{line} {what}" for line, what in found]


def test_no_check_is_vacuous():
    assert sum((vacuous(path) for path in files().values()), []) == []


def test_vacuous_checks_are_found(tmp_path, monkeypatch):
    program = tmp_path / "test_written.py"
    program.write_text(
        "def ok(x):\n    return False\n\n\n"
        "def test_all(x):\n    ok(x)\n    x == 1\n    assert x or True\n    assert (x, 1)\n"
        "    try:\n        x()\n    except Exception:\n        pass\n"
    )
    monkeypatch.setitem(globals(), "TESTS", tmp_path)
    assert sorted(int(line.split(":")[1].split()[0]) for line in vacuous(program)) == [6, 7, 8, 9, 12]


def test_one_that_asserts_nothing_is_found(tmp_path, monkeypatch):
    program = tmp_path / "test_written.py"
    program.write_text(
        "def helper(x):\n    return x\n\n\ndef close(x):\n    assert x\n\n\n"
        "def test_empty():\n    helper(1)\n\n\ndef test_full():\n    helper(close(1))\n"
    )
    monkeypatch.setitem(globals(), "TESTS", tmp_path)
    assert empty_tests(program) == ["test_written.py:9 test_empty"]
