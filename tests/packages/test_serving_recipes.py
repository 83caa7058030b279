"""The recipes of docs/serving.md for Ray Serve and KServe, as they stand there, on these packages."""

import asyncio
import importlib.util
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn, serve
from rushlight.export import Dim, save_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "serving.md").read_text()
CONTAINERS = PAGE[PAGE.index("## In containers") :]
MODEL = "/models/digits.rl"  # where the recipes have it
SECONDS = 240
pytestmark = [
    pytest.mark.skipif(not os.path.exists(serve.PROGRAM), reason="rushlight-serve is not built here"),
    pytest.mark.timeout(SECONDS + 60),
]


def recipe(language):
    return re.search(rf"^```{language}\n(.*?)^```$", CONTAINERS, re.M | re.S)[1]


def needs(*names):
    """Skips where a package is not installed, or is not whole."""
    for name in names:
        try:
            there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            pytest.skip(f"{name}: not installed (pip install 'ray[serve]' kserve)")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    module = nn.Linear(4, 3).eval()
    path = tmp_path_factory.mktemp("models") / "digits.rl"
    save_file(module, path, (torch.ones(2, 4),), dynamic_shapes=({0: Dim("N", max=8)},))
    return module, path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# What the page leaves to `serve run`: it starts the application and asks it, some requests at once.
ASK = """
import asyncio, json, sys
import httpx, ray
from ray import serve as ray_serve
from digits import app

ray.init(num_cpus=4, include_dashboard=False, object_store_memory=10**8)
ray_serve.start(http_options={"port": int(sys.argv[1])})
ray_serve.run(app)
rows = [[[i, 1, 2, 3]] for i in range(16)]

async def ask(client, row):
    body = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 4], "data": row[0]}]}
    answer = await client.post("/", json=body)
    answer.raise_for_status()
    return answer.json()["outputs"][0]["data"]

async def all_of_them():
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{sys.argv[1]}", timeout=120) as client:
        return await asyncio.gather(*(ask(client, row) for row in rows))

print("ANSWERS", json.dumps(asyncio.run(all_of_them())), flush=True)
ray_serve.shutdown()
ray.shutdown()
"""


def test_ray_serve(model, tmp_path):
    needs("ray.serve", "httpx")
    module, path = model
    text = recipe("python")
    assert text.count(f'"{MODEL}"') == 1
    (tmp_path / "digits.py").write_text(text.replace(MODEL, str(path)))
    (tmp_path / "ask.py").write_text(ASK)
    short = tempfile.mkdtemp(prefix="rl", dir="/tmp")  # paths of sockets have at most 107 letters
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "RAY_TMPDIR": short,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_raylet_start_wait_time_s": "150",
        "RAY_memory_monitor_refresh_ms": "0",  # a full machine is no reason to end workers
    }
    words = [sys.executable, tmp_path / "ask.py", str(free_port())]
    try:
        done = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
        )
    finally:
        shutil.rmtree(short, ignore_errors=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    answers = json.loads(re.search(r"^ANSWERS (.*)$", done.stdout, re.M)[1])
    rows = torch.tensor([[i, 1.0, 2, 3] for i in range(16)])
    assert torch.allclose(torch.tensor(answers), module(rows), atol=1e-5)
    until = time.monotonic() + 20
    while (left := servers_of(path.name, short)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left, "servers outlived their replicas"


def servers_of(name, text):
    """Numbers of the servers in whose environment there is a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().startswith("rushlight-serv"):
                if text.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        except OSError:
            pass  # it has ended, or is another user's
    return found


def test_the_manifests_are_what_kserve_knows():
    """Each field of the recipe is one of KServe's own classes, by its name and type."""
    needs("kserve", "yaml")
    import kserve
    import yaml

    kinds = {
        "ServingRuntime": kserve.V1alpha1ServingRuntime,
        "InferenceService": kserve.V1beta1InferenceService,
    }
    documents = list(yaml.safe_load_all(recipe("yaml")))
    assert [document["kind"] for document in documents] == list(kinds)
    for document in documents:
        assert unknown_fields(document, kinds[document["kind"]]) == []
    assert documents[0]["apiVersion"] == "serving.kserve.io/v1alpha1"
    assert documents[1]["apiVersion"] == "serving.kserve.io/v1beta1"


def unknown_fields(value, kind, place=""):
    """Paths of what a manifest has and a class of KServe's or Kubernetes' lacks."""
    import kserve
    from kubernetes import client

    if isinstance(kind, str):
        if found := re.fullmatch(r"[Ll]ist\[(.*)\]", kind):
            assert isinstance(value, list), place
            return [
                path
                for i, item in enumerate(value)
                for path in unknown_fields(item, found[1], f"{place}[{i}]")
            ]
        plain = {"str": str, "bool": bool, "int": int, "float": (int, float), "object": object}
        if kind in plain or kind.lower().startswith(("dict", "resourcequantity")):
            assert isinstance(value, plain.get(kind, object)), f"{place} is no {kind}"
            return []
        kind = getattr(kserve, kind, None) or getattr(kserve.models, kind, None) or getattr(client, kind)
    names = {kind.attribute_map[name]: of for name, of in kind.openapi_types.items()}
    wrong = [f"{place}.{name}" for name in value if name not in names]
    for name in value.keys() & names.keys():
        wrong += unknown_fields(value[name], names[name], f"{place}.{name}")
    return wrong


def test_kserves_client_talks_to_its_container(model):
    """The server with the arguments of the manifest, as KServe fills them in, asked by its own client."""
    needs("kserve", "yaml", "numpy")
    import kserve
    import numpy
    import yaml

    runtime, service = yaml.safe_load_all(recipe("yaml"))
    (container,) = runtime["spec"]["containers"]
    module, path = model
    name, port = service["metadata"]["name"], str(free_port())
    filled = [
        word.replace("{{.Name}}", name).replace("/mnt/models/model.rl", str(path))
        for word in container["args"]
    ]
    filled[filled.index("--port") + 1] = port
    process = subprocess.Popen([serve.PROGRAM, *filled, "--log", "none"], stdout=subprocess.PIPE, text=True)
    try:
        assert "://" in process.stdout.readline()
        rows = numpy.arange(8, dtype="f").reshape(2, 4)
        expected = module(torch.from_numpy(rows)).detach().numpy()
        for binary in (False, True):
            answer = asyncio.run(ask_by_kserve(kserve, f"http://127.0.0.1:{port}", name, rows, binary))
            numpy.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


async def ask_by_kserve(kserve, url, name, rows, binary):
    client = kserve.InferenceRESTClient(kserve.inference_client.RESTConfig(protocol="v2", retries=1))
    try:
        assert await client.is_server_live(url) and await client.is_server_ready(url)
        assert await client.is_model_ready(url, name)
        tensor = kserve.InferInput("input", list(rows.shape), "FP32")
        tensor.set_data_from_numpy(rows, binary_data=binary)
        answer = await client.infer(url, kserve.InferRequest(name, [tensor]), model_name=name)
        return answer.outputs[0].as_numpy()
    finally:
        await client.close()
