"""torch.export: graphs with lifted tensors, signatures, modules made of them, and sizes that may change."""

import copy
import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, dims, export, load, save
from rushlight.export.dynamic_shapes import UserError
from rushlight.export.graph_signature import InputKind


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.seq = nn.Linear(3, 4), nn.Sequential(nn.ReLU())
        self.register_buffer("b", torch.ones(4))
        self.register_buffer("np", torch.ones(4), persistent=False)
        self.c = torch.full((4,), 2.0)

    def forward(self, x, y=None, *, k):
        self.b.add_(1)
        z = self.seq(self.lin(x)) + self.b * self.np + self.c + torch.tensor([1.0, 2, 3, 4])
        return {"o": z.sum(1), "p": (z, k["q"] * 2, 5, None)}


@pytest.fixture
def everything():
    module = Everything()
    return module, export(module, (torch.randn(2, 3),), {"k": {"q": torch.randn(2)}})


def test_all_tensors_are_inputs_of_the_graph(everything):
    module, program = everything
    signature = program.graph_signature
    assert [str(spec) for spec in signature.input_specs] == [
        "p_lin_weight: PARAMETER target='lin.weight'",
        "p_lin_bias: PARAMETER target='lin.bias'",
        "b_b: BUFFER target='b' persistent=True",
        "b_np: BUFFER target='np' persistent=False",
        "c_c: CONSTANT_TENSOR target='c'",
        "c_lifted_tensor_0: CONSTANT_TENSOR target='lifted_tensor_0'",
        "x: USER_INPUT",
        "k_q: USER_INPUT",
    ]
    assert signature.user_inputs == ("x", "k_q") and signature.user_outputs[3:] == (5, None)
    assert signature.inputs_to_parameters["p_lin_bias"] == "lin.bias"
    assert sorted(program.state_dict) == ["b", "lin.bias", "lin.weight"]
    assert sorted(program.constants) == ["c", "lifted_tensor_0", "np"]
    assert all(n.op in ("placeholder", "call_function", "output") for n in program.graph.nodes)
    assert dict(program.named_parameters())["lin.weight"] is module.lin.weight
    assert module.b.tolist() == [1.0] * 4  # nothing ran
    program.validate()


def test_the_text_shows_types_and_origins(everything):
    text = str(everything[1])
    assert text.startswith("ExportedProgram:\n    class GraphModule(torch.nn.Module):")
    assert 'p_lin_weight: "f32[4, 3]"' in text and "code: self.b.add_(1)" in text
    assert "Graph signature: " in text and "Range constraints: {}" in text
    stacks = [n.meta.get("nn_module_stack") for n in everything[1].graph.nodes if n.op == "call_function"]
    assert any("lin" in [path for path, _ in stack.values()] for stack in stacks if stack)


def test_a_module_computes_as_the_original(everything):
    module, program = everything
    made = program.module()
    assert [n for n, _ in made.named_parameters()] == ["lin.weight", "lin.bias"]
    assert sorted(n for n, _ in made.named_buffers()) == ["b", "np"]
    x, k = torch.randn(2, 3), {"q": torch.randn(2)}
    reference = copy.deepcopy(module)
    out, expected = made(x, k=k), reference(x, k=k)
    torch.testing.assert_close(out, expected)
    assert made.b.tolist() == reference.b.tolist() == [2.0] * 4
    out["o"].sum().backward()
    assert made.lin.weight.grad is not None
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x, k=k)


def test_other_inputs_are_refused(everything):
    made, k = everything[1].module(), {"q": torch.randn(2)}
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 2"):
        made(torch.randn(5, 3), k=k)
    with pytest.raises(AssertionError, match=r"Guard failed: len\(x.size\(\)\) == 2"):
        made(torch.randn(3), k=k)
    with pytest.raises(ValueError, match="kwarg keyword mismatch"):
        made(torch.randn(2, 3))
    scaled = export(Scaled(), (torch.ones(2), 3)).module()
    assert scaled(torch.ones(2), 3).tolist() == [3, 3]
    with pytest.raises(AssertionError, match="Guard failed: n == 3, got 4"):
        scaled(torch.ones(2), 4)


class Scaled(nn.Module):
    def forward(self, x, n):
        return x * n


class Sizes(nn.Module):
    def forward(self, x, y):
        return x.view(x.shape[0] * x.shape[1], -1) + y.shape[0]


def test_sizes_that_change():
    batch = Dim("batch", min=2, max=64)
    x, y = torch.randn(4, 5, 6), torch.ones(4)
    program = export(Sizes(), (x, y), dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    assert str(program.range_constraints) == "{'batch': VR[2, 64]}"
    made = program.module()
    for n in (2, 7, 63):
        inputs = torch.randn(n, 5, 6), torch.ones(n)
        torch.testing.assert_close(made(*inputs), Sizes()(*inputs))
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        made(torch.randn(7, 5, 6), torch.ones(3))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 64"):
        made(torch.randn(70, 5, 6), torch.ones(70))
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[1\] == 5"):
        made(torch.randn(7, 4, 6), torch.ones(7))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, float("-inf")).softmax(-1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(b, t, c))


def test_batch_and_length_of_attention_change():
    module = Attention().eval()
    batch, length = dims("batch", "length")
    program = export(module, (torch.randn(2, 5, 8),), dynamic_shapes=({0: batch, 1: length},))
    made = program.module()
    for shape in ((2, 5, 8), (1, 1, 8), (3, 17, 8)):
        x = torch.randn(shape)
        torch.testing.assert_close(made(x), module(x))


def test_convolutions_take_any_batch():
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    ).eval()
    program = export(module, (torch.randn(2, 1, 8, 8),), dynamic_shapes={"input": {0: Dim.DYNAMIC}})
    x = torch.randn(5, 1, 8, 8)
    torch.testing.assert_close(program.module()(x), module(x))


def test_derived_sizes():
    class Pairs(nn.Module):
        def forward(self, x, y):
            return x.view(-1, 2).sum(1) + y

    n = Dim("n", min=1, max=100)
    shapes = ({0: 2 * n}, {0: n})
    made = export(Pairs(), (torch.ones(6), torch.ones(3)), dynamic_shapes=shapes).module()
    assert made(torch.ones(10), torch.ones(5)).tolist() == [3.0] * 5
    with pytest.raises(AssertionError, match="Guard failed"):
        made(torch.ones(9), torch.ones(5))
    with pytest.raises(UserError, match=r"is 5, which is not 2\*n for any n"):
        export(Pairs(), (torch.ones(5), torch.ones(3)), dynamic_shapes=shapes)


class Unrolled(nn.Module):
    def forward(self, x):
        for row in range(x.shape[0]):
            x = x + row
        return x


class Branching(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] > 6 else x - 1


class ByValue(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Single(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] == 1 else x - 1


class Squeezing(nn.Module):
    def forward(self, x):
        return x.squeeze() * 2


class Large(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] > 1000 else x - 1


def test_the_ends_of_the_range_are_tried():
    squeezed = export(Squeezing(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n")},)).module()
    assert squeezed(torch.ones(1, 3)).shape == (3,) and squeezed(torch.ones(9, 3)).shape == (9, 3)
    program = export(Single(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n")},))
    assert str(program.range_constraints) == "{'n': VR[2, int_oo]}"
    made = program.module()
    assert made(torch.ones(9, 3)).shape == (9, 3)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] >= 2"):
        made(torch.ones(1, 3))
    for most in (None, 2000):
        with pytest.raises(UserError, match="takes another path at other sizes"):
            export(Large(), (torch.ones(4),), dynamic_shapes=({0: Dim("n", max=most)},))
    export(Large(), (torch.ones(4),), dynamic_shapes=({0: Dim("n", max=1000)},))


def test_what_depends_on_the_example_is_refused():
    module, x = Unrolled(), torch.ones(4, 3)
    with pytest.raises(UserError, match="takes another path at other sizes"):
        export(module, (x,), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(UserError, match="Constraints violated"):
        export(module, (x,), dynamic_shapes=({0: Dim.DYNAMIC},))
    # a hint gives way: the size is static
    program = export(module, (x,), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert list(program.range_constraints) == ["s3"]
    torch.testing.assert_close(program.module()(torch.ones(4, 9)), module(torch.ones(4, 9)))
    with pytest.raises(UserError, match="takes another path at other sizes"):
        export(Branching(), (x,), dynamic_shapes=({0: Dim("n")},))
    for hint in (Dim.AUTO, Dim.DYNAMIC):
        assert export(Branching(), (x,), dynamic_shapes=({0: hint},)).range_constraints["s4"].upper == 6
    with pytest.raises(RuntimeError, match="Could not guard on data-dependent expression"):
        export(ByValue(), (torch.ones(2),))


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"z": None}, "top-level keys must be the arg names"),
        (({0: Dim("n")}, None), "has 2 entries"),
        (({5: Dim("n")},), "names dimension 5"),
        (({0: "n"},), "Unexpected dimension mapped to index 0"),
        (({0: 7},), "is 7, but it is 4"),
        (([Dim("n")],), "has 1 entries for a tensor of 2 dimensions"),
        (({0: Dim("n", max=3)},), "outside of"),
        (({0: Dim("n", min=4, max=4)},), "too few sizes"),
        (({0: Dim("n"), 1: Dim("n")},), "Constraints violated"),
    ],
)
def test_bad_dynamic_shapes(shapes, text):
    with pytest.raises(UserError, match=text):
        export(nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=shapes)


def test_bad_arguments():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
        export(nn.ReLU(), torch.ones(2))
    with pytest.raises(AssertionError, match="inconsistent min=3, max=2"):
        Dim("n", min=3, max=2)
    assert repr(Dim("a")) == "Dim('a', min=0)" and repr(2 * Dim("a") + 1) == "2*a + 1"


def test_decompositions():
    aten = torch.ops.aten
    program = export(nn.Sequential(nn.Linear(2, 2), nn.SiLU()), (torch.randn(3, 2),))
    made = program.run_decompositions({aten.silu.default: lambda x: x * torch.sigmoid(x)})
    before, after = ([n.target for n in p.graph.nodes] for p in (program, made))
    assert aten.silu.default in before and aten.silu.default not in after and aten.sigmoid.default in after
    x = torch.randn(3, 2)
    torch.testing.assert_close(made.module()(x), program.module()(x))
    same = program.run_decompositions({})
    called = [n.target for n in same.graph.nodes if n.op == "call_function"]
    assert called == [aten.linear.default, aten.silu.default]
    torch.testing.assert_close(same.module()(x), program.module()(x))


def test_names_of_inputs_do_not_collide():
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.ones(2))
            self.gamma = torch.full((2,), 2.0)

        def forward(self, x, x_foo, x_foo_0, p, c_gamma):
            return (
                x["foo"][0] + 10 * x_foo[0] + 100 * x_foo_0 + p["param"] * self.param + c_gamma * self.gamma
            )

    one = torch.ones(2)
    inputs = ({"foo": [one]}, (one,), one, {"param": one}, one)
    program = export(Nested(), inputs)
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    assert names == ["p_param_1", "c_gamma_1", "x_foo_0", "x_foo_0_1", "x_foo_0_2", "p_param", "c_gamma"]
    assert program.module()(*inputs).tolist() == [114.0, 114.0]


def test_mistakes_of_the_program_are_those_of_capture():
    with pytest.raises(torch._dynamo.exc.UserError, match="to be a tuple"):
        export(nn.Linear(2, 2), torch.ones(2))


def test_programs_know_that_they_are_exported():
    class Asking(nn.Module):
        def forward(self, x):
            return x + 1 if torch.compiler.is_exporting() and torch.compiler.is_compiling() else x

    program = export(Asking(), (torch.ones(1),))
    assert program.module()(torch.ones(1)).tolist() == [2] and not torch.compiler.is_exporting()
    assert program.graph_signature.input_specs[0].kind is InputKind.USER_INPUT


def test_systems_of_equations_are_traced():
    """Whether a matrix was singular is a question to values, which a trace has not."""

    class Solver(nn.Module):
        def forward(self, a, b):
            return torch.linalg.solve(a, b), torch.linalg.inv(a), torch.linalg.cholesky(a @ a.mT)

    a, b = torch.randn(2, 4, 4) + 4 * torch.eye(4), torch.randn(2, 4, 3)
    program = export(Solver(), (a, b))
    for found, expected in zip(program.module()(a, b), Solver()(a, b)):
        torch.testing.assert_close(found, expected)


def test_tied_weights_are_one_input():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    module = Tied()
    program = export(module, (torch.randn(1, 2),))
    assert program.graph_signature.parameters == ("a.weight", "a.bias", "b.bias")
    x = torch.randn(1, 2)
    torch.testing.assert_close(program.module()(x), module(x))


def test_programs_are_written_and_read(everything, tmp_path):
    module, program = everything
    file, texts = io.BytesIO(), {"note": ""}
    save(program, file, extra_files={"note": "hello"})
    file.seek(0)
    made = load(file, extra_files=texts)
    assert str(made) == str(program) and texts == {"note": "hello"}
    x, k = torch.randn(2, 3), {"q": torch.randn(2)}
    torch.testing.assert_close(made.module()(x, k=k), copy.deepcopy(module)(x, k=k))

    batch, length = dims("batch", "length")
    attention = Attention().eval()
    program = export(attention, (torch.randn(2, 5, 8),), dynamic_shapes=({0: batch, 1: length},))
    save(program, tmp_path / "attention.pt2")
    made = load(tmp_path / "attention.pt2")
    x = torch.randn(3, 7, 8)
    torch.testing.assert_close(made.module()(x), attention(x))
    assert [p.name for p in tmp_path.iterdir()] == ["attention.pt2"]


def test_dynamic_shapes_that_are_numbers():
    with pytest.raises(
        UserError, match="Unexpected input tensor shape 3 specified at .*expected either a list"
    ):
        torch.export.export(torch.nn.Linear(2, 2), (torch.ones(3, 2),), dynamic_shapes=[3])


class Plus(nn.Module):
    def forward(self, x, *rest, **more):
        return x + sum(rest) + sum(more.values())


def test_shapes_of_starred_arguments_are_given_together():
    x, named = torch.ones(3), {"a": torch.ones(3)}
    for shapes in (
        ({0: Dim("n")}, ({0: Dim("n")}, None), {0: Dim("n")}),
        {"x": {0: Dim("n")}, "rest": ({0: Dim("n")}, None), "more": {"a": {0: Dim("n")}}},
    ):
        run = export(Plus(), (x, x, 2), named, dynamic_shapes=shapes).module()
        five = torch.ones(5)
        torch.testing.assert_close(run(five, five, 2, a=five), five * 5)


def test_a_program_called_otherwise_is_refused():
    program = export(Plus(), (torch.ones(3), 2), {"a": torch.ones(3)})
    run = copy.deepcopy(program.module())
    torch.testing.assert_close(run(torch.ones(3), 2, a=torch.ones(3)), torch.full((3,), 4.0))
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        run(torch.ones(3), 2, 3, a=torch.ones(3))
    with pytest.raises(ValueError, match="Ran into a kwarg keyword mismatch"):
        run(torch.ones(3), 2, b=torch.ones(3))
    with pytest.raises(ValueError, match="Example inputs should be a tuple"):
        program.example_inputs = (torch.ones(3),)
    program.example_inputs = (torch.zeros(3), 2), {"a": torch.ones(3)}
    assert program.example_inputs[0][0].sum() == 0


def test_fake_tensors_are_exported_as_they_are():
    with torch._subclasses.FakeTensorMode() as mode:
        module, x = nn.Linear(2, 3), torch.ones(4, 2)
    program = export(module, (x,))
    made = program.graph.output_node().args[0][0].meta["val"]
    assert made.shape == (4, 3) and made.fake_mode is mode


def test_one_name_has_one_range():
    first, second = Dim("C", min=3), Dim("C", max=12)
    with pytest.raises(UserError, match="Found different definitions .*min=3.* and .*max=12") as caught:
        export(Plus(), (torch.ones(9, 9),), dynamic_shapes=((first, second),))
    assert "different definitions" in caught.value.msg


def test_nodes_are_looked_up_in_the_program(everything):
    from rushlight._export import utils

    module, program = everything
    found = {n.name: n for n in program.graph.nodes}
    assert utils.get_param(program, found["p_lin_weight"]) is module.lin.weight
    assert utils.get_buffer(program, found["b_b"]) is module.b
    assert utils.get_buffer(program, found["b_np"]) is module.np
    assert utils.get_lifted_tensor_constant(program, found["c_c"]) is module.c
    assert not utils.is_param(program, found["x"]) and utils.get_param(program, found["x"]) is None
    same = program._update(program.graph_module, program.graph_signature, constants={})
    assert same.graph is program.graph and same.constants == {} and program.constants


def test_the_signature_names_returned_sizes():
    class Sized(nn.Module):
        def forward(self, x):
            return x * 2, x.shape[0], x.shape[1]

    program = torch.export.export(Sized(), (torch.ones(3, 2),), dynamic_shapes=({0: torch.export.Dim("b")},))
    for made in (program, program.run_decompositions()):
        assert made.graph_signature.user_outputs == ("mul", "sym_size_int", 2)
        assert made.module()(torch.ones(5, 2))[1:] == (5, 2)


def test_a_program_has_the_mode_it_was_exported_in():
    """A flag would be set in vain, and dropout go on in what looks like evaluation."""
    module = export(nn.Sequential(nn.Linear(2, 2), nn.Dropout()).train(), (torch.ones(1, 2),)).module()
    for program in (module, copy.deepcopy(module)):
        for change in (program.eval, program.train, nn.Sequential(program).eval):
            with pytest.raises(NotImplementedError, match="is not supported yet"):
                change()


def test_inputs_are_nested_as_the_program_was_exported():
    class Nested(torch.nn.Module):
        def forward(self, d, pair, *, k):
            return d["a"] + pair[0], pair[1] + k["z"][0]

    x = torch.ones(2)
    module = torch.export.export(Nested(), ({"a": x}, [x, x]), {"k": {"z": (x,)}}).module()
    assert module({"a": x}, [x, x], k={"z": (x,)})[1].tolist() == [2.0, 2.0]
    for d, pair, z in (
        ({"a": x}, [x, x, x], (x,)),
        ({"a": x}, (x, x), (x,)),
        ({"b": x}, [x, x], (x,)),
        ({"a": x, "b": x}, [x, x], (x,)),
        ({"a": x}, [x, x], [x]),
    ):
        with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
            module(d, pair, k={"z": z})
