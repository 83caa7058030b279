"""The recipe of docs/serving.md for KServe, as it stands there, on that package."""

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn, serve
from rushlight.export import Dim, save_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "serving.md").read_text()
CONTAINERS = PAGE[PAGE.index("## In containers") :]
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
            pytest.skip(f"{name}: not installed (pip install kserve)")


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
