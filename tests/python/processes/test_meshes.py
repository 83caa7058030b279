"""Meshes of processes: slices, flattened dimensions, and what is refused."""

import backend_programs
import pytest

import rushlight as rl
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.distributed.device_mesh import DeviceMesh

pytestmark = pytest.mark.timeout(180)


def test_a_mesh_without_groups_knows_its_ranks():
    mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b"), _init_backend=False, _rank=2)
    assert mesh.mesh.dtype is rl.int32 and mesh.get_coordinate() == [1, 0]
    assert mesh["b"].mesh.tolist() == [2, 3] and mesh["b", "a"].mesh.tolist() == [[0, 2], [1, 3]]
    with pytest.raises(RuntimeError, match="DeviceMesh process groups not initialized!"):
        mesh.get_group("a")


def test_meshes_are_cut_where_tensors_are_fake():
    with FakeTensorMode():
        mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b"), _init_backend=False, _rank=3)
        assert mesh.get_coordinate() == [1, 1] and mesh["a"].mesh.tolist() == [1, 3]


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
def test_flattened_dimensions_are_names_of_slices(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    mp.spawn(backend_programs.flattened, args=(4, str(tmp_path / "store")), nprocs=4)
