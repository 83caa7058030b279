"""Programs that say `import torch` find what those find that say `import rushlight as torch`."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]
PACKAGE = ROOT / "rushlight"


def run(program, *options, **variables):
    """What a text prints under the alias."""
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "-c", textwrap.dedent(program), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the sources

# Names of Python's objects: comparing them with a name of the library's decides by one of its two names.
_ATTRIBUTES = frozenset("__module__ __name__ __package__ co_filename __file__".split())
_DECIDES = frozenset("is_own own_name public_name _public is_own_file is_own_frame".split())


def _names(node):
    for part in ast.walk(node):
        text = getattr(part, "value", None) if isinstance(part, ast.Constant) else None
        if isinstance(text, str) and text.partition(".")[0] in ("rushlight", "torch"):
            # a part of an f-string ends in a dot; operators say torch._ops under both names
            if " " not in text and not text.endswith(".") and not text.startswith("torch._ops"):
                yield text


def _asks_names(node):
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    if any(isinstance(f, ast.Name) and f.id in _DECIDES for f in calls):
        return False
    return any(
        isinstance(part, ast.Attribute) and part.attr in _ATTRIBUTES
        or isinstance(part, ast.Constant) and part.value in _ATTRIBUTES
        for part in ast.walk(node)
    )  # fmt: skip


def decisions(text):
    """Lines that compare something with the library's name, and not by `_command/names.py`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        is_start = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("startswith", "removeprefix")
        )
        if not is_start and not isinstance(node, ast.Compare):
            continue
        names = [name for part in (node.args if is_start else [node]) for name in _names(part)]
        if any(name.startswith("rushlight") for name in names) or (names and _asks_names(node)):
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def test_one_file_decides_what_is_the_librarys():
    found = []
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE)
        if part.parts[0] != "_command":
            found += [f"{part}:{line}" for line in decisions(path.read_text(encoding="utf-8"))]
    assert found == [], "ask rushlight/_command/names.py, which knows both names"


@pytest.mark.parametrize(
    "text",
    [
        "f.__module__.startswith('rushlight.nn')",
        "f.__module__.startswith(('torch.nn', 'x'))",
        "name == 'rushlight' or name.startswith('rushlight.nn')",
        "getattr(f, '__module__', None) in ('torch', 'torch.nn')",
        "frame.f_globals['__name__'].partition('.')[0] == 'rushlight'",
    ],
)
def test_other_decisions_are_noticed(text):
    assert decisions(text)


# --- names


def test_everything_says_torch():
    program = """
        import importlib, pkgutil, types
        import torch

        def modules(package):
            for found in pkgutil.iter_modules(package.__path__, package.__spec__.name + "."):
                if found.name.rpartition(".")[2] in ("_command", "torch_path", "__main__", "_C"):
                    continue
                try:
                    module = importlib.import_module(found.name)
                except ImportError:  # of what is not installed
                    continue
                yield module
                if found.ispkg:
                    yield from modules(module)

        wrong, looked = [], 0
        for module in [torch, torch._C, *modules(torch)]:
            if module.__name__.partition(".")[0] != "torch":
                wrong.append(module.__name__)
            for name, value in list(vars(module).items()):
                if not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
                    continue
                looked += 1
                for part in (value, *(vars(value).values() if isinstance(value, type) else ())):
                    text = getattr(part, "__module__", None) if callable(part) else None
                    if isinstance(text, str) and text.partition(".")[0] == "rushlight":
                        wrong.append(f"{module.__name__}.{name} {part}")
        print(looked, sorted(set(wrong)))
    """
    looked, _, wrong = run(program).strip().partition(" ")
    assert int(looked) > 5000 and wrong == "[]"


def test_what_belongs_to_the_library():
    program = """
        import sys, torch, torch.nn.functional as F
        from rushlight._command.names import is_own, is_own_frame, own_name, path_in_package, public_name
        assert is_own(F.__name__) and is_own("rushlight.nn") and is_own("torch") and not is_own("torchvision")
        assert is_own("torch.nn.modules.conv", "fx", "nn") and not is_own("torch.nnx", "nn")
        assert not is_own(None) and not is_own("")
        assert own_name("torch.nn") == own_name("rushlight.nn") == "rushlight.nn" and own_name("os") == "os"
        assert public_name("torch.nn") == public_name("rushlight.nn") == "torch.nn"
        assert path_in_package(F.__file__) == "nn/functional/__init__.py"
        assert not is_own_frame(sys._getframe())
    """
    run(program)


# --- deciders, one by one


def test_functions_that_call_the_library_are_compiled():
    program = """
        import inspect
        import torch
        import torch.nn.functional as F

        named = 0
        for name in dir(F):
            function = getattr(F, name)
            if name[0] == "_" or not callable(function) or inspect.isclass(function):
                continue
            def f(x, function=function):
                return x + 1 if callable(function) else x
            scope = {"F": F}
            exec(f"def g(x):\\n    return x + 1 if F.{name} is not None else x", scope)
            for tried in (f, scope["g"]):
                fast = torch.compile(tried, backend="eager", fullgraph=True)
                assert fast(torch.ones(2)).tolist() == [2, 2], name
                named += 1
        print(named)
        x = torch.randn(2, 3, 8, 8)
        for f in (
            lambda x: F.max_pool2d(x, 2),
            lambda x: F.dropout(x, 0.5, torch.is_grad_enabled() and False),
            lambda x: F.interpolate(x, scale_factor=2),
            lambda x: F.normalize(x),
        ):
            assert torch.equal(torch.compile(f, fullgraph=True)(x), f(x))
    """
    assert int(run(program)) > 200


def test_classes_of_the_library_are_not_walked():
    """As many checks guard a call under either name."""
    program = """
        import sys
        if sys.argv[1:] == ["own"]:
            import rushlight as torch
        else:
            import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(), nn.MultiheadAttention(4, 2))
        f = lambda x: model[3](*[model[2](model[1](model[0](x)))] * 3)[0]
        fast = torch.compile(f, backend="eager", fullgraph=True)
        fast(torch.ones(3, 4))
        print(len(fast._compiled.entries[0].guards.reasons))
    """
    own = textwrap.dedent(program).replace("from torch import", "from rushlight import")
    plain = subprocess.run(
        [sys.executable, "-c", own, "own"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert plain.stdout == run(program) and int(plain.stdout) > 10, plain.stderr


def test_pipelines_keep_layers_whole():
    program = """
        import torch
        from torch import nn
        from torch.distributed.pipelining import SplitPoint, pipeline
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
        made = pipeline(model, (torch.ones(2, 2),), split_spec={"2": SplitPoint.BEGINNING})
        import torch.distributed.pipelining._split as split
        classes = [value for value in vars(split).values() if isinstance(value, type)]
        (tracer,) = [c for c in classes if issubclass(c, torch.fx.Tracer) and c is not torch.fx.Tracer]
        assert tracer([]).is_leaf_module(nn.Linear(1, 1), "a")
        class Own(nn.Module): pass
        assert not tracer([]).is_leaf_module(Own(), "a")
        print(made.num_stages)
    """
    assert run(program) == "2\n"


def test_places_are_the_programs(tmp_path):
    program = tmp_path / "places.py"
    program.write_text(
        textwrap.dedent("""
            import os, torch, torch.distributed as dist
            from torch.distributed import _recorder
            from torch.debug._places import program_line
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            dist.all_reduce(torch.ones(2))
            print(_recorder.place(_recorder.entries[-1]).rpartition("/")[2])
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
            model(torch.ones(1, 2)).sum().backward()
            places = [_recorder.place(entry).rpartition("/")[2] for entry in _recorder.entries]
            print({place.partition(":")[0] for place in places})
            class Model(torch.nn.Module):
                def forward(self, x):
                    print(program_line().rpartition("/")[2])
                    return x
            torch.nn.Sequential(Model())(torch.ones(2))
            dist.destroy_process_group()
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout.split("\n")[:3] == ["places.py:7", "{'places.py'}", "places.py:15"], done
