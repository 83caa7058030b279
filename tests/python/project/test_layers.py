"""Layers hold: imports and includes point one way, and the package's root is a table of contents.

Python: the graph of what modules import when they are loaded has no circle, nor has that of packages.
C++: a file includes what the README of its folder says that it may.
"""

import ast
import fnmatch
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "rushlight"
SRC = ROOT / "src"

# --- Python ---------------------------------------------------------------------------------------------

# A folder of unrelated helpers: each of its files and folders counts as a package.
GRAB_BAG = "utils"

PUBLIC = frozenset(
    """
        __config__ __future__ __init__ __main__ accelerator amp ao array_api autograd backends classes
        compiler cpu cuda debug demo distributed distributions export fft func functional futures fx hub
        interpolate jit library linalg masked monitor mps mtia multiprocessing nested nn onnx ops optim
        overrides package profiler py.typed quantization quasirandom random return_types safetensors
        serialization serve share signal sparse special storage testing torch_version types utils version viz
        xpu
    """.split()
)
# PyTorch's own private paths, which programs and packages import.
PRIVATE_PATHS = frozenset(
    """
        _C _VF _awaits _custom_op _custom_ops _decomp _dispatch _dynamo _export _functorch _guards
        _higher_order_ops _inductor _jit_internal _library _linalg_utils _lobpcg _logging _lowrank _ops _prims
        _prims_common _subclasses _tensor _tensor_str _utils _utils_internal _vmap_internals
        _weights_only_unpickler
    """.split()
)
FOLDERS = frozenset(
    "_command _errors _extension _functions _operators _quantized _serialization _torchvision".split()
)
BUILT = frozenset("_gloo __pycache__ bin include lib".split())


@cache
def _modules():
    """name -> file of all modules of the package."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "torch_path" not in parts:  # stands for another package
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _run_when_loaded(body):
    """The import statements of a module that run when it is loaded."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If):
            if not any(isinstance(n, ast.Name) and n.id == "TYPE_CHECKING" for n in ast.walk(node.test)):
                yield from _run_when_loaded(node.body)
            yield from _run_when_loaded(node.orelse)
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            yield from _run_when_loaded([*node.body, *handlers, *node.orelse, *node.finalbody])
        elif isinstance(node, (ast.With, ast.For, ast.While, ast.ClassDef)):
            yield from _run_when_loaded(node.body)


@cache
def _imports():
    """module -> the modules that it imports when it is loaded."""
    return {name: _imported(name, path) for name, path in _modules().items()}


def _imported(name, path):
    """The package itself, which is loaded before any other module, is left out."""
    modules, found = _modules(), set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _run_when_loaded(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            deeper = f"{base}.{alias.name}"
            found.add(deeper if deeper in modules else base)
    return (found & modules.keys()) - {"rushlight", name}


def _circles(graph):
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in list(graph):
        if node not in number:
            visit(node)
    return found


def _package(name, depth):
    """The folder of a module, down to a depth below the root."""
    parts = name.split(".")[1:]
    folder = parts if _modules()[name].name == "__init__.py" else parts[:-1]
    if parts[0] == GRAB_BAG:
        return ".".join(parts[:2])
    return ".".join(folder[:depth] or parts[:1])


def _between_packages(depth):
    graph, reasons = defaultdict(set), defaultdict(list)
    for name, imported in _imports().items():
        if name == "rushlight":
            continue
        package = _package(name, depth)
        for other in imported:
            onto = _package(other, depth)
            inside = f"{package}.".startswith(f"{onto}.") or f"{onto}.".startswith(f"{package}.")
            if not inside:  # a package may load its parts, and its parts name it
                graph[package].add(onto)
                graph.setdefault(onto, set())
                reasons[package, onto].append(f"{name} imports {other}")
    return [
        [reason for (a, b), found in reasons.items() if a in circle and b in circle for reason in found]
        for circle in _circles(graph)
    ]


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"d"}, "e": {"a"}}
    assert _circles(graph) == [["a", "b", "c"]]


def test_no_files_import_each_other():
    graph = _imports()
    assert len(graph) > 500 and sum(map(len, graph.values())) > 1000
    assert _circles(graph) == []


def test_packages_do_not_import_each_other():
    assert _between_packages(depth=1) == []
    assert _between_packages(depth=2) == []


def test_no_package_hides_a_module_of_its_name():
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 500
    assert [f for f in files if (f.with_suffix("") / "__init__.py").exists()] == []


def test_the_root_is_a_table_of_contents():
    """New private files go into a folder named for what they serve."""
    there = {p.name.partition(".")[0] or p.name for p in PACKAGE.iterdir()}
    there = {"py.typed" if name == "py" else name for name in there}
    assert there - PUBLIC - PRIVATE_PATHS - FOLDERS - BUILT == set()
    assert (PUBLIC | PRIVATE_PATHS | FOLDERS) - there == set()


def test_capture_marks_are_known_words():
    """A misspelt mark would end captures, or count for nothing."""
    mark = re.compile(r"^__((?:package_)?)capture__ = (.*)$", re.MULTILINE)
    found = [(path, *m) for path in _modules().values() for m in mark.findall(path.read_text("utf-8"))]
    assert len(found) > 30
    for path, package, value in found:
        assert re.fullmatch(r'"(through|traced|skip)"  # Note \[Capture marks\]', value), path
        assert not package or path.name == "__init__.py", path


# --- C++ --------------------------------------------------------------------------------------------------

SENTENCE = re.compile(r"May include: ((?:`[^`]+`(?:, )?)+)\.")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+/[^">]+)[">]', re.MULTILINE)
ELSEWHERE = ("rushlight", "torch")  # the folders of include/


def _may_include():
    """folder of src -> what its README allows: folders, or headers, with wildcards within a folder."""
    found = {}
    for folder in sorted(path for path in SRC.iterdir() if path.is_dir()):
        sentences = SENTENCE.findall((folder / "README.md").read_text(encoding="utf-8"))
        assert len(sentences) == 1, f"{folder.name}/README.md: want one sentence `May include: ...`"
        found[folder.name] = re.findall(r"`([^`]+)`", sentences[0])
    return found


def _allows(entry, header):
    if "/" not in entry:
        return header.startswith(f"{entry}/")
    return fnmatch.fnmatch(header, entry) and header.count("/") == entry.count("/")


def _includes():
    """(folder, header, file) of each include of another folder of src or include."""
    folders = {path.name for path in SRC.iterdir() if path.is_dir()}.union(ELSEWHERE)
    for path in sorted(SRC.rglob("*")):
        if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".inc"):
            folder = path.relative_to(SRC).parts[0]
            for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if header.split("/")[0] in folders - {folder}:
                    yield folder, header, path.relative_to(ROOT)


def test_folders_include_what_their_readme_allows():
    may = _may_include()
    includes = list(_includes())
    assert len(includes) > 500
    outside = defaultdict(list)
    for folder, header, path in includes:
        if not any(_allows(entry, header) for entry in may[folder]):
            outside[folder, header].append(str(path))
    assert dict(outside) == {}


def test_what_readmes_allow_is_used_and_points_one_way():
    may = _may_include()
    includes = list(_includes())
    for folder, entries in may.items():
        unused = [e for e in entries if not any(f == folder and _allows(e, h) for f, h, _ in includes)]
        assert not unused, f"src/{folder}/README.md allows what no file includes: {unused}"
    graph = {folder: {e.split("/")[0] for e in entries} & may.keys() for folder, entries in may.items()}
    assert _circles(graph) == []
    picture = re.findall(
        r"^src/(\w+)/ ", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(picture) == sorted(may)
    upwards = {(a, b) for a, below in graph.items() for b in below if picture.index(b) <= picture.index(a)}
    assert not upwards, "the picture in ARCHITECTURE.md shows these the other way round"


def test_arguments_of_kernels_lie_as_the_host_has_them():
    """nvcc 13 gives an empty member that is `[[no_unique_address]]` room where the host's compiler does not:
    what follows it in a kernel's argument was read from other places (seen on an H100 alone)."""
    found = [
        f"{path.relative_to(SRC)}:{number}"
        for path in sorted(SRC.glob("cuda/**/*"))
        if path.suffix in (".cu", ".cuh", ".h", ".cpp")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "[[no_unique_address]]" in line
    ]
    assert not found
