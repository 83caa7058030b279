"""TorchScript archives of PyTorch: loaded without its classes, equal in results; hostile ones refused."""

import io
import warnings
import zipfile

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="PyTorch writes the archives")
import torchscript_programs as programs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
ALL = {**programs.programs(), **programs.programs_of_python()}
CASES = [(name, way) for name, (_, _, ways) in ALL.items() for way in ways]


def ours(value):
    return rushlight.from_numpy(value.detach().numpy().copy()) if isinstance(value, torch.Tensor) else value


def check_equal(expected, found):
    if isinstance(expected, torch.Tensor):
        assert str(found.dtype) == str(expected.dtype).replace("torch.", "torch.")
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for e, f in zip(expected, found, strict=True):
            check_equal(e, f)
    else:
        assert type(found) is type(expected) and found == expected


def saved(name, way, path):
    torch.manual_seed(0)
    module, inputs, _ = {**programs.programs(), **programs.programs_of_python()}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return programs.save(module, inputs, way, path), inputs


@pytest.mark.parametrize(("name", "way"), CASES)
def test_results_are_pytorchs(name, way, tmp_path):
    expected, inputs = saved(name, way, tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt")
    assert isinstance(found, rushlight.jit.ScriptModule) and not found.training
    with torch.no_grad(), rushlight.no_grad():
        for _ in range(2):
            check_equal(expected(*inputs), found(*map(ours, inputs)))
    check_equal(list(expected.state_dict()), list(found.state_dict()))
    for key, value in expected.state_dict().items():
        check_equal(value, found.state_dict()[key])
    assert "def forward" in found.code


def test_gradients_and_modes(tmp_path):
    expected, inputs = saved("resnet", "script", tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt")
    for module, x in ((expected, inputs[0]), (found, ours(inputs[0]))):
        module.train()
        module(x).square().sum().backward()
    for (name, e), (_, f) in zip(expected.named_parameters(), found.named_parameters(), strict=True):
        np.testing.assert_allclose(f.grad.numpy(), e.grad.numpy(), rtol=2e-3, atol=2e-4, err_msg=name)
    check_equal(expected.state_dict()["stem.1.running_var"], found.state_dict()["stem.1.running_var"])


def test_state_methods_and_functions(tmp_path):
    expected, (x,) = saved("control", "script", tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt", map_location="cpu")
    found(ours(x)), found(ours(x))
    assert found.calls.item() == 2 and found.limit == 3 and found.names == ["a", "b"]
    assert len(found.layers) == 3 and found.original_name == "Control"
    names = {n for n, _ in found.named_modules()}
    assert names == {n for n, _ in expected.named_modules()}


def test_weights_of_lstm_are_its_parameters(tmp_path):
    saved("lstm", "script", tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt")
    assert found.rnn._flat_weights[0] is found.rnn.weight_ih_l0


def test_errors_of_programs(tmp_path):
    programs.save(programs.Fails(), (), "script", tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt")
    for wrong, words in ((rushlight.zeros(2), "expected a matrix"), (rushlight.zeros(6, 2), "too many rows")):
        with pytest.raises(rushlight.jit.Error, match=words) as caught:
            found(wrong)
        told, (place, *_) = str(caught.value), str(caught.value).splitlines()[2:]
        assert "Traceback of TorchScript, serialized code (most recent call last):" in told
        assert place.endswith(", in forward") and "torchscript_programs.py" in place and "<--- HERE" in told
    assert "builtins.ValueError: too many rows" in told


def test_methods_are_checked_and_show_their_text(tmp_path):
    expected, (x,) = saved("control", "script", tmp_path / "model.pt")
    found = rushlight.jit.load(tmp_path / "model.pt")
    assert found.code.splitlines()[:2] == expected.code.splitlines()[:2] and found.forward.code == found.code
    text = [getattr(module.layers, "0").code for module in (found, expected)]
    assert text[0] == text[1]  # its temporaries are numbered from 0 on
    assert str(found.forward.schema) == str(expected.forward.schema)
    assert repr(found).replace(" ", "") == repr(expected).replace(" ", "")
    assert found._c.qualified_name == expected._c.qualified_name
    for given in ((1,), (), (ours(x), ours(x), ours(x), ours(x))):
        with pytest.raises(RuntimeError) as wanted:
            expected(*(torch.zeros(2) if isinstance(a, rushlight.Tensor) else a for a in given))
        with pytest.raises(RuntimeError) as caught:
            found(*given)
        assert str(caught.value).splitlines()[0][:60] == str(wanted.value).splitlines()[0][:60]


# --- hostile and unknown content ---------------------------------------------------------------------


def rewritten(source, change):
    """The archive with its main code changed."""
    content, out = zipfile.ZipFile(source), io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name in content.namelist():
            data = content.read(name)
            if name.endswith("code/__torch__/torchscript_programs.py"):
                data = change(data.decode()).encode()
            target.writestr(name, data)
    out.seek(0)
    return out


@pytest.fixture(scope="module")
def fails(tmp_path_factory):
    path = tmp_path_factory.mktemp("archives") / "fails.pt"
    programs.save(programs.Fails(), (), "script", path)
    return path


BODY = "\n    return x\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "x.__class__.__base__",
        "().__class__",
        "__builtins__",
        "open('x')",
        "getattr(x, '__class__')",
        "getattr(self, '__dict__')",
        "self.__class__",
        "(self).__reduce__()",
        "(self).load_state_dict({}, )",
        "torch.load('x')",
        "torch._C('x')",
        "torch.__import__('os')",
        "ops.prim.__class__(x)",
        "ops.__class__.x(x)",
        "(lambda: 1)",
        "[v for v in x]",
        "eval('1')",
        "torch.format('{0.__class__}', x)",
        "__torch__.os.system('true')",
        "self.forward.__globals__",
        "(torch.format)('a', )",
    ],
)
def test_code_reaches_nothing_outside(fails, code):
    """Statements that lead out of the archive fail when it is read or run; none gives Python's objects."""
    file = rewritten(fails, lambda text: text.replace("    return x\n", f"    y = {code}\n    return y\n"))
    try:
        result = rushlight.jit.load(file)(rushlight.zeros(2, 2))
    except (NotImplementedError, AttributeError, RuntimeError, TypeError):
        return
    assert isinstance(result, str) and "class" not in result.replace("{0.__class__}", "")


def test_unknown_operators_say_so_when_they_run(fails):
    file = rewritten(fails, lambda text: text.replace("    return x\n", "    return torch.unheard_of(x)\n"))
    found = rushlight.jit.load(file)
    with pytest.raises(NotImplementedError, match="aten::unheard_of"):
        found(rushlight.zeros(2, 2))


def test_unknown_syntax_names_its_line(fails):
    file = rewritten(
        fails,
        lambda text: text.replace("    return x\n", "    try:\n      return x\n    finally:\n      pass\n"),
    )
    with pytest.raises(NotImplementedError, match=r"__torch__/torchscript_programs.py:\d+: .*Try"):
        rushlight.jit.load(file)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("    with x:\n      return x\n", "has no method '__enter__'"),
        ("    return fork(x)\n", "a Tensor of the archive cannot be forked"),
        ("    def inner(y):\n      return y\n    return x\n", "a function inside of a function"),
    ],
)
def test_with_and_fork_take_what_archives_give_them_alone(fails, code, words):
    file = rewritten(fails, lambda text: text.replace("    return x\n", code))
    with pytest.raises((NotImplementedError, AttributeError, RuntimeError, TypeError), match=words):
        rushlight.jit.load(file)(rushlight.zeros(2, 2))


def test_pickles_name_nothing_else(fails):
    content, out = zipfile.ZipFile(fails), io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name in content.namelist():
            hostile = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."
            target.writestr(name, hostile if name.endswith("/data.pkl") else content.read(name))
    out.seek(0)
    with pytest.raises(RuntimeError, match="os.system"):
        rushlight.jit.load(out)


def test_a_value_alone_makes_enumerations_alone(fails):
    content, out = zipfile.ZipFile(fails), io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name in content.namelist():
            hostile = b"\x80\x02c__torch__.torchscript_programs\nFails\nK\x01R."
            target.writestr(name, hostile if name.endswith("/data.pkl") else content.read(name))
    out.seek(0)
    with pytest.raises(RuntimeError, match="with no arguments"):
        rushlight.jit.load(out)


def test_damaged_archives_are_errors(fails):
    whole = fails.read_bytes()
    draw = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(draw.integers(1, 6)):
            changed[draw.integers(len(changed))] = draw.integers(256)
        try:
            rushlight.jit.load(io.BytesIO(bytes(changed)))(rushlight.zeros(2, 2))
        except (RuntimeError, NotImplementedError, ValueError, AttributeError, TypeError, AssertionError):
            refused += 1
    assert refused > 40  # others changed names and padding
