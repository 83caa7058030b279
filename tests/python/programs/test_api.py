"""The public names: none may vanish or lose a parameter; what is found lazily is really there.

`python tests/python/programs/test_api.py record` adds new names to api.txt.
"""

import importlib
import importlib.util
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight

LIST = Path(__file__).with_name("api.txt")
PLAIN = (
    "torch",
    "Tensor",
    "linalg",
    "special",
    "fft",
    "autograd",
)  # names only; operators' calls are in the stubs
CALLS = ("nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data")


def owner_of(section, package="rushlight"):
    if section == "Tensor":
        return importlib.import_module(package).Tensor
    return importlib.import_module(package if section == "torch" else f"{package}.{section}")


def public(section):
    owner = owner_of(section)
    names = getattr(owner, "__all__", None) if section not in ("torch", "nn") else None
    return sorted(n for n in names or dir(owner) if not n.startswith("_") and n != "TYPE_CHECKING")


def parameters(value):
    """The names of what can be passed, a star before what takes any number; None where nothing is told."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in found if p.name != "self"]


def described(section, name):
    value = getattr(owner_of(section), name)
    given = parameters(value) if callable(value) and section in CALLS else None
    return name if given is None else f"{name}({', '.join(given)})"


def read():
    """section -> {name: its parameters or None}"""
    sections = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            entries = sections.setdefault(line.strip("[]"), {})
        elif "(" in line:
            name, rest = line.rstrip(")").split("(", 1)
            entries[name] = [p for p in rest.split(", ") if p]
        else:
            entries.update(dict.fromkeys(line.split()))
    return sections


def record():
    lines = []
    for section in PLAIN + CALLS:
        entries = [described(section, name) for name in public(section)]
        bare = " ".join(e for e in entries if "(" not in e)
        lines += [f"[{section}]", *textwrap.wrap(bare, 110), *(e for e in entries if "(" in e)]
    LIST.write_text("\n".join(lines) + "\n")


RECORDED = read() if LIST.exists() else {}


@pytest.mark.parametrize("section", PLAIN + CALLS)
def test_recorded_names_are_there(section):
    gone = [name for name in RECORDED[section] if not hasattr(owner_of(section), name)]
    assert RECORDED[section] and not gone


@pytest.mark.parametrize("section", CALLS)
def test_recorded_parameters_are_accepted(section):
    """All of them, positional ones in the same order; later ones may have come."""
    for name, expected in RECORDED[section].items():
        given = parameters(getattr(owner_of(section), name)) if expected else None
        if given is not None and not any(p.startswith("*") for p in given):
            assert [p for p in given if p in expected] == expected, name


@pytest.mark.parametrize("section", CALLS)
def test_parameters_are_pytorch_s(section):
    """Every parameter that PyTorch's signature names is one of ours, in the same order."""
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of signatures")
    assert torch is not rushlight
    wrong = {}
    for name in RECORDED[section]:
        theirs = parameters(getattr(owner_of(section, "torch"), name, None))
        ours = parameters(getattr(owner_of(section), name))
        if not theirs or ours is None or any(p.startswith("*") for p in theirs + ours):
            continue
        if [p for p in ours if p in theirs] != theirs:
            wrong[name] = (ours, theirs)
    assert not wrong


def test_all_names_resolve():
    """What dir() and __all__ promise is there, and asking for it is no error of another kind."""
    assert {"add", "nn", "einsum", "no_grad", "Tensor"} <= set(dir(rushlight))
    broken = [name for name in dir(rushlight) if not hasattr(rushlight, name)]
    assert not broken
    assert [n for n in rushlight._SUBMODULES if importlib.util.find_spec(f"rushlight.{n}") is None] == []
    for name in ("linalgg", "packages"):
        with pytest.raises(AttributeError, match=f"module 'torch' has no attribute '{name}'"):
            getattr(rushlight, name)


def modules():
    root = Path(rushlight.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if path.name != "__main__.py" and not {"demo", "torch_path"} & set(path.parts):
            relative = path.relative_to(root.parent).with_suffix("")
            yield ".".join(p for p in relative.parts if p != "__init__")


@pytest.mark.parametrize("module", modules())
def test_each_module_imports_and_its_all_is_true(module):
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        if error.name and not error.name.startswith(("rushlight", "torch")):
            pytest.skip(f"needs {error.name}, which is not installed")
        raise
    names = getattr(found, "__all__", [])
    assert len(names) == len(set(names))
    assert not [name for name in names if not hasattr(found, name)]


def test_lazy_names_work_in_a_fresh_process():
    """The first access of each, with nothing else imported before."""
    code = "import rushlight\nfor n in rushlight._HOME_OF:\n    getattr(rushlight, n)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


if __name__ == "__main__" and sys.argv[1:] == ["record"]:
    record()
