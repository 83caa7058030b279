"""Archives of exported programs (`.pt2`): PyTorch's run here, ours there; hostile ones are refused."""

import io
import json
import zipfile

import numpy as np
import pytest
from exported_programs import programs

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, export, load, load_file, save

pytestmark = pytest.mark.filterwarnings("ignore")


class Scaled(nn.Module):
    def forward(self, x, factor):
        return (x * factor).relu() + 1


def file_of(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return file


def rewritten(content, change):
    """A saved program with other JSON."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                record = json.loads(data)
                change(record)
                data = json.dumps(record)
            new.writestr(name, data)
    made.seek(0)
    return made


def node_with(**fields):
    return lambda record: record["graph_module"]["graph"]["nodes"][0].update(fields)


def graph_without(key):
    return lambda record: record["graph_module"]["graph"].pop(key)


HOSTILE = {
    "a function": node_with(target="builtins.eval"),
    "an operator that is none": node_with(target="torch.ops.aten.no_such_operator.default"),
    "a path to a module": node_with(target="torch.os.system"),
    "an attribute": node_with(target="torch.ops.aten.__reduce__.default"),
    "a deep path": node_with(target="torch.ops.aten.add.Tensor._op.__self__"),
    "a kind of argument that is none": node_with(inputs=[{"name": "x", "arg": {"as_code": "1"}, "kind": 1}]),
    "a name that nobody has": node_with(
        inputs=[{"name": "self", "arg": {"as_tensor": {"name": "nobody"}}, "kind": 1}]
    ),
    "nodes in reverse": lambda record: record["graph_module"]["graph"]["nodes"].reverse(),
    "no nodes": graph_without("nodes"),
    "no values": graph_without("tensor_values"),
    "another version": lambda record: record.update(schema_version={"major": 99, "minor": 0}),
    "no signature": lambda record: record["graph_module"].pop("signature"),
    "an unknown dtype": lambda record: [
        meta.update(dtype=77) for meta in record["graph_module"]["graph"]["tensor_values"].values()
    ],
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused(change):
    content = file_of(export(Scaled(), (torch.ones(2), 3))).getvalue()
    with pytest.raises(RuntimeError, match="torch.export.load"):
        load(rewritten(content, change)).module()(torch.ones(2), 3)


def test_damaged_files_are_refused():
    content = file_of(export(Scaled(), (torch.ones(2), 3))).getvalue()
    for cut in (0, 10, len(content) // 2, len(content) - 5):
        with pytest.raises(RuntimeError, match="torch.export.load: the given file cannot be read"):
            load(io.BytesIO(content[:cut]))
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        save(Scaled(), io.BytesIO())


def test_weights_may_not_reach_past_their_bytes():
    content = file_of(export(nn.Linear(3, 2), (torch.ones(1, 3),))).getvalue()
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"sizes": [{"as_int": 2}', b'"sizes": [{"as_int": 9}'))
    made.seek(0)
    with pytest.raises(RuntimeError, match="reaches past its 24 bytes"):
        load(made)


def test_tensors_share_memory_as_they_did():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.arange(12.0).reshape(3, 4))
            self.register_buffer("row", self.table.detach()[1])
            self.register_buffer("part", torch.arange(1000.0)[5:8], persistent=False)

        def forward(self, x):
            return x @ self.table.T + self.row[:3] + self.part

    x = torch.randn(2, 4)
    file = file_of(export(Tied(), (x,)))
    with zipfile.ZipFile(file) as archive:
        assert archive.getinfo("archive/data/constants/tensor_0").file_size == 12  # of four thousand
    program = load(file)
    state = program.state_dict
    assert state["row"].data_ptr() == state["table"].data_ptr() + 16
    torch.testing.assert_close(program.module()(x), Tied()(x))


# --- with PyTorch -----------------------------------------------------------------------------------

NAMES = list(programs(torch))


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, (list, tuple)) else [value]


def check(found, expected):
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert str(f.dtype) == str(e.dtype)
        np.testing.assert_allclose(f.detach().numpy(), e.detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def reference():
    return pytest.importorskip("torch", reason="PyTorch reads and writes the archives")


@pytest.mark.parametrize(
    ("name", "decomposed"),
    [(name, False) for name in NAMES] + [(name, True) for name in ("shapes", "norms", "losses", "attention")],
)
def test_archives_of_pytorch_run_here_and_go_back(reference, name, decomposed):
    reference.manual_seed(0)
    module, x = programs(reference)[name]
    program = reference.export.export(module.eval(), (x,))
    if decomposed:
        program = program.run_decompositions()
    file = io.BytesIO()
    reference.export.save(program, file)
    file.seek(0)
    ours = load(file)
    expected = module(x)
    check(ours.module()(torch.from_numpy(x.numpy())), expected)
    for key, value in program.state_dict.items():
        np.testing.assert_array_equal(ours.state_dict[key].detach().numpy(), value.detach().numpy())
    if name != "without gradients" or decomposed:  # a part of a program cannot be written
        back = reference.export.load(file_of(ours))
        check(back.module()(x), expected)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "transformer"])
def test_our_archives_run_in_pytorch(reference, name):
    torch.manual_seed(0)
    module, x = programs(torch)[name]
    file = file_of(export(module.eval(), (x,)))
    expected = module(x)
    check(reference.export.load(file).module()(reference.from_numpy(x.numpy())), expected)
    file.seek(0)
    check(load(file).module()(x), expected)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0].reshape(-1, 8), x.shape[0] * 2 + x


def test_sizes_that_change_do_so_in_pytorch(reference):
    module = Attention().eval()
    sizes = ({0: Dim("users"), 1: Dim("time", max=64)},)
    file = file_of(export(module, (torch.randn(2, 5, 8),), dynamic_shapes=sizes))
    program = reference.export.load(file)
    assert {str(k): v.upper for k, v in program.range_constraints.items()}["s_time"] == 64
    shapes = {str(getattr(node.meta.get("val"), "shape", "")) for node in program.graph.nodes}
    assert {"torch.Size([s_users, s_time, 8])", "torch.Size([s_time*s_users, 8])"} & shapes
    x = torch.randn(3, 7, 8)
    check(program.module()(reference.from_numpy(x.numpy())), module(x))
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(reference.zeros(3, 65, 8))
    file.seek(0)
    again = load(file)
    check(again.module()(x), module(x))
    assert again.symbols["users"].lower == 0


def test_sizes_that_change_in_pytorch_do_so_here(reference, tmp_path):
    class Model(reference.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = reference.nn.Linear(4, 3)

        def forward(self, x, *, factor=2):
            y = self.inner(x) * factor
            return {"rows": y.view(x.shape[0] * 3), "y": y, "n": (x.shape[0] - 1) // 2}

    module, x = Model(), reference.randn(5, 4)
    rows = reference.export.Dim("rows", min=3, max=100)
    program = reference.export.export(
        module, (x,), {"factor": 3}, dynamic_shapes={"x": {0: rows}, "factor": None}
    )
    reference.export.save(program, tmp_path / "m.pt2", extra_files={"note.txt": "hello"})
    texts = {"note.txt": ""}
    ours = load(tmp_path / "m.pt2", extra_files=texts)
    assert texts == {"note.txt": "hello"} and [str(s) for s in ours.graph_signature.input_specs] == [
        str(s) for s in program.graph_signature.input_specs
    ]
    x = reference.randn(8, 4)
    found, expected = ours.module()(torch.from_numpy(x.numpy()), factor=3), module(x, factor=3)
    assert found.pop("n") == expected.pop("n") == 3
    check(found, expected)
    for rows in (2, 101):
        with pytest.raises(AssertionError, match="Guard failed"):
            ours.module()(torch.zeros(rows, 4), factor=3)


class Head(nn.Module):
    """The first rows, as many as the data says, beside half of all."""

    def forward(self, x, n):
        count = n.item()
        torch._check(count >= 0)
        torch._check(count < x.shape[0])
        return x * 2 + count, x[:count].sum(0), x[: x.shape[0] // 2], torch.cat([x[:count], x])


def test_sizes_change_beside_numbers_of_the_data(reference):
    program = export(Head(), (torch.randn(6, 4), torch.tensor(3)), dynamic_shapes=({0: Dim("rows")}, None))
    given, ours = (torch.randn(9, 4), torch.tensor(7)), load(file_of(program))
    for found in (program, ours, load(file_of(ours))):
        assert str(found.range_constraints) == "{'rows': VR[1, int_oo], 'u0': VR[0, int_oo]}"
        check(found.module()(*given), Head()(*given))
        with pytest.raises(RuntimeError, match="u0 < rows"):
            found.module()(given[0], torch.tensor(9))
        text = str(found)
        assert all(f'"f32[{size}, 4]"' in text for size in ("rows", "u0", "rows // 2"))
        assert '"Sym(u0)"' in text
    other = reference.export.load(file_of(ours))
    assert str(other.range_constraints) == "{s_rows: VR[1, int_oo], u0: VR[0, int_oo]}"
    shapes = {str(getattr(node.meta.get("val"), "shape", "")) for node in other.graph.nodes}
    assert {f"torch.Size([{size}, 4])" for size in ("s_rows", "u0", "(s_rows//2)", "s_rows + u0")} <= shapes
    check(other.module()(*(reference.from_numpy(t.numpy()) for t in given)), Head()(*given))


def test_writes_to_buffers_happen(reference):
    class Counter(reference.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", reference.zeros(2))
            self.norm = reference.nn.BatchNorm1d(2)

        def forward(self, x):
            self.count.add_(1)
            return self.norm(x) + self.count

    x = reference.randn(4, 2)
    for decomposed in (False, True):
        module = Counter()
        program = reference.export.export(module, (x,))
        file = io.BytesIO()
        reference.export.save(program.run_decompositions() if decomposed else program, file)
        file.seek(0)
        ours = load(file).module()
        for _ in range(3):
            check(ours(torch.from_numpy(x.numpy())), module(x))
        check(ours.norm.running_var, module.norm.running_var)


def test_what_is_not_covered_is_named(reference):
    class Model(reference.nn.Module):
        def forward(self, x):
            return reference.ops.aten._foobar(x)

    file = io.BytesIO()
    reference.export.save(reference.export.export(Model(), (reference.ones(2),)), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="node '_foobar' calls torch.ops.aten._foobar"):
        load(file)


def test_an_archive_of_pytorch_becomes_a_model_without_python(reference, tmp_path):
    module = reference.nn.Sequential(
        reference.nn.Linear(4, 3), reference.nn.ReLU(), reference.nn.Linear(3, 2)
    )
    x, rows = reference.randn(5, 4), reference.export.Dim("rows", max=100)
    file = io.BytesIO()
    reference.export.save(reference.export.export(module, (x,), dynamic_shapes=({0: rows},)), file)
    file.seek(0)
    save(load(file), tmp_path / "m.rl")
    x = reference.randn(9, 4)
    check(load_file(tmp_path / "m.rl")(torch.from_numpy(x.numpy())), module(x))


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_saved(kind, bias):
    torch.manual_seed(0)
    cell, x = kind(4, 3, bias=bias), torch.randn(2, 4)
    found = load(file_of(export(cell, (x,)))).module()(x)
    torch.testing.assert_close(found, cell(x))


def test_scans_run_and_go_on(tmp_path):
    def step(x, carry):
        return carry * 0.5 + x, (carry + x).tanh()

    class Mapped(nn.Module):
        def forward(self, xs, carry):
            return torch._higher_order_ops.map(step, xs, carry)

    def as_scan(record):  # as PyTorch writes it: carried values go first
        node = record["graph_module"]["graph"]["nodes"][0]
        function, xs, carry = node["inputs"]
        function["arg"]["as_graph"]["graph"]["inputs"].reverse()
        node["target"] = "torch.ops.higher_order.scan"
        node["inputs"] = [function, carry, xs, {"name": "", "arg": {"as_tensors": []}, "kind": 1}]

    inputs = torch.randn(6, 4), torch.randn(4)
    program = load(rewritten(file_of(export(Mapped(), inputs)).getvalue(), as_scan))
    expected = torch._higher_order_ops.scan(lambda carry, x: step(x, carry), inputs[1], inputs[0])
    save(program, tmp_path / "model.rl")
    runs = program, program.run_decompositions(), load(file_of(program))
    for run in (*(one.module() for one in runs), load_file(tmp_path / "model.rl")):
        for found, wanted in zip(run(*inputs), expected, strict=True):
            torch.testing.assert_close(found, wanted)
