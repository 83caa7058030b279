"""Distributed checkpoints with planners and storages of one's own."""

import io
import pickle
import tracemalloc

import checkpoint_programs as programs
import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint import _index_file as index_file
from rushlight.distributed.checkpoint import planner as planners

INDEX = "torch.distributed.checkpoint.metadata"


def _state():
    return {"w": torch.rand(3, 4), "deep": {"b": torch.arange(5), "note": "text", "list": [torch.ones(2), 7]}}


def _blank():
    return {
        "w": torch.zeros(3, 4),
        "deep": {"b": torch.zeros(5).long(), "note": "", "list": [torch.zeros(2), 0]},
    }


def _same(a, b):
    assert a["w"].equal(b["w"]) and a["deep"]["b"].equal(b["deep"]["b"])
    assert a["deep"]["note"] == b["deep"]["note"] and a["deep"]["list"][0].equal(b["deep"]["list"][0])


def test_a_storage_of_ones_own():
    contents, state, loaded = {}, _state(), _blank()
    writer = programs.Memory(contents)
    index = dcp.save(state, storage_writer=writer, no_dist=True)
    assert index is contents["index"] and set(index.state_dict_metadata) >= {"w", "deep.b", "deep.note"}
    assert writer.asked == ["reset", "set up True", "local", "global 1"]
    reader = programs.Memory(contents)
    dcp.load(loaded, storage_reader=reader, no_dist=True)
    _same(loaded, state)
    assert reader.asked == ["reset", "local", "global 1"]
    for base in (dcp.StorageWriter, dcp.StorageReader, dcp.SavePlanner, dcp.LoadPlanner):
        with pytest.raises(TypeError, match="abstract"):
            base()


def test_planners_of_ones_own(tmp_path):
    state, loaded = _state(), _blank()
    dcp.save(state, checkpoint_id=tmp_path, planner=programs.Halves(), no_dist=True)
    dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert loaded["w"].equal(state["w"].half().float()) and not loaded["w"].equal(state["w"])
    twice = {"w": torch.zeros(3, 4)}
    dcp.load(twice, checkpoint_id=tmp_path, planner=programs.Doubles(), no_dist=True)
    assert twice["w"].equal(2 * loaded["w"])
    dcp.save(
        {"x": torch.ones(2)}, checkpoint_id=tmp_path / "renamed", planner=programs.Renames(), no_dist=True
    )
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: x"):
        dcp.load({"x": torch.ones(2)}, checkpoint_id=tmp_path / "renamed", no_dist=True)


def test_plans_say_what_is_read_and_written(tmp_path):
    saver = dcp.DefaultSavePlanner()
    saver.set_up_planner(_state())
    plan = saver.create_local_plan()
    kinds = {item.index.fqn: item.type for item in plan.items}
    assert (
        kinds["w"] is planners.WriteItemType.TENSOR and kinds["deep.note"] is planners.WriteItemType.BYTE_IO
    )
    assert next(i for i in plan.items if i.index.fqn == "w").tensor_storage_size() == 48
    (plan,), metadata = saver.create_global_plan([plan])
    loader = dcp.DefaultLoadPlanner()
    loader.set_up_planner({"w": torch.zeros(3, 4)}, metadata)
    (item,) = loader.create_local_plan().items
    assert item.dest_offsets == item.storage_offsets == torch.Size([0, 0]) and item.lengths == torch.Size(
        [3, 4]
    )
    assert loader.resolve_tensor(item).shape == (3, 4)


def test_single_values_have_files_of_their_own(tmp_path):
    writer = dcp.FileSystemWriter(tmp_path, single_file_per_rank=False)
    dcp.save(_state(), storage_writer=writer, no_dist=True)
    assert len(list(tmp_path.glob("__0_*.distcp"))) == 5


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
@pytest.mark.timeout(120)
def test_several_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(programs.together, args=(2, str(tmp_path / "store")), nprocs=2)


def test_an_index_of_an_older_python(tmp_path, monkeypatch):
    """Python 3.11 before 3.11.4 writes a member of an enumeration as what getattr gives; no more is read."""
    kind = index_file.m._MEM_FORMAT_ENCODING
    written = lambda self, protocol: (getattr, (type(self), self._name_))
    monkeypatch.setattr(kind, "__reduce_ex__", written)
    state = {"a": torch.arange(3)}
    dcp.save(state, checkpoint_id=tmp_path, no_dist=True)
    assert b"getattr" in (tmp_path / ".metadata").read_bytes()
    loaded = {"a": torch.zeros(3, dtype=torch.int64)}
    dcp.load(loaded, checkpoint_id=tmp_path, no_dist=True)
    assert loaded["a"].tolist() == [0, 1, 2]
    monkeypatch.undo()
    for asked in ((torch.Size, "__reduce_ex__"), (kind, "__class__"), (kind, "mro")):
        pickled = (
            b"\x80\x04cbuiltins\ngetattr\nc"
            + (b"torch\nSize\n" if asked[0] is torch.Size else f"{INDEX}\n{kind.__name__}\n".encode())
            + bytes([0x8C, len(asked[1])])
            + asked[1].encode()
            + b"\x86R."
        )
        with pytest.raises(pickle.UnpicklingError, match="asks for an attribute"):
            index_file.load(io.BytesIO(pickled))


def test_an_index_claims_no_more_memory_than_it_is_long():
    """Python's own unpickler keeps the memo in an array as long as its largest number: 20 GB and more."""
    for claim in (b"r" + (2**31).to_bytes(4, "little"), b"\x96" + (2**34).to_bytes(8, "little")):
        tracemalloc.start()
        with pytest.raises(pickle.UnpicklingError):
            index_file.load(io.BytesIO(b"\x80\x04N" + claim + b"."))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


def test_a_part_of_a_checkpoint_is_read_by_its_names(tmp_path):
    from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys as read

    model = {"w": torch.ones(2), "b": torch.zeros(1)}
    dcp.save({"model": model, "step": 3}, checkpoint_id=tmp_path, no_dist=True)
    whole = read(checkpoint_id=tmp_path)
    assert whole["step"] == 3 and whole["model"].keys() == model.keys()
    part = read("model", checkpoint_id=tmp_path)
    assert list(part) == ["model"] and part["model"]["w"].tolist() == [1.0, 1.0]
    assert read({"model.b", "step"}, checkpoint_id=tmp_path) == {"model": {"b": torch.zeros(1)}, "step": 3}
    with pytest.raises(dcp.CheckpointException):
        read("model")


def test_errors_are_those_of_checkpoints_and_what_they_are(tmp_path):
    """One `except CheckpointException` catches all that fails, and programs that ask for the kind go on."""
    dcp.save({"a": torch.ones(3)}, checkpoint_id=tmp_path / "whole", no_dist=True)
    cases = {
        RuntimeError: lambda: dcp.load({"b": torch.ones(3)}, checkpoint_id=tmp_path / "whole", no_dist=True),
        ValueError: lambda: dcp.load({"a": torch.ones(4)}, checkpoint_id=tmp_path / "whole", no_dist=True),
        pickle.PicklingError: lambda: dcp.save(
            {"a": lambda: 0}, checkpoint_id=tmp_path / "other", no_dist=True
        ),
    }
    for kind, run in cases.items():
        with pytest.raises(dcp.CheckpointException) as caught:
            run()
        assert isinstance(caught.value, kind) and type(caught.value.__cause__) is kind
        ((rank, (error, place)),) = caught.value.failures.items()
        assert rank == 0 and error is caught.value.__cause__ and place
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is dcp.CheckpointException and str(again) == str(caught.value)
    with pytest.raises(dcp.CheckpointException, match="no complete checkpoint") as caught:
        dcp.load({}, checkpoint_id=tmp_path / "nowhere", no_dist=True)
    assert caught.value.failures[0][0] is caught.value
