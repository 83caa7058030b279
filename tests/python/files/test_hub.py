"""Models by URL and from folders; the server is this process, on the loopback interface."""

import hashlib
import http.server
import threading

import pytest

import rushlight
from rushlight import hub


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder and the address under which it is served; downloads go beside it."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_hub_dir", None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_state_dict_from_url(served, tmp_path):
    folder, address = served
    state = {"w": rushlight.arange(3.0)}
    rushlight.save(state, folder / "model.pth")
    digest = hashlib.sha256((folder / "model.pth").read_bytes()).hexdigest()
    name = f"model-{digest[:8]}.pth"
    (folder / "model.pth").rename(folder / name)
    loaded = hub.load_state_dict_from_url(f"{address}/{name}", progress=False, check_hash=True)
    assert loaded["w"].tolist() == [0, 1, 2]
    assert (tmp_path / "home/hub/checkpoints" / name).exists()
    (folder / name).unlink()  # now it comes from the cache
    assert hub.load_state_dict_from_url(f"{address}/{name}", progress=False)["w"].tolist() == [0, 1, 2]


def test_a_wrong_hash_leaves_no_file(served, tmp_path):
    folder, address = served
    (folder / "data-0000.bin").write_bytes(b"anything")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(f"{address}/data-0000.bin", tmp_path / "x.bin", "0000", progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["served"]


def test_a_folder_with_hubconf(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['rushlight']\n"
        "import rushlight\n"
        "def double(n, *, out=2):\n"
        "    'A layer of n.'\n"
        "    return rushlight.nn.Linear(n, out)\n"
        "def _hidden(): pass\n"
    )
    assert "double" in hub.list(tmp_path, source="local")
    assert "_hidden" not in hub.list(tmp_path, source="local")
    assert hub.help(tmp_path, "double", source="local") == "A layer of n."
    assert hub.load(str(tmp_path), "double", 3, source="local", out=5).weight.shape == (5, 3)
    with pytest.raises(RuntimeError, match="Cannot find callable triple in hubconf"):
        hub.load(str(tmp_path), "triple", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(tmp_path), "double", source="nowhere")


def test_missing_dependencies_are_named(tmp_path):
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.list(str(tmp_path), source="local")
