"""Distributed checkpoints as safetensors files."""

import json
from datetime import timedelta

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight import safetensors
from rushlight._command.names import is_aliased
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint import _consolidate_hf_safetensors as consolidate
from rushlight.distributed.device_mesh import init_device_mesh
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

STATE = {
    "a": torch.arange(12.0).reshape(3, 4),
    "b": torch.tensor(7),
    "c": torch.ones(0, 2, dtype=torch.bfloat16),
}


def _load(folder, like):
    blank = {name: torch.zeros_like(value) for name, value in like.items()}
    dcp.load(blank, storage_reader=dcp.HuggingFaceStorageReader(str(folder)), no_dist=True)
    return blank


def _same(found, wanted):
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].dtype is value.dtype and found[name].equal(value), name


def _save(folder, state=STATE, **options):
    writer = dcp.HuggingFaceStorageWriter(str(folder), **options)
    return dcp.save(dict(state), storage_writer=writer, no_dist=True)


def test_one_file(tmp_path):
    _save(tmp_path)
    _same(safetensors.load_file(tmp_path / "model-00001-of-00001.safetensors"), STATE)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 12 * 4 + 8}
    assert set(index["weight_map"]) == set(STATE)
    _same(_load(tmp_path, STATE), STATE)


def test_several_files(tmp_path):
    _save(tmp_path, fqn_to_index_mapping={"a": 2, "b": 1, "c": 2})
    _same(safetensors.load_file(tmp_path / "model-00002-of-00002.safetensors"), {k: STATE[k] for k in "ac"})
    _same(_load(tmp_path, STATE), STATE)
    with pytest.raises(dcp.CheckpointException, match="names no file for b"):
        _save(tmp_path, fqn_to_index_mapping={"a": 1, "c": 1})


def test_files_of_others(tmp_path):
    safetensors.save_file(STATE, tmp_path / "model.safetensors")
    _same(_load(tmp_path, STATE), STATE)


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="hold tensors only, and step is none"):
        _save(tmp_path, {"a": torch.ones(2), "step": 3})
    with pytest.raises(dcp.CheckpointException, match="which the format has not"):
        _save(tmp_path, {"a": torch.ones(2, dtype=torch.complex128)})


def _parts(folder, begins, parts):
    for number, (begin, part) in enumerate(zip(begins, parts)):
        meta = {"DCP_SHARDING_INFO": json.dumps({"a": {"saved_offsets": begin}})}
        safetensors.save_file({"a": part}, folder / f"shard-{number}.safetensors", meta)


@pytest.mark.parametrize(
    "begins, words",
    [
        ([[0], [2]], "cannot begin at"),
        ([[0, 0], [-1, 0]], "cannot begin at"),
        ([[0, 0], [2, "x"]], "cannot begin at"),
        ([[0, 0], [0, 0]], "holds a"),
        (["no", [0, 0]], "cannot begin at"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, begins, words):
    _parts(tmp_path, begins, [torch.ones(2, 3), torch.ones(2, 3)])
    with pytest.raises(dcp.CheckpointException, match=words):
        _load(tmp_path, {"a": torch.ones(4, 3)})


def test_parts_put_together(tmp_path):
    whole = torch.arange(24).reshape(4, 6)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    corners = [[0, 0], [0, 2], [3, 0], [3, 2]]
    _parts(tmp_path / "in", corners, [whole[:3, :2], whole[:3, 2:], whole[3:, :2], whole[3:, 2:]])
    consolidate.consolidate_safetensors_files(str(tmp_path / "in"), str(tmp_path / "out"), {"a": 1})
    found = safetensors.load_file(tmp_path / "out" / "model-00001-of-00001.safetensors")
    assert found["a"].equal(whole)
    _same(_load(tmp_path / "in", {"a": whole}), {"a": whole})
    (tmp_path / "in" / "shard-3.safetensors").unlink()
    with pytest.raises(dcp.CheckpointException, match="its parts hold 20 elements"):
        consolidate.consolidate_safetensors_files(str(tmp_path / "in"), str(tmp_path / "out"), {"a": 1})
    with pytest.raises(dcp.CheckpointException, match="holds no part of z"):
        consolidate.consolidate_safetensors_files(str(tmp_path / "in"), str(tmp_path / "out"), {"z": 1})


def _rank(rank, store, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    mesh = init_device_mesh("cpu", (2,))
    whole = torch.arange(30.0).reshape(6, 5)
    state = {
        "rows": distribute_tensor(whole, mesh, [Shard(0)]),
        "columns": distribute_tensor(whole, mesh, [Shard(1)]),
        "all": distribute_tensor(whole, mesh, [Replicate()]),
    }
    options = {"save_distributed": True, "enable_consolidation": True}
    writer = dcp.HuggingFaceStorageWriter(folder, {"rows": 1, "columns": 2, "all": 1}, **options)
    dcp.save(state, storage_writer=writer)
    for place in (folder, f"{folder}/sharded"):
        blank = {
            name: DTensor.from_local(torch.zeros_like(value.to_local()), mesh, value.placements)
            for name, value in state.items()
        }
        # Columns have unequal parts, so the shape is told.
        blank["columns"] = distribute_tensor(torch.zeros(6, 5), mesh, [Shard(1)])
        dcp.load(blank, storage_reader=dcp.HuggingFaceStorageReader(place))
        assert all(value.full_tensor().equal(whole) for value in blank.values())
    consolidate.consolidate_safetensors_files_on_every_rank(
        f"{folder}/sharded", f"{folder}/again", {"rows": 1, "columns": 2, "all": 3}
    )
    dist.destroy_process_group()


def test_parts_of_ranks(tmp_path):
    (tmp_path / "model" / "again").mkdir(parents=True)
    mp.spawn(_rank, args=(str(tmp_path / "store"), str(tmp_path / "model")), nprocs=2)
    whole = torch.arange(30.0).reshape(6, 5)
    for place, count in (("", 2), ("again", 3)):
        folder = tmp_path / "model" / place
        files = sorted(folder.glob("*.safetensors"))
        names = [f"model-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
        assert [file.name for file in files] == names
        found = {name: value for file in files for name, value in safetensors.load_file(file).items()}
        _same(found, dict.fromkeys(("rows", "columns", "all"), whole))
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert index["metadata"] == {"total_size": 360}


def test_both_ways_with_pytorch(tmp_path):
    if is_aliased():
        pytest.skip("PyTorch has its name here")
    pytorch = pytest.importorskip("torch")
    pytest.importorskip("safetensors.torch", exc_type=ImportError)
    theirs = pytest.importorskip("torch.distributed.checkpoint")
    state = {"a": pytorch.arange(12.0).reshape(3, 4), "b": pytorch.ones(2, dtype=pytorch.int64)}
    _save(tmp_path / "ours", {name: torch.from_numpy(value.numpy()) for name, value in state.items()})
    blank = {name: pytorch.zeros_like(value) for name, value in state.items()}
    reader = theirs.HuggingFaceStorageReader(str(tmp_path / "ours"))
    theirs.load(blank, storage_reader=reader, no_dist=True)
    assert all(blank[name].equal(value) for name, value in state.items())
    writer = theirs.HuggingFaceStorageWriter(str(tmp_path / "theirs"), save_distributed=True)
    theirs.save(dict(state), storage_writer=writer, no_dist=True)
    blank = {name: torch.from_numpy(value.numpy()) for name, value in state.items()}
    ours = _load(tmp_path / "theirs", blank)
    assert all((ours[name].numpy() == value.numpy()).all() for name, value in state.items())
