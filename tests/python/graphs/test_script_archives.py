"""Archives that `torch.jit.save` writes of our own scripts and traces: PyTorch reads them, and so do we."""

import io
import zipfile

import pytest
import script_archive_models as models

import rushlight
from rushlight._command.names import is_aliased

oracle = pytest.importorskip("torch", reason="PyTorch reads the archives")

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(is_aliased(), reason="the alias replaces PyTorch, which reads these archives"),
]


def made(name):
    """The script or trace of a case, and its inputs."""
    rushlight.manual_seed(0)
    make, inputs, way = models.CASES[name]
    module = make()
    if way == "trace":
        return rushlight.jit.trace(module, inputs), inputs
    return rushlight.jit.script(module), inputs


def saved(script, **more):
    buffer = io.BytesIO()
    rushlight.jit.save(script, buffer, **more)
    buffer.seek(0)
    return buffer


def as_oracle(value):
    """A value with PyTorch's tensors in place of ours."""
    if isinstance(value, rushlight.Tensor):
        kind = getattr(oracle, str(value.dtype).rpartition(".")[2])
        return oracle.tensor(value.detach().tolist(), dtype=kind).reshape(tuple(value.shape))
    if isinstance(value, (list, tuple)):
        items = [as_oracle(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: as_oracle(item) for key, item in value.items()}
    return value


def check_equal(expected, found):
    if isinstance(expected, oracle.Tensor):
        assert found.dtype == expected.dtype
        oracle.testing.assert_close(found.detach(), expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(expected)
        for e, f in zip(expected, found, strict=True):
            check_equal(e, f)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        check_equal(list(expected.values()), list(found.values()))
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, nan_ok=True)
    else:
        assert str(found) == str(expected)


@pytest.mark.parametrize("name", models.CASES)
def test_pytorch_computes_the_same(name):
    script, inputs = made(name)
    file = saved(script)
    theirs = oracle.jit.load(file)
    file.seek(0)
    ours = rushlight.jit.load(file)
    expected = as_oracle(script(*inputs))
    check_equal(expected, theirs(*as_oracle(inputs)))
    check_equal(expected, as_oracle(ours(*inputs)))


def test_what_pytorch_writes_again_is_read_here():
    script, inputs = made("convolutions")
    theirs, again = oracle.jit.load(saved(script)), io.BytesIO()
    oracle.jit.save(theirs, again)
    again.seek(0)
    check_equal(as_oracle(script(*inputs)), as_oracle(rushlight.jit.load(again)(*inputs)))


def test_weights_are_written_once():
    module = rushlight.nn.Linear(300, 300)
    size = len(saved(rushlight.jit.script(module)).getvalue())
    assert size < 300 * 300 * 4 * 1.2


def test_parameters_buffers_and_modes_are_those_of_the_module():
    script, _ = made("convolutions")
    theirs = oracle.jit.load(saved(script))
    assert list(theirs.state_dict()) == list(script.state_dict())
    assert theirs.training is script.training
    check_equal(as_oracle(dict(script.state_dict())), dict(theirs.state_dict()))
    assert [n for n, _ in theirs.named_parameters()] == [n for n, _ in script.named_parameters()]
    assert all(p.requires_grad for p in theirs.parameters())


def test_further_records_and_places(tmp_path):
    script, inputs = made("shared")
    rushlight.jit.save(script, tmp_path / "model.pt", _extra_files={"note": "text"})
    for space, given in ((oracle, as_oracle(inputs)), (rushlight, inputs)):
        found = {"note": ""}
        module = space.jit.load(str(tmp_path / "model.pt"), map_location="cpu", _extra_files=found)
        assert found["note"] in ("text", b"text")
        check_equal(as_oracle(script(*inputs)), as_oracle(module(*given)))


def test_shared_modules_stay_one():
    script, _ = made("shared")
    theirs = oracle.jit.load(saved(script))
    assert theirs.first.weight.data_ptr() == theirs.second.weight.data_ptr()


def test_methods_are_there_for_pytorch():
    script, inputs = made("functions")
    theirs = oracle.jit.load(saved(script))
    check_equal(as_oracle(script.extra(*inputs)), theirs.extra(*as_oracle(inputs)))


def test_errors_of_scripts_are_raised():
    script, _ = made("raises")
    theirs = oracle.jit.load(saved(script))
    with pytest.raises(oracle.jit.Error, match="bad 7"):
        theirs(oracle.ones(2, 3), 7)
    with pytest.raises(Exception, match="n is small"):
        theirs(oracle.ones(2, 3), -9)


def test_modules_of_one_text_are_of_one_class():
    script = rushlight.jit.script(rushlight.nn.Sequential(*(rushlight.nn.Linear(2, 2) for _ in range(3))))
    archive = zipfile.ZipFile(saved(script))
    (record,) = [n for n in archive.namelist() if n.endswith("linear.py")]
    assert archive.read(record).decode().count("class ") == 1


def test_files_of_before_are_read():
    """Files without a part for PyTorch: those that have no words there, and those of older versions."""
    import pickle

    from rushlight._serialization.zip_records import RecordWriter, write_to_stream
    from rushlight.jit._archive import _Writer
    from rushlight.jit._dialect._records import Parts, write_parts
    from rushlight.serialization import _pickle_with_storages

    script, inputs = made("lists")
    parts = Parts(*_pickle_with_storages(_Writer().write(script), pickle, 2))
    buffer = io.BytesIO()
    write_to_stream(buffer, lambda file: write_parts(RecordWriter(file, "archive"), parts))
    buffer.seek(0)
    check_equal(as_oracle(script(*inputs)), as_oracle(rushlight.jit.load(buffer)(*inputs)))


def test_what_has_no_words_there_says_why():
    class Packs(rushlight.nn.Module):
        def forward(self, x):
            packed = rushlight.nn.utils.rnn.pack_padded_sequence(x, rushlight.tensor([2, 1]))
            return packed.data

    file = saved(rushlight.jit.script(Packs()))
    archive = zipfile.ZipFile(file)
    (record,) = [n for n in archive.namelist() if n.endswith("rushlight.txt")]
    assert "pack_padded_sequence" in archive.read(record).decode()
    file.seek(0)
    assert rushlight.jit.load(file)(rushlight.ones(2, 2, 3)).shape == (3, 3)
