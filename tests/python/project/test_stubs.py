"""Stubs and run time name the same things: what one has and the other lacks is an error, both ways."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import rushlight

ROOT = Path(__file__).resolve().parents[3]
STUBS = sorted((ROOT / "rushlight").rglob("*.pyi"))
# Names of the stubs' own: types of builtins that members hide, and what describes a module's call.
OWN = """
    _bool _int _float _complex _str _type _dtype _device _layout _memory_format _Device _Number _T _P _R_co
    _HasForward
""".split()


def module_of(stub):
    parts = stub.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    parent, _, last = name.rpartition(".")
    # The extension's namespaces are objects.
    return getattr(rushlight._C, last) if parent == "rushlight._C" else importlib.import_module(name)


def declared(body):
    """The nodes that declare names, by name."""
    names = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = [node]
        elif isinstance(node, ast.Assign):
            names |= {target.id: [node] for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname: [node] for alias in node.names if alias.asname}  # others are private
    return names


def parsed(stub):
    return declared(ast.parse(stub.read_text()).body)


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.relative_to(ROOT / "rushlight").as_posix())
def test_stub_and_module_have_the_same_names(stub):
    module, names = module_of(stub), parsed(stub)
    missing = [name for name in names if name not in OWN and not hasattr(module, name)]
    assert missing == []
    wanted = {name for name in vars(module) if not name.startswith("__")} - {"annotations"}
    if stub.name == "__init__.pyi" and module is rushlight:
        wanted = {name for name in dir(module) if not name.startswith("_")} - {"demo"}
    elif inspect.ismodule(module) and module is not rushlight._C:
        wanted = {name for name in getattr(module, "__all__", wanted) if not name.startswith("_")}
    unknown = {name for name in wanted - names.keys() if not inspect.ismodule(getattr(module, name))}
    assert unknown == set()


def test_stub_and_tensor_have_the_same_members():
    (node,) = parsed(ROOT / "rushlight/_C/__init__.pyi")["TensorBase"]
    names = declared(node.body)
    assert [name for name in names if not hasattr(rushlight._C.TensorBase, name)] == []
    members = {name for name in vars(rushlight._C.TensorBase) if name not in vars(object)}
    assert members - names.keys() == set()


def parameters(node):
    """The names of a stub's function, by kind, `self` left out."""
    a = node.args
    positional = [arg.arg for arg in (*a.posonlyargs, *a.args) if arg.arg != "self"]
    return positional + ([f"*{a.vararg.arg}"] if a.vararg else []), [arg.arg for arg in a.kwonlyargs]


@pytest.mark.parametrize("space", ["_VariableFunctions", "_nn", "_linalg", "_special", "_fft", "TensorBase"])
def test_each_operator_has_its_overloads(space):
    """A definition for each form of call, with the parameters that `inspect.signature` admits."""
    owner = getattr(rushlight._C, space)
    if space == "TensorBase":
        names = declared(parsed(ROOT / "rushlight/_C/__init__.pyi")[space][0].body)
    else:
        names = parsed(ROOT / f"rushlight/_C/{space}.pyi")
    compared = 0
    for name, function in vars(owner).items():
        if not hasattr(function, "_overloads") or any(isinstance(n, ast.AnnAssign) for n in names[name]):
            continue
        known = {p.lstrip("*") for p in inspect.signature(function).parameters}
        for definition in names[name]:
            positional, named = parameters(definition)
            free = {"args", "kwargs"} <= known  # forms too different for one signature
            assert free or {p.lstrip("*") for p in (*positional, *named)} <= known, name
            assert definition.returns is not None and ast.unparse(definition.returns) != "Any", name
            compared += 1
    assert compared >= len([f for f in vars(owner).values() if hasattr(f, "_overloads")]) * 0.9
