"""Files in the safetensors format: written, read in part, and never trusted."""

import io
import json
import os

import pytest

import rushlight as torch
from rushlight.safetensors import SafetensorError, load, load_file, safe_open, save, save_file


def tensors():
    torch.manual_seed(0)
    return {
        "weight": torch.randn(3, 4),
        "half": torch.randn(5).half(),
        "mask": torch.tensor([True, False, True]),
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "ü.0": torch.arange(6, dtype=torch.uint8).view(2, 3).t(),
        "double": torch.randn(2, dtype=torch.float64),
        "complex": torch.randn(2, dtype=torch.complex64),
        "small": torch.randn(4).to(torch.float8_e4m3fn),
    }


def assert_same(mine, expected):
    assert mine.keys() == expected.keys()
    for name, tensor in expected.items():
        assert mine[name].dtype == tensor.dtype and mine[name].shape == tensor.shape, name
        assert mine[name].tolist() == tensor.tolist(), name


def test_round_trips(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(tensors(), path, metadata={"format": "pt"})
    assert_same(load_file(path), tensors())
    assert_same(load(save(tensors())), tensors())
    assert_same(torch.load(path), tensors())
    assert_same(torch.load(io.BytesIO(save(tensors()))), tensors())
    assert torch.load(path, map_location="meta")["weight"].is_meta
    assert path.read_bytes() == save(tensors(), metadata={"format": "pt"})
    assert_same(load(save({})), {})


def test_reading_in_part(tmp_path):
    path = str(tmp_path / "model.safetensors")
    save_file(tensors(), path, metadata={"made": "here"})
    with safe_open(path, framework="pt") as file:
        assert file.keys() == sorted(tensors()) and file.metadata() == {"made": "here"}
        assert set(file.offset_keys()) == set(tensors())
        part = file.get_slice("weight")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "F32"
        assert torch.equal(part[1:, :2], tensors()["weight"][1:, :2])
        weight = file.get_tensor("weight")
        with pytest.raises(SafetensorError, match="does not contain"):
            file.get_tensor("none")
    weight.add_(1)  # a private copy: the file stays as it is
    assert_same(load_file(path), tensors())
    with pytest.raises(SafetensorError, match="closed"):
        file.get_tensor("weight")
    with pytest.raises(SafetensorError, match="framework"):
        safe_open(path, framework="np")


def test_the_reference_implementation_agrees(tmp_path):
    reference = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "ours.safetensors"
    plain = {name: tensors()[name] for name in ("weight", "half", "mask", "scalar", "empty", "ü.0", "double")}
    save_file(plain, path, metadata={"a": "b"})
    theirs = reference.load_file(path)
    assert {name: array.tolist() for name, array in theirs.items()} == {
        name: tensor.tolist() for name, tensor in plain.items()
    }
    assert_same(load(reference.save(theirs)), plain)


def test_what_the_format_has_not(tmp_path):
    for bad, text in [
        ({"a": 3}, "expected torch.Tensor"),
        ({1: torch.ones(1)}, "strings"),
        ({"a": torch.eye(2).to_sparse()}, "format has not"),
        ({"a": torch.ones(2, dtype=torch.complex128)}, "format has not"),
    ]:
        with pytest.raises(ValueError, match=text):
            save_file(bad, tmp_path / "bad")
    with pytest.raises(ValueError, match="metadata"):
        save({}, metadata={"a": 1})
    assert os.listdir(tmp_path) == []


def forged(table, data=b"\0" * 8):
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        (2**60).to_bytes(8, "little") + b"{}",
        forged(b"{"),
        forged(b"[1]"),
        forged(b"\xff\xfe{}"),
        forged(b"[" * 100000),
        forged({}),
        forged({"a": 1}),
        forged({"__metadata__": {"a": 1}}, b""),
        forged({"__metadata__": 3}, b""),
        forged(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{}}'),
        forged(entry(dtype="X9")),
        forged(entry(dtype=["F32"])),
        forged(entry(shape=(-2,))),
        forged(entry(shape=(True, 2))),
        forged(entry(shape=(2.0,))),
        forged(entry(shape=(2**61, 2**3))),
        forged(entry(shape=(2**40, 2**40, 0))),
        forged(entry(shape=[1] * 100 + [2])),
        forged(entry(offsets=(0, 16))),
        forged(entry(offsets=(4, 12)), b"\0" * 12),
        forged(entry(offsets=(8, 0))),
        forged(entry(offsets=(0,))),
        forged(entry(), b"\0" * 12),
        forged({**entry(), "b": entry()["a"]}),
        forged(b'{"\\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
        forged(b'{"\xed\xa0\x80":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
        forged(b'{"a\n":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
        forged(b'{"a":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}}'),
        forged(b'{"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}'),
        forged(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},}'),
        forged(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}'),
    ],
)
def test_hostile_files_are_refused(content, tmp_path):
    with pytest.raises(SafetensorError):
        load(content)
    path = tmp_path / "hostile"
    path.write_bytes(content)
    with pytest.raises(SafetensorError):
        load_file(path)


def test_truncated_files_are_refused():  # changed ones are tests/fuzz/readers.cpp's
    whole = save(tensors(), metadata={"a": "b"})
    for length in range(len(whole)):
        with pytest.raises(SafetensorError):
            load(whole[:length])


@pytest.mark.parametrize("name", ['a"\\/\b\f\n\r\t\x01', "é€😀", "\x7f\u2028"])
def test_names_are_any_text(name):
    for ascii_only in (True, False):
        text = json.dumps({name: entry()["a"], "__metadata__": {name: name}}, ensure_ascii=ascii_only)
        assert load(forged(text.encode())).keys() == {name}


def test_unaligned_data_is_copied():
    table = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    table["b"] = {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}
    loaded = load(forged(table, b"\7\0\0\x80\x3f"))
    assert loaded["a"].tolist() == [7] and loaded["b"].tolist() == [1.0]
