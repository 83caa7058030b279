"""What Pyright says: of every public name, of the examples, and of short programs, also as `import torch`.

It sees the package as it is installed, where py.typed counts and names taken over are private. One run checks
all.
"""

import importlib
import importlib.util
import json
import os
import pkgutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

import rushlight
from rushlight._command import alias_stubs

ROOT = Path(__file__).resolve().parents[3]
TYPED = sorted(Path(__file__).with_name("typed").glob("*.py"))
WRONG = Path(__file__).with_name("wrong_types.py")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PROGRAMS = [f"{path.parent.name}/{path.name}" for path in (*EXAMPLES, *TYPED)]


def public_modules():
    yield "rushlight"
    for module in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield module.name


def public_names(module):
    """`__all__`, or else what the module or, for a package, its files define."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    inside = module.__name__ + "."
    return [
        name
        for name in dir(module)
        if not name.startswith("_")
        and not isinstance(value := getattr(module, name, None), types.ModuleType)
        and (
            module is rushlight
            or (home := str(getattr(value, "__module__", ""))) == module.__name__
            or (hasattr(module, "__path__") and home.startswith(inside))
        )
    ]


def program_of_all_names():
    """A program that names every public name of every public module, and how many these are."""
    lines, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in public_modules():
            try:
                module = importlib.import_module(name)
            except ImportError:  # for packages that are not installed
                continue
            short = "m_" + name.replace(".", "_")
            names = public_names(module)
            lines += [f"import {name} as {short}", *(f"{short}.{member}" for member in names)]
            count += len(names)
    return "\n".join(lines) + "\n", count


def program_of_all_methods():
    members = [name for name in dir(rushlight.Tensor) if not name.startswith("_")]
    return "import rushlight\n\n\ndef all_members(x: rushlight.Tensor):\n" + "".join(
        f"    x.{name}\n" for name in members
    ), len(members)


def fake_environment(folder):
    """A virtual environment as far as Pyright looks: this package, what is installed here, and the alias."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "env" / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    (site / "here.pth").write_text(f"{ROOT}\n")
    for entry in (e for path in sys.path if path.endswith("site-packages") for e in Path(path).iterdir()):
        if not entry.name.startswith(("torch", "rushlight")) and entry.suffix != ".pth":
            (site / entry.name).exists() or (site / entry.name).symlink_to(entry)
    alias_stubs.write(str(site))
    (folder / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "typeCheckingMode": "standard",
                "venvPath": str(folder),
                "venv": "env",
                "pythonVersion": version[6:],
                "exclude": ["env"],
            }
        )
    )


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What Pyright finds, as texts by file."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    folder = tmp_path_factory.mktemp("checked")
    fake_environment(folder)
    names, count = program_of_all_names()
    methods, members = program_of_all_methods()
    assert count > 3500 and members > 600
    texts = {"names.py": names, "methods.py": methods, WRONG.name: WRONG.read_text()}
    for path in (*EXAMPLES, *TYPED):
        text = path.read_text()
        texts[f"{path.parent.name}/{path.name}"] = text
        texts[f"alias_{path.parent.name}/{path.name}"] = as_torch(text)
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, env={**os.environ})
    report = json.loads(ran.stdout)
    assert report["summary"]["filesAnalyzed"] == len(texts), ran.stderr
    found = {name: [] for name in texts}
    for problem in report["generalDiagnostics"]:
        if problem["severity"] == "error":
            name = Path(problem["file"]).relative_to(folder).as_posix()
            line = problem["range"]["start"]["line"] + 1
            found[name].append(f"{name}:{line}: {problem['message']}")
    return found


def as_torch(text):
    return (
        text.replace("import rushlight as torch", "import torch")
        .replace("from rushlight", "from torch")
        .replace("import rushlight\n", "import torch\n")
    )


def test_wrong_arguments_are_flagged(errors):
    lines = WRONG.read_text().splitlines()
    wrong = [i for i, line in enumerate(lines, 1) if line.endswith("# wrong")]
    assert sorted({int(text.split(":")[1]) for text in errors[WRONG.name]}) == wrong, errors[WRONG.name]


@pytest.mark.parametrize("name", ["names.py", "methods.py"])
def test_every_public_name_is_known(errors, name):
    assert errors[name] == []


@pytest.mark.parametrize("spelling", ["", "alias_"], ids=["rushlight", "torch"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_clean(errors, program, spelling):
    assert errors[spelling + program] == []


@pytest.mark.parametrize("program", [path.name for path in TYPED])
def test_typed_programs_run(program):
    ran = subprocess.run(
        [sys.executable, str(TYPED[0].with_name(program))],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr


def test_alias_stubs_come_and_go(tmp_path):
    site = str(tmp_path)
    folder = Path(alias_stubs.write(site))
    assert (folder / "nn/functional/__init__.pyi").exists() and (folder / "optim/lr_scheduler.pyi").exists()
    assert not list(folder.rglob("_*.pyi")) or all(p.name == "__init__.pyi" for p in folder.rglob("_*.pyi"))
    assert alias_stubs.write(site) and alias_stubs.remove(site) and not folder.exists()
    folder.mkdir()
    (folder / "__init__.pyi").write_text("# of somebody else\n")
    assert alias_stubs.write(site) is None and not alias_stubs.remove(site) and folder.exists()
