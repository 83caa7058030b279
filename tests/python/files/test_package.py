"""`torch.package`: objects and the code of their classes in one file."""

import inspect
import io
import pickle
import sys
import zipfile

import pytest

import rushlight as torch
from rushlight.package import (
    EmptyMatchError,
    GlobGroup,
    ObjMismatchError,
    OrderedImporter,
    PackageExporter,
    PackageImporter,
    PackagingError,
    analyze,
    is_from_package,
    sys_importer,
)

SOURCES = {
    "zoo_parts/__init__.py": "from . import layers\n",
    "zoo_parts/layers.py": (
        "import math\n\nimport torch\n\n\nclass Scaled(torch.nn.Module):\n    class Inner:\n        pass\n\n"
        "    def __init__(self, scale):\n        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.arange(4.0))\n        self.scale = scale\n"
        "        self.inner = self.Inner()\n\n    def forward(self, x):\n"
        "        return x * self.weight * self.scale + math.pi\n"
    ),
    "zoo_extra.py": "import zoo_absent_parts\nfrom zoo_parts.layers import Scaled\nvalue = 3\n",
    "zoo_absent_parts.py": "def act():\n    return 1\n",
}


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    for path, text in SOURCES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "torch", torch)  # what the sources call it
    import zoo_parts

    yield zoo_parts
    for name in [n for n in sys.modules if n.startswith("zoo_")]:
        del sys.modules[name]


def packaged(fill, **options):
    buffer = io.BytesIO()
    with PackageExporter(buffer, **options) as exporter:
        fill(exporter)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("protocol", [3, 4])
def test_a_model_and_its_code(zoo, protocol, tmp_path):
    model, shared = zoo.layers.Scaled(2.0), torch.ones(3)
    path = tmp_path / "model.pt"
    with PackageExporter(path) as exporter:
        exporter.intern("zoo_*.**")
        exporter.save_pickle("models", "model.pkl", {"model": model, "x": shared}, pickle_protocol=protocol)
        exporter.save_pickle("models", "again.pkl", [shared[1:], torch.float16, torch.device("cpu")])
        exporter.save_text("notes.deep", "a.txt", "some text")
        assert exporter.interned_modules() == ["zoo_parts.layers"]
    storages = [n for n in zipfile.ZipFile(path).namelist() if n.endswith(".storage")]
    assert len(storages) == 2  # the weight and what two pickles share
    for name in [n for n in sys.modules if n.startswith("zoo_")]:
        del sys.modules[name]
    importer = PackageImporter(path)
    loaded = importer.load_pickle("models", "model.pkl")["model"]
    x = torch.rand(4)
    assert torch.equal(loaded(x), model(x)) and type(loaded) is not type(model)
    assert is_from_package(loaded) and not is_from_package(model)
    assert type(loaded.inner).__qualname__ == "Scaled.Inner"
    assert "zoo_parts" not in sys.modules
    view, half, device = importer.load_pickle("models", "again.pkl")
    assert view.tolist() == [1, 1] and half is torch.float16 and device == torch.device("cpu")
    assert importer.load_text("notes.deep", "a.txt") == "some text"
    assert importer.import_module("math") is __import__("math")
    assert inspect.getsource(type(loaded)) == "".join(
        line + "\n" for line in SOURCES["zoo_parts/layers.py"].split("\n")[5:-1]
    )
    assert str(importer.file_structure(include="models/*")).splitlines()[1:] == [
        "    └── models",
        "        ├── again.pkl",
        "        └── model.pkl",
    ]
    with pytest.raises(ModuleNotFoundError, match="in self-contained archive"):
        importer.import_module("zoo_extra")


def test_patterns_say_what_becomes_of_modules(zoo):
    seen = []

    def fill(exporter):
        exporter.mock("zoo_absent*")
        exporter.extern("zoo_parts.**")
        exporter.register_mock_hook(lambda e, name: seen.append(("mock", name)))
        exporter.register_extern_hook(lambda e, name: seen.append(("never", name))).remove()
        exporter.save_module("zoo_extra")
        assert exporter.externed_modules() == ["zoo_parts.layers"]
        assert exporter.mocked_modules() == ["zoo_absent_parts"]
        assert exporter.get_rdeps("zoo_absent_parts") == ["zoo_extra"]
        assert '"zoo_extra" -> "zoo_absent_parts"' in exporter.all_paths("zoo_extra", "zoo_absent_parts")

    buffer = packaged(fill)
    assert seen == [("mock", "zoo_absent_parts")]
    module = PackageImporter(buffer).import_module("zoo_extra")
    assert module.value == 3 and module.Scaled is zoo.layers.Scaled
    with pytest.raises(NotImplementedError, match="was mocked out"):
        module.zoo_absent_parts.act()
    buffer.seek(0)
    with pytest.raises(ImportError, match="zoo_parts.layers"):
        PackageImporter(buffer, lambda name: not name.startswith("zoo"))


def test_refusals_name_modules_and_reasons(zoo):
    def fails(fill, match, kind=PackagingError):
        with pytest.raises(kind, match=match) as caught:
            packaged(fill)
        return caught.value

    no_action = "did not match against any action pattern"
    error = fails(lambda e: e.save_module("zoo_extra"), no_action)
    assert str(error).splitlines()[2:4] == ["    zoo_absent_parts", "    zoo_parts.layers"]
    first = analyze.find_first_use_of_broken_modules(error)
    assert first["zoo_absent_parts"] == ["zoo_extra", "zoo_absent_parts"]
    fails(
        lambda e: (e.deny("zoo_*.**"), e.save_source_string("m", "import zoo_extra")), "denied by a pattern"
    )
    fails(lambda e: e.save_source_string("m", "from ... import a"), "beyond top-level package")
    fails(
        lambda e: (e.extern("zoo_x", allow_empty=False), e.save_text("a", "b", "")), "zoo_x", EmptyMatchError
    )
    fails(lambda e: (e.save_text("a", "b", ""), e.save_text("a", "b", "")), "already exists", AssertionError)
    model = zoo.layers.Scaled(1.0)
    fails(
        lambda e: (e.mock("zoo_*.**"), e.save_pickle("m", "m.pkl", model)),
        "mocked out, but is still being used",
    )
    fails(lambda e: e.save_pickle("m", "m.pkl", model, pickle_protocol=2), "protocols 3 and 4", ValueError)
    fails(lambda e: e.save_module(zoo), "expects a string", TypeError)
    with pytest.raises(RuntimeError):
        PackageImporter(io.BytesIO(b"no archive"))


def test_packaging_what_came_from_packages(zoo):
    def fill(exporter):
        exporter.intern("zoo_*.**")
        exporter.save_pickle("m", "m.pkl", zoo.layers.Scaled(3.0))

    first, second = (PackageImporter(packaged(fill)) for _ in range(2))
    loaded, other = first.load_pickle("m", "m.pkl"), second.load_pickle("m", "m.pkl")
    assert type(loaded) is not type(other)

    def again(exporter, obj=loaded):
        exporter.intern("zoo_*.**")
        exporter.save_pickle("m", "m.pkl", obj)

    third = PackageImporter(packaged(again, importer=(first, sys_importer))).load_pickle("m", "m.pkl")
    assert torch.equal(third(torch.ones(4)), loaded(torch.ones(4)))
    with pytest.raises(pickle.PicklingError, match="Can't pickle"):
        packaged(lambda e: again(e, other), importer=(first, sys_importer))
    with pytest.raises(ObjMismatchError):
        sys_importer.get_name(type(loaded))
    ordered = OrderedImporter(first, sys_importer)
    assert ordered.import_module("zoo_parts") is first.import_module("zoo_parts")
    assert ordered.get_name(type(loaded)) == (type(loaded).__module__, "Scaled")


def test_graphs_and_scripts_in_packages(zoo):
    traced = torch.fx.symbolic_trace(zoo.layers.Scaled(2.0))
    weight = torch.ones(2, 2)
    linear = torch.nn.Linear(2, 2, bias=False)
    linear.weight = torch.nn.Parameter(weight)
    scripted = torch.jit.script(torch.nn.Sequential(linear, torch.nn.ReLU()))

    def fill(exporter):
        exporter.intern("zoo_*.**")
        exporter.save_pickle("m", "traced.pkl", traced)
        exporter.save_pickle("m", "scripted.pkl", [scripted, scripted, linear.weight])

    importer = PackageImporter(packaged(fill))
    x = torch.rand(4)
    assert torch.equal(importer.load_pickle("m", "traced.pkl")(x), traced(x))
    a, b, w = importer.load_pickle("m", "scripted.pkl")
    assert a is b and isinstance(a, torch.jit.ScriptModule)
    assert torch.equal(a(torch.ones(1, 2)), scripted(torch.ones(1, 2)))
    assert a[0].weight.data_ptr() == w.data_ptr()


def test_files_of_packages(tmp_path):
    source = (
        "import importlib.resources\nimport torch_package_importer as me\nimport store\n"
        "text = importlib.resources.read_text(store, 'a.txt')\nsame = me.load_text('store', 'a.txt')\n"
        "with importlib.resources.path(store, 'a.txt') as path:\n    third = open(path).read()\n"
    )

    def fill(exporter):
        exporter.save_text("store", "a.txt", "words")
        exporter.save_binary("store.below", "b", b"bytes")
        exporter.save_source_string("reads", source)

    buffer = packaged(fill)
    zipfile.ZipFile(buffer).extractall(tmp_path)
    for importer in (PackageImporter(buffer), PackageImporter(tmp_path / "archive")):
        module = importer.import_module("reads")
        assert module.text == module.same == module.third == "words"
        reader = importer.get_resource_reader("store")
        assert list(reader.contents()) == ["a.txt", "below"] and not reader.is_resource("below")
        assert importer.get_resource_reader("nothing") is None
        assert importer.load_binary("store.below", "b") == b"bytes"


def test_patterns_of_names():
    assert GlobGroup("a.**", exclude="a.b.*").matches("a") and GlobGroup("**.z").matches("z")
    assert not GlobGroup("a.**", exclude="a.b.*").matches("a.b.c") and not GlobGroup("a.*").matches("a.b.c")
    assert GlobGroup(["x/*.py"], separator="/").matches("x/y.py") and not GlobGroup("**").matches("")
    with pytest.raises(ValueError, match="entire path segment"):
        GlobGroup("a**")
    assert "zoo" not in analyze.trace_dependencies(torch.nn.ReLU(), [(torch.ones(1),)])
