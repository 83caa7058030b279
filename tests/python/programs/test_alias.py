"""The name `torch`: in a program, in its children, and for a virtual environment."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]  # what a child needs on its path
QUESTIONS = """
import importlib.metadata, importlib.util, sys
import torch, torch.nn as nn, torch.version
from torch.utils import data
import rushlight
assert torch is rushlight and nn is rushlight.nn and data is rushlight.utils.data
assert torch.nn is nn and sys.modules["torch"] is torch and sys.modules["torch.nn"] is nn
assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn") is not None
assert importlib.util.find_spec("torch.no_such_module") is None
assert importlib.metadata.version("torch") == "2.13.0", importlib.metadata.version("torch")
assert "torch" in importlib.metadata.packages_distributions()
assert nn.__spec__.name == "rushlight.nn"
"""


def run(*command, cwd=None, python=sys.executable, input="", **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [str(python), *map(str, command)],
        env=environment,
        cwd=cwd,
        input=input,
        capture_output=True,
        text=True,
        timeout=120,
    )


def run_ok(*command, **options):
    result = run(*command, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def script(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def test_program_sees_rushlight_as_torch(script):
    run_ok("-m", "rushlight", script(QUESTIONS))


def test_program_has_its_own_argv_folder_and_name(script):
    script("value = 7", "beside.py")
    program = script("""
        import sys, beside
        if __name__ == "__main__":
            print(sys.argv[1:], beside.value, __file__ == sys.argv[0], sys.modules["__main__"].beside.value)
        """)
    assert run_ok("-m", "rushlight", program, "--epochs", "3").split("\n")[0] == "['--epochs', '3'] 7 True 7"


def test_a_program_knows_its_whole_path(script):
    program = script("import sys; print([__file__, sys._getframe().f_code.co_filename, sys.argv[0]])")
    shown = run_ok("-m", "rushlight", program.name, cwd=program.parent)
    assert shown == f"{[str(program), str(program), program.name]}\n"


def test_module_runs_with_the_alias(script):
    program = script("import sys, torch; print(torch.__spec__.name, sys.argv[1:])")
    assert run_ok("-m", "rushlight", "-m", program.stem, "x", cwd=program.parent) == "rushlight ['x']\n"


def test_exit_status_and_traceback_are_the_programs(script):
    assert run("-m", "rushlight", script("raise SystemExit(3)")).returncode == 3
    result = run("-m", "rushlight", script("def broken():\n    1 / 0\nbroken()"))
    assert result.returncode == 1 and result.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "program.py" in result.stderr


# --- the launcher beside Python itself

SHOW = (
    "import sys; print([__name__, sys.argv, sys.path[0], __builtins__.__name__, sorted(vars()), "
    "sys.modules['__main__'].__dict__ is globals()])"
)


@pytest.mark.parametrize(
    "arguments, input",
    [
        (["-c", SHOW, "a", "-b"], ""),
        (["-c" + SHOW], ""),
        (["-", "a"], SHOW),
        (["-i", "-c", SHOW], "print(sys.argv)\n"),
        (["-ic", SHOW], "1 / 0\nprint(sys.argv)\n"),
        (["-c", "def f(:"], ""),
        (["-c", "raise KeyError(3)"], ""),
        (["-c", "raise SystemExit('bye')"], ""),
        (["-c", "raise SystemExit(3)"], ""),
        (["-c", "raise KeyboardInterrupt"], ""),
        (["-c", "import sys; sys.excepthook = lambda *e: print(e[2].tb_lineno, e[2].tb_next)\n1 / 0"], ""),
        (["-c", "import atexit; atexit.register(print, 'at exit'); 1 / 0"], ""),
        (["-c", "try: 1 / 0\nexcept Exception as e: raise ValueError('a') from e"], ""),
        (["-"], "x = 1\n1 / 0\n"),
        (["program.py", "-c", "x"], ""),
        (["-i", "program.py"], "print(value)\n"),
        (["fails.py"], ""),
        (["no_syntax.py"], ""),
        (["-m", "fails"], ""),
        (["-m", "program", "-x"], ""),
        (["folder"], ""),
    ],
)
def test_as_python_runs_it(script, tmp_path, arguments, input):
    """What is printed, the status and the traceback are Python's own."""
    script(SHOW + "\nvalue = 7\n")
    script("def broken():\n    1 / 0\nbroken()", "fails.py")
    script("def f(:", "no_syntax.py")
    (tmp_path / "folder").mkdir()
    script("import sys; print(sys.argv, sys.path[0], __spec__.name)", "folder/__main__.py")
    theirs = run(*arguments, cwd=tmp_path, input=input)
    ours = run("-m", "rushlight", *arguments, cwd=tmp_path, input=input)
    assert ours.returncode == theirs.returncode
    assert plain(ours.stdout) == plain(theirs.stdout)
    assert plain(ours.stderr) == plain(theirs.stderr)


def plain(text):
    """Without what only Python's own loop says: prompts, frames of runpy, the source lines of `-c` (3.13)."""
    text = re.sub(r"^(>>> |\.\.\. )*", "", text, flags=re.MULTILINE)
    text = re.sub(r'  File "<frozen runpy>".*\n(    .*\n)*', "", text)
    text = re.sub(r'  File ".*/code\.py".*\n(    .*\n)*', "", text)
    text = re.sub(r'(File "<(?:string|stdin|console)(?:-\d+)?>".*\n)(    .*\n)*', r"\1", text)
    return text.replace("<console>", "<stdin>").strip()


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_versions(option):
    project = (ROOT / "pyproject.toml").read_text() if (ROOT / "pyproject.toml").exists() else ""
    release = rushlight.version.release
    assert not project or f'\nversion = "{release}"\n' in project
    python = sys.version.split()[0]
    expected = f"rushlight {release} (API of PyTorch 2.13.0, Python {python})\n"
    assert run_ok("-m", "rushlight", option) == expected


def test_children_started_anew_see_the_alias(script, tmp_path):
    child = script(QUESTIONS, "child.py")
    program = script(f"""
        import subprocess, sys
        subprocess.run([sys.executable, {str(child)!r}], check=True, cwd="/")
        question = "import torch; assert torch.__spec__.name == 'rushlight'"
        subprocess.run([sys.executable, "-S", "-c", question], check=True)
        """)
    run_ok("-m", "rushlight", program)


def test_classes_and_functions_name_torch_as_their_module(script):
    program = script("""
        import inspect, io, pickle, sys
        import torch
        from torch.nn.utils import rnn
        nn, plain = torch.nn, [torch.Tensor, torch.Size, torch.dtype, torch.device, torch.float32, torch.relu]
        expected = {
            "torch": plain,
            "torch.nn.modules.linear": [nn.Linear],
            "torch.nn.functional": [nn.functional.relu],
            "torch.nn.utils.rnn": [rnn.PackedSequence, rnn.pad_sequence],
            "torch.optim.adam": [torch.optim.Adam],
            "torch.distributions.normal": [torch.distributions.Normal],
            "torch._C": [torch.linalg.LinAlgError],
            "torch.return_types": [type(torch.ones(2).sort())],
            "torch._tensor": [torch.Tensor.backward],
        }
        for module, values in expected.items():
            for value in values:
                assert value.__module__ == module, (value, value.__module__)
        assert repr(torch.Tensor) == "<class 'torch.Tensor'>"
        for value in (torch.nn.Linear, torch.optim.Adam, torch.Tensor, torch.device, torch.relu):
            assert pickle.loads(pickle.dumps(value)) is value
        assert "class Linear" in inspect.getsource(torch.nn.Linear)
        layer = torch.nn.Linear(2, 2)
        file = io.BytesIO()
        torch.save({"layer": layer, "size": layer.weight.shape}, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert type(loaded["layer"]) is torch.nn.Linear and torch.equal(loaded["layer"].weight, layer.weight)
        """)
    run_ok("-m", "rushlight", program)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_see_the_alias(script, method):
    program = script(f"""
        import multiprocessing
        def name(_):
            import torch.nn
            return torch.nn.__spec__.name
        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                print(pool.map(name, [0]))
        """)
    assert run_ok("-m", "rushlight", program) == "['rushlight.nn']\n"


def test_environment_alias(venv):
    assert run_ok("-m", "rushlight", "alias", "status", python=venv).startswith(
        "off: `import torch` gives an Imp"
    )
    assert run("-c", "import torch", python=venv).returncode == 1
    assert run_ok("-m", "rushlight", "alias", "on", python=venv).startswith("on: ")
    try:
        run_ok("-c", QUESTIONS, python=venv)
        assert run_ok("-m", "rushlight", "alias", "status", python=venv).startswith("on: ")
        run_ok("-m", "rushlight", "alias", "on", python=venv)
    finally:
        assert run_ok("-m", "rushlight", "alias", "off", python=venv).startswith("off: removed")
    assert run("-c", "import torch", python=venv).returncode == 1
    assert run_ok("-m", "rushlight", "alias", "off", python=venv) == "off: it was not on\n"


def test_uninstalling_removes_what_the_alias_wrote(venv):
    """As pip would after `alias on`: what RECORD lists goes. Beside it pip only removes emptied folders."""
    site = Path(run_ok("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=venv).strip())
    before = {path for path in site.rglob("*") if path.is_file()}
    info = site / "rushlight-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rushlight\nVersion: 0.1.0\n")
    record = info / "RECORD"
    record.write_text("rushlight-0.1.0.dist-info/METADATA,,\nrushlight-0.1.0.dist-info/RECORD,,\n")
    plain = record.read_text()
    try:
        for _ in range(2):
            run_ok("-m", "rushlight", "alias", "on", python=venv)
        listed = {site / line.split(",")[0] for line in record.read_text().splitlines()}
        there = {path for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        assert listed == there - before and site / "rushlight-torch.pth" in listed
        assert any(path.match("torch-stubs/nn/__init__.pyi") for path in listed)
    finally:
        run_ok("-m", "rushlight", "alias", "off", python=venv)
    assert record.read_text() == plain
    shutil.rmtree(info)


def test_environment_alias_is_refused_beside_pytorch(venv):
    site = run_ok("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=venv).strip()
    package = Path(site) / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("")
    try:
        result = run("-m", "rushlight", "alias", "on", python=venv)
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        assert f"PyTorch is installed in {package}" in result.stderr
        assert str(package) in run_ok("-m", "rushlight", "alias", "status", python=venv)
    finally:
        (package / "__init__.py").unlink()
        package.rmdir()


def test_environment_alias_is_refused_outside_an_environment(monkeypatch):
    from rushlight._command import alias

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(alias.AliasError, match="not in a virtual environment"):
        alias.turn_on()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["no_such_file.py"], "can't open 'no_such_file.py': No such file or directory"),
        (["-m", "no_such_module"], "no module named 'no_such_module'"),
        (["-m"], "-m needs a module's name"),
        (["--no-such-option"], "unknown option '--no-such-option'"),
        (["-c"], "-c needs a program's text"),
        (["-im"], "-m needs a module's name"),
        (["-u", "x.py"], "unknown option '-u': Python's own come first: python -u -m rushlight ..."),
    ],
)
def test_bad_commands_give_one_line(arguments, message):
    result = run("-m", "rushlight", *arguments)
    there_is_no_module = arguments[0] == "-m" and len(arguments) > 1
    assert result.returncode == (1 if there_is_no_module else 2)  # as Python's own
    assert result.stderr == f"rushlight: {message}\n"


def test_help_names_every_command():
    usage = run_ok("-m", "rushlight", "--help")
    assert all(word in usage for word in ("SCRIPT", "-m MODULE", "demo", "alias on|off|status"))


def test_alias_version_is_the_version_followed():
    import rushlight
    from rushlight._command import alias

    (folder,) = Path(alias.TORCH_PATH).glob("torch-*.egg-info")
    version = folder.name.removeprefix("torch-").removesuffix(".egg-info")
    assert str(rushlight.__version__).split("+")[0] == version
    assert f"\nVersion: {version}\n" in (folder / "PKG-INFO").read_text()
