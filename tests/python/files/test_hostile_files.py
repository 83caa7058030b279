"""Damaged and hostile files: false claims, truncations, changed bytes. Each is an error, never a crash."""

import collections
import gzip
import io
import pickle
import struct
import zipfile

import numpy
import pytest
from plain_values import saved

import rushlight


def _archive(pickled, **records):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", b"3\n")
        for name, data in records.items():
            archive.writestr("archive/" + name.replace("_", "/"), data)
    file.seek(0)
    return file


def _rebuild(numel, offset, size, stride, kind="FloatStorage", key="0"):
    """A pickle of one tensor with the given claims."""
    p = pickle
    out = io.BytesIO()

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            return obj.id if isinstance(obj, _Storage) else None

        def save_global(self, obj, name=None):
            self.write(p.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)

        def reducer_override(self, obj):
            return obj.name if isinstance(obj, _Global) else NotImplemented

    class _Global:
        def __init__(self, module, name):
            self.module, self.name = module, name

        def __call__(self, *args):
            raise AssertionError

    class _Storage:
        id = ("storage", _Global("torch", kind), key, "cpu", numel)

    class _Tensor:
        def __reduce__(self):
            function = _Global("torch._utils", "_rebuild_tensor_v2")
            return function, (_Storage(), offset, size, stride, False, collections.OrderedDict())

    class Ordered(Pickler):
        def save_global(self, obj, name=None):
            if obj is collections.OrderedDict:
                self.write(p.GLOBAL + b"collections\nOrderedDict\n")
                self.memoize(obj)
            else:
                super().save_global(obj, name)

        dispatch = dict(pickle._Pickler.dispatch)

    Ordered.dispatch[type] = lambda self, obj: Ordered.save_global(self, obj)
    Ordered(out, 2).dump(_Tensor())
    return out.getvalue()


def test_the_forged_pickle_is_otherwise_good():
    file = _archive(_rebuild(2, 0, (2,), (1,)), data_0=struct.pack("<ff", 1, 2))
    assert rushlight.load(file).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "claims",
    [
        (3, 0, (3,), (1,)),  # more elements than the record holds
        (2, 0, (3,), (1,)),  # more than the storage holds
        (2, 1, (2,), (1,)),
        (2, -1, (2,), (1,)),
        (2, 0, (2,), (-1,)),
        (2, 0, (-2,), (1,)),
        (2, 0, (2**62, 4), (1, 1)),
        (2, 0, (2,), (2**62,)),
        (2, 0, (2,), (1, 1)),
        (2, 0, ("a",), (1,)),
        (-2, 0, (2,), (1,)),
        (2**60, 0, (2,), (1,)),
        ("2", 0, (2,), (1,)),
        (2, 0, (2,), (1,), "NoStorage"),
        (2, 0, (2,), (1,), "FloatStorage", "../0"),
        (2, 0, (2,), (1,), "FloatStorage", "9"),
    ],
)
def test_false_claims_are_refused(claims):
    file = _archive(_rebuild(*claims), data_0=struct.pack("<ff", 1, 2))
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        rushlight.load(file)


ATTACKS = {
    "system": b"cos\nsystem\n(\x8c\x04truetR.",
    "eval": b"cbuiltins\neval\n(\x8c\x011tR.",
    "getattr": b"c__builtin__\ngetattr\n(c__builtin__\nset\n\x8c\x09__class__tR.",
    "inst": b"(\x8c\x04trueios\nsystem\n.",
    "obj": b"(cos\nsystem\n\x8c\x04trueo.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    "submodule": b"ctorch.os\nsystem\n(\x8c\x04truetR.",
    "dotted": b"\x80\x04\x8c\x05torch\x8c\x0bos.path.sep\x93.",
    "call of a string": b"\x8c\x01x(tR.",
    "call of a dtype": b"ctorch\nfloat32\n(tR.",
    "call of a storage class": b"ctorch\nFloatStorage\n(\x8a\x06\x00\x10\xa5\xd4\xe8\x00tR.",
    "length of a bytearray": b"cbuiltins\nbytearray\n(\x8a\x06\x00\x10\xa5\xd4\xe8\x00tR.",
    "build of a class": b"ccollections\nCounter\n}\x8c\x06updateNsb.",
    "build of a function": b"ctorch._utils\n_rebuild_tensor_v2\n}\x8c\x08__code__Nsb.",
    "build of slots": b"ccollections\nOrderedDict\n(tRN}\x8c\x01xK\x01s\x86b.",
    "new object": b"ccollections\nCounter\n)\x81.",
    "items of a type": b"ctorch\nfloat32\nK\x01K\x02s.",
    "append to a type": b"ctorch\nfloat32\nK\x01a.",
    "add to a list": b"](K\x01\x90.",
    "extension": b"\x82\x01.",
    "persistent text": b"Pabc\n.",
    "text of protocol 0": b"S'x'\n.",
    "persistent": b"\x8c\x03abcQ.",
    "persistent tuple": b"(\x8c\x06module\x8c\x01xtQ.",
    "codec": b"c_codecs\nencode\n(\x8c\x01a\x8c\x04idnatR.",
    "rebuild with another function": b"ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nCounter\n"
    b"ccollections\nCounter\n(t}tR.",
    "rebuild of another type": b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_parameter\n"
    b"ccollections\nCounter\n(t}tR.",
    "pop of nothing": b"0.",
    "pop below a mark": b"]N(s.",
    "mark without a beginning": b"]K\x01e.",
    "key without a value": b"}(K\x01u.",
    "missing memo": b"h\x05.",
    "unhashable key": b"}]K\x01s.",
    "protocol": b"\x80\x63N.",
    "unknown opcode": b"\xff.",
    "big text": b"X\xff\xff\xff\x7fabc",
    "bytearray8": b"\x96\xff\xff\xff\xff\xff\xff\xff\x00abc",
    "nothing": b"",
    "no stop": b"N",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_pickles_are_refused(name):
    with pytest.raises(pickle.UnpicklingError):
        rushlight.load(_archive(ATTACKS[name]))


def test_compressed_and_encrypted_records_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"N." + b" " * 10000)
    file.seek(0)
    with pytest.raises(RuntimeError, match="compressed"):
        rushlight.load(file)


def test_records_that_share_bytes_are_refused():
    data = bytearray(saved(rushlight, [rushlight.arange(8.0), rushlight.ones(8)]).getvalue())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        first, second = (archive.getinfo(f"archive/data/{n}").header_offset for n in (0, 1))
    at = data.index(struct.pack("<I", second), data.index(b"PK\1\2"))
    data[at : at + 4] = struct.pack("<I", first)
    with pytest.raises(RuntimeError, match="into another record"):
        rushlight.load(io.BytesIO(data))


@pytest.mark.parametrize("depth", [1000, 300000])
def test_depth_is_no_fault(depth):
    found = rushlight.load(_archive(b"]" * depth + b"a" * (depth - 1) + b"."))
    while found:
        (found,) = found
        depth -= 1
    assert depth == 1


def test_every_truncation_is_an_error(tmp_path):
    data = saved(
        rushlight, {"a": rushlight.arange(100.0), "b": rushlight.nn.Parameter(rushlight.ones(3))}
    ).getvalue()
    for length in [*range(0, 60), *range(60, len(data), 37)]:
        path = tmp_path / "cut.pt"
        path.write_bytes(data[:length])
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)) as info:
            rushlight.load(path)
        assert "cut.pt" in str(info.value), length


def test_every_truncation_of_the_old_format_is_an_error(torch, tmp_path):
    sample = {"a": torch.arange(20.0), "b": [torch.ones(3)] * 2}
    data = saved(torch, sample, _use_new_zipfile_serialization=False).getvalue()
    for length in range(0, len(data), 5):
        path = tmp_path / "cut.pt"
        path.write_bytes(data[:length])
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)) as info:
            rushlight.load(path)
        assert "cut.pt" in str(info.value), length


def test_flipped_bytes_never_crash(tmp_path):
    import random

    data = saved(
        rushlight, {"a": rushlight.arange(8.0), "b": rushlight.nn.Parameter(rushlight.ones(3))}
    ).getvalue()
    random.seed(0)
    refused = 0
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(random.randint(1, 4)):
            broken[random.randrange(len(broken))] = random.randrange(256)
        try:
            rushlight.load(io.BytesIO(bytes(broken)))
        except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, NotImplementedError):
            refused += 1
    assert refused > 100  # others changed names and padding


def test_a_changed_byte_of_data_is_noticed():
    data = bytearray(saved(rushlight, rushlight.full((16,), 7.0)).getvalue())
    at = bytes(data).find(struct.pack("<f", 7.0) * 4)
    data[at] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        rushlight.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    "content, what",
    [
        (b"some notes\n", "it is text, and begins with b'some notes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        (b"<!DOCTYPE html><html>not found</html>", "a web page"),
        (b'{"lr": 0.1}', "read it with json.load"),
        (gzip.compress(b"weights", mtime=0), "torch.load(gzip.open(path))"),
        (b"\x93NUMPY\x01\x00", "numpy.load"),
        (b"\x89HDF\r\n\x1a\n", "h5py"),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (bytes(64), "it begins with b'\\x00"),
        (b"\x80\x02\xff\xfe", None),
        (pickle.dumps(numpy.ones(3)), None),
        (pickle.dumps({"a": 1}), "Invalid magic number"),
    ],
)
def test_files_of_others_are_named(content, what, weights_only):
    """Nothing that is no checkpoint is said to load if code of the file may run."""
    with pytest.raises((pickle.UnpicklingError, RuntimeError)) as caught:
        rushlight.load(io.BytesIO(content), weights_only=weights_only)
    if what is None and b"numpy" not in content:  # a pickle by its first bytes alone
        what = "no pickle" if weights_only else "invalid load key"
    if what is None:  # refused for what it names, or for being no checkpoint
        what = "not an allowed global" if weights_only else "Invalid magic number"
        assert what in str(caught.value)
    else:
        said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert what in said and "weights_only" not in said


def test_attacks_are_not_advised_to_run():
    with pytest.raises(pickle.UnpicklingError, match="as attacks do") as caught:
        rushlight.load(io.BytesIO(b"\x80\x02cos\nsystem\n."))
    assert "set to `False`" not in str(caught.value)
