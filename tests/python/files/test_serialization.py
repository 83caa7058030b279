"""Saving and loading: both ways with PyTorch, shared and trimmed storages, closed lists."""

import collections
import dataclasses
import io
import os
import pickle
import struct
import zipfile

import pytest
from plain_values import plain, saved

import rushlight

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
]


def _round(obj, **kwargs):
    return rushlight.load(saved(rushlight, obj), **kwargs)


def _sample(lib):
    base = lib.arange(24.0).reshape(4, 6)
    return collections.OrderedDict(
        tensors={d: (lib.arange(6) % 2).to(getattr(lib, d)) for d in DTYPES},
        view=base[1:3, ::2],
        transposed=base.t(),
        scalar=lib.tensor(2.5),
        empty=lib.empty(0, 3),
        parameter=lib.nn.Parameter(lib.ones(2)),
        grad=lib.ones(2, requires_grad=True),
        plain=[1, 2.5, "text", None, True, (1, 2), {"a": {3}}, b"bytes", 2**70, 1 + 2j],
        size=lib.Size([2, 3]),
        dtype=lib.float16,
        device=lib.device("cpu"),
        counter=collections.Counter("aab"),
        array=bytearray(b"xyz"),
    )


def _check_sample(lib, found):
    expected = _sample(lib)
    assert list(found) == list(expected)
    for key in ("view", "transposed", "scalar", "parameter", "grad", "empty"):
        assert found[key].tolist() == expected[key].tolist(), key
        assert found[key].shape == expected[key].shape
        assert found[key].stride() == expected[key].stride()
        assert found[key].requires_grad == expected[key].requires_grad
    for name, tensor in found["tensors"].items():
        assert tensor.dtype == getattr(lib, name)
        assert tensor.tolist() == expected["tensors"][name].tolist()
    assert isinstance(found["parameter"], lib.nn.Parameter)
    for key in ("plain", "size", "dtype", "device", "counter", "array"):
        assert found[key] == expected[key] and type(found[key]) is type(expected[key])


def test_round_trip():
    _check_sample(rushlight, _round(_sample(rushlight)))


def test_pytorch_reads_ours(torch):
    _check_sample(torch, torch.load(saved(rushlight, _sample(rushlight))))


def test_we_read_pytorchs(torch):
    _check_sample(rushlight, rushlight.load(saved(torch, _sample(torch))))


@pytest.mark.parametrize("weights_only", [True, False])
def test_we_read_the_old_format(torch, weights_only):
    sample = {k: v for k, v in _sample(torch).items() if k != "empty"}
    sample["tensors"].pop("uint16"), sample["tensors"].pop("uint32"), sample["tensors"].pop("uint64")
    shared = torch.arange(4.0)
    sample["shared"] = [shared, shared[1:]]
    file = saved(torch, sample, _use_new_zipfile_serialization=False)
    found = rushlight.load(file, weights_only=weights_only)
    assert found["view"].tolist() == sample["view"].tolist()
    assert {k: v.tolist() for k, v in found["tensors"].items()} == plain(sample["tensors"])
    a, b = found["shared"]
    b[0] = 9.0
    assert a[1].item() == 9.0


def test_state_dicts_both_ways(torch):
    ours, theirs = rushlight.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    theirs.load_state_dict(torch.load(saved(rushlight, ours.state_dict())))
    assert theirs.weight.tolist() == ours.weight.tolist()
    other = rushlight.nn.Linear(3, 2)
    other.load_state_dict(rushlight.load(saved(torch, theirs.state_dict())))
    assert other.weight.tolist() == ours.weight.tolist()
    assert _round(ours.state_dict())._metadata == ours.state_dict()._metadata


def test_optimizer_state_both_ways(torch):
    for writer, reader in ((rushlight, torch), (torch, rushlight)):
        p, q = writer.nn.Parameter(writer.ones(2)), reader.nn.Parameter(reader.ones(2))
        optimizer = writer.optim.Adam([p], lr=0.1)
        p.grad = writer.ones(2)
        optimizer.step()
        other = reader.optim.Adam([q])
        other.load_state_dict(reader.load(saved(writer, optimizer.state_dict())))
        assert other.param_groups[0]["lr"] == 0.1
        assert other.state[q]["exp_avg"].tolist() == pytest.approx(optimizer.state[p]["exp_avg"].tolist())


def test_whole_modules(torch):
    ours = rushlight.nn.Sequential(rushlight.nn.Linear(2, 3), rushlight.nn.ReLU())
    file = saved(rushlight, ours)
    found = torch.load(file, weights_only=False)
    assert type(found) is torch.nn.Sequential and found[0].weight.tolist() == ours[0].weight.tolist()
    file.seek(0)
    again = rushlight.load(file, weights_only=False)
    assert type(again) is rushlight.nn.Sequential and again[0].weight.tolist() == ours[0].weight.tolist()


# What is stored


def test_a_slice_stores_only_its_own_bytes():
    big = rushlight.arange(100000.0)
    assert len(saved(rushlight, big[5:8]).getvalue()) < 3000
    assert _round(big[5:8]).tolist() == [5.0, 6.0, 7.0]
    assert len(pickle.dumps(big[5:8])) < 3000
    assert pickle.loads(pickle.dumps(big[5:8])).tolist() == [5.0, 6.0, 7.0]


def test_shared_storages_stay_shared_and_trim_to_their_union():
    big = rushlight.arange(100000.0)
    file = saved(rushlight, {"a": big[10:20], "b": big[15:30:5]})
    assert len(file.getvalue()) < 3000
    found = rushlight.load(file)
    assert found["a"].tolist() == list(range(10, 20)) and found["b"].tolist() == [15.0, 20.0, 25.0]
    found["a"][5] = -1.0
    assert found["b"][0].item() == -1.0
    assert found["a"].untyped_storage().nbytes() <= 4 * (26 - 10) + 16


def test_identity_of_objects_is_kept():
    tensor = rushlight.ones(2)
    found = _round([tensor, tensor])
    assert found[0] is found[1]


def test_two_types_on_one_storage_are_refused(torch):
    texts = []
    for lib in (rushlight, torch):
        tensor = lib.arange(4.0)
        with pytest.raises(RuntimeError) as info:
            lib.save([tensor, tensor.view(lib.int32)], io.BytesIO())
        texts.append(str(info.value))
    assert texts[0] == texts[1]


def test_records_are_aligned_and_stored(tmp_path):
    path = tmp_path / "model.pt"
    rushlight.save({"a": rushlight.ones(3), "b": rushlight.ones(5, dtype=rushlight.int8)}, path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert names[0] == "model/data.pkl" and "model/byteorder" in names and "model/version" in names
        for info in archive.infolist():
            name, extra = struct.unpack("<HH", data[info.header_offset + 26 : info.header_offset + 30])
            assert (info.header_offset + 30 + name + extra) % 64 == 0
            assert info.compress_type == zipfile.ZIP_STORED
        assert b"torch._utils\n_rebuild_tensor_v2" in archive.read("model/data.pkl")


# Files


def test_paths_and_file_objects(tmp_path):
    path = tmp_path / "x.pt"
    for target in (path, str(path)):
        rushlight.save(rushlight.ones(2), target)
        assert rushlight.load(target).tolist() == [1.0, 1.0]
    with open(path, "wb") as file:
        file.write(b"before")
        rushlight.save(rushlight.ones(3), file)
    with open(path, "rb") as file:
        file.seek(6)
        assert rushlight.load(file).tolist() == [1.0] * 3

    class Stream:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    stream = Stream()
    rushlight.save(rushlight.ones(2), stream)
    assert rushlight.load(io.BytesIO(stream.data)).tolist() == [1.0, 1.0]


def test_writing_is_atomic(tmp_path):
    path = tmp_path / "x.pt"
    rushlight.save(rushlight.ones(2), path)

    class Unwritable:
        def __reduce__(self):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        rushlight.save([rushlight.ones(2), Unwritable()], path)
    assert rushlight.load(path).tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["x.pt"]
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    rushlight.save(rushlight.zeros(1), link)
    assert link.is_symlink() and rushlight.load(path).tolist() == [0.0]


def test_bad_targets(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        rushlight.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(AttributeError, match="'write' attribute"):
        rushlight.save(1, 3)
    with pytest.raises(FileNotFoundError):
        rushlight.load(tmp_path / "missing.pt")
    with pytest.raises(AttributeError, match="seekable"):
        rushlight.load(3)
    with pytest.raises(IsADirectoryError):
        rushlight.save(1, tmp_path)


def test_mmap(tmp_path):
    path = tmp_path / "x.pt"
    base = rushlight.arange(1000.0)
    rushlight.save({"a": base, "b": base[10:]}, path)
    found = rushlight.load(path, mmap=True)
    assert found["a"].sum().item() == base.sum().item()
    found["a"][10] = -1.0  # a private copy: the file stays
    assert found["b"][0].item() == -1.0
    assert rushlight.load(path)["a"][10].item() == 10.0
    with pytest.raises(ValueError, match="must be a file path"):
        rushlight.load(saved(rushlight, 1), mmap=True)


def test_map_location(torch):
    file = saved(rushlight, rushlight.ones(2)).getvalue()

    def load(where):
        return rushlight.load(io.BytesIO(file), map_location=where)

    assert load("cpu").tolist() == [1.0, 1.0] and load(rushlight.device("cpu")).tolist() == [1.0, 1.0]
    assert load({"cpu": "cpu"}).tolist() == [1.0, 1.0]
    assert load("meta").is_meta and load({"cpu": "meta"}).is_meta
    seen = []
    assert load(lambda storage, location: seen.append((type(storage).__name__, location))).tolist() == [
        1.0,
        1.0,
    ]
    assert seen == [("UntypedStorage", "cpu")]
    with pytest.raises(RuntimeError) as ours:
        load("cuda")
    with pytest.raises(RuntimeError) as theirs:
        torch.load(io.BytesIO(file), map_location="cuda")
    assert str(ours.value) == str(theirs.value)


def test_files_behind_other_bytes(torch):
    for writer, reader in ((torch, rushlight), (rushlight, torch)):
        file = io.BytesIO()
        file.write(b"before")
        writer.save(writer.arange(3), file)
        file.seek(6)
        assert reader.load(file).tolist() == [0, 1, 2]


def test_byte_order(torch):
    big = io.BytesIO()
    with (
        zipfile.ZipFile(saved(rushlight, rushlight.tensor([1.0, 2.5]))) as old,
        zipfile.ZipFile(big, "w") as new,
    ):
        for info in old.infolist():
            data = old.read(info)
            data = b"big" if info.filename.endswith("byteorder") else data
            data = struct.pack(">ff", 1.0, 2.5) if info.filename.endswith("data/0") else data
            new.writestr(info.filename, data)
    big.seek(0)
    assert rushlight.load(big).tolist() == [1.0, 2.5]


# What a file may do


class Point:
    def __init__(self, x=0):
        self.x = x


def test_weights_only_refuses_other_globals():
    file = saved(rushlight, Point(3))
    with pytest.raises(pickle.UnpicklingError) as info:
        rushlight.load(file)
    text = str(info.value)
    assert "Weights only load failed" in text and "Point was not an allowed global by default" in text
    assert "add_safe_globals" in text
    file.seek(0)
    assert rushlight.load(file, weights_only=False).x == 3


def test_safe_globals():
    from rushlight import serialization

    file = saved(rushlight, Point(3)).getvalue()
    with serialization.safe_globals([Point]):
        assert rushlight.load(io.BytesIO(file)).x == 3
        assert serialization.get_safe_globals() == [Point]
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Point, f"{__name__}.Point")])
    assert rushlight.load(io.BytesIO(file)).x == 3
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        rushlight.load(io.BytesIO(file))
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file)) == [f"{__name__}.Point"]


@dataclasses.dataclass(frozen=True)
class Axis:
    dim: int


class Slots:
    __slots__ = ("x",)


def test_safe_objects_that_refuse_attributes():
    slots = Slots()
    slots.x = 4
    file = saved(rushlight, [Axis(3), slots])
    with rushlight.serialization.safe_globals([Axis, Slots]):
        axis, slots = rushlight.load(file)
    assert axis == Axis(3) and slots.x == 4


def test_modules_load_when_allowed():
    file = saved(rushlight, rushlight.nn.Linear(2, 2)).getvalue()
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        rushlight.load(io.BytesIO(file))
    with rushlight.serialization.safe_globals([rushlight.nn.Linear]):
        assert rushlight.load(io.BytesIO(file)).weight.shape == (2, 2)


# Plain pickling and copying


def test_pickle_and_deepcopy():
    import copy

    tensor = rushlight.arange(6.0).reshape(2, 3)
    parameter = rushlight.nn.Parameter(rushlight.ones(2), requires_grad=False)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(tensor.t(), protocol)).tolist() == tensor.t().tolist()
        again = pickle.loads(pickle.dumps(parameter, protocol))
        assert type(again) is rushlight.nn.Parameter and not again.requires_grad
    clone = copy.deepcopy({"a": tensor, "b": tensor[0]})
    assert clone["a"].tolist() == tensor.tolist() and clone["a"].data_ptr() != tensor.data_ptr()


def test_attributes_of_tensors_are_kept():
    tensor = rushlight.ones(2)
    tensor.note = "here"
    assert _round(tensor).note == "here"
    parameter = rushlight.nn.Parameter(rushlight.ones(2))
    parameter.note = [1]
    assert _round(parameter).note == [1]


class Tagged(rushlight.Tensor):
    pass


def test_subclasses_keep_their_type():
    tensor = rushlight.ones(2).as_subclass(Tagged)
    tensor.tag = 5
    found = _round(tensor, weights_only=False)
    assert type(found) is Tagged and found.tag == 5
    with rushlight.serialization.safe_globals([Tagged]):
        assert type(_round(tensor)) is Tagged


def test_storages():
    tensor = rushlight.arange(4, dtype=rushlight.int32)
    storage = tensor.untyped_storage()
    found = _round(storage)
    assert type(found).__name__ == "UntypedStorage" and found.tolist() == storage.tolist()
    assert storage[4] == 1 and len(storage) == 16
    storage[4] = 7
    assert tensor[1].item() == 7
    clone = storage.clone()
    clone.fill_(0)
    assert tensor[1].item() == 7


def test_pickle_module():
    file = saved(rushlight, rushlight.ones(1)).getvalue()
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        rushlight.load(io.BytesIO(file), weights_only=True, pickle_module=pickle)
    assert rushlight.load(io.BytesIO(file), pickle_module=pickle).tolist() == [1.0]
    assert rushlight.load(saved(rushlight, rushlight.ones(1), pickle_protocol=4)).tolist() == [1.0]
