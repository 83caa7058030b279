"""The Open Inference Protocol of rushlight-serve: by JSON, by bytes, by NVIDIA's client, in batches."""

import json
import pathlib
import re
import threading

import numpy
import pytest
from serving import needs_server, serving

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, save_file

pytestmark = needs_server


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, index):
        return self.table(index)


class Types(nn.Module):
    def forward(self, flags, bytes_, half, big):
        return ~flags, bytes_ + 1, half * 2, big + 1


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3), persistent=False)

    def forward(self, x):
        self.total += x
        return self.total.clone()

    def twice(self, x):
        return x * 2


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    rows = ({0: Dim("N", max=64)},)
    mlp = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)).eval()
    save_file(mlp, folder / "mlp.rl", (torch.randn(3, 8),), dynamic_shapes=rows)
    save_file(Lookup().eval(), folder / "lookup.rl", (torch.arange(3),), dynamic_shapes=rows)
    flags, small = torch.tensor([True, False]), torch.ones(2, dtype=torch.uint8)
    save_file(Types().eval(), folder / "types.rl", (flags, small, torch.ones(2).half(), torch.arange(2)))
    counter = Counter().eval()
    both = {"forward": counter, "twice": counter.twice}
    save_file(both, folder / "counter.rl", {name: (torch.zeros(3),) for name in both})
    return folder, mlp


@pytest.fixture(scope="module")
def server(models):
    folder, _ = models
    with serving(*sorted(folder.glob("*.rl"))) as running:
        yield running


def test_metadata_says_what_a_model_takes(server):
    status, about, _ = server.ask("/v2/models/mlp")
    assert status == 200 and about["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 8]}]
    assert server.ask("/v2/models/mlp/versions/1")[1] == about
    assert server.ask("/v2")[1]["name"] == "rushlight-serve"
    assert server.ask("/v2/health/live")[0] == server.ask("/v2/health/ready")[0] == 200
    assert server.ask("/v2/models/mlp/ready")[0] == 200
    assert server.ask("/v2/models/none")[0] == server.ask("/v2/models/mlp/versions/2")[0] == 404


def test_results_are_the_modules(server, models):
    x = torch.randn(3, 8)
    status, answer, _ = server.infer("mlp", ("input", "FP32", [3, 8], x.flatten().tolist()), id="seven")
    assert status == 200 and answer["id"] == "seven" and answer["model_name"] == "mlp"
    (output,) = answer["outputs"]
    assert output["datatype"] == "FP32" and output["shape"] == [3, 5]
    expected = models[1](x).flatten().tolist()
    assert output["data"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    nested = server.infer("mlp", ("input", "FP32", [3, 8], x.tolist()))[1]
    assert nested["outputs"][0]["data"] == output["data"]


def test_tensors_may_be_bytes_behind_the_json(server, models):
    x = numpy.random.default_rng(0).standard_normal((2, 8)).astype("f")
    given = {
        "name": "input",
        "datatype": "FP32",
        "shape": [2, 8],
        "parameters": {"binary_data_size": x.nbytes},
    }
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    length = {"Inference-Header-Content-Length": str(len(head))}
    status, body, headers = server.ask("/v2/models/mlp/infer", head + x.tobytes(), **length)
    assert status == 200
    size = int(headers["Inference-Header-Content-Length"])
    about = json.loads(body[:size])["outputs"][0]
    assert about["parameters"]["binary_data_size"] == len(body) - size == 2 * 5 * 4
    result = numpy.frombuffer(body[size:], "f").reshape(about["shape"])
    expected = models[1](torch.from_numpy(x)).detach().numpy()
    numpy.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_every_type_keeps_its_values(server):
    big = 2**62 + 1
    inputs = [
        ("flags", "BOOL", [2], [True, False]),
        ("bytes_", "UINT8", [2], [0, 254]),
        ("half", "FP16", [2], [1.5, -2]),
        ("big", "INT64", [2], [big, -big]),
    ]
    status, answer, _ = server.infer("types", *inputs)
    assert status == 200, answer
    assert [o["data"] for o in answer["outputs"]] == [
        [False, True],
        [1, 255],
        [3.0, -4.0],
        [big + 1, 1 - big],
    ]
    assert [o["datatype"] for o in answer["outputs"]] == ["BOOL", "UINT8", "FP16", "INT64"]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"name": "x"}, "there is no input 'x'; the model has input"),
        ({"datatype": "FP64"}, "must have the datatype FP32"),
        ({"shape": [1, 9]}, "has 8 elements, but its shape says 9"),
        ({"shape": [8]}, "must be float32[N, 8]"),
        ({"shape": [-1, 8]}, "a size below zero"),
        ({"shape": [2**40, 2**40, 8]}, "too large"),
        ({"shape": "8"}, "no list of whole numbers"),
        ({"data": "12345678"}, "its data is no list"),
        ({"data": [1] * 7 + ["x"]}, "no number"),
        ({"data": [1] * 7 + [1e39]}, "which its type does not"),
        ({"data": [1] * 7 + [[None]]}, "no number"),
        ({"parameters": {"binary_data_size": 32}}, "the body ends before its bytes do"),
        ({"parameters": {"shared_memory_region": "r"}}, "shared memory is not served"),
    ],
)
def test_wrong_inputs_are_one_error(server, change, said):
    good = {"name": "input", "datatype": "FP32", "shape": [1, 8], "data": [0.5] * 8}
    status, answer, _ = server.ask("/v2/models/mlp/infer", {"inputs": [{**good, **change}]})
    assert status == 400 and said in answer["error"] and "\n" not in answer["error"]


@pytest.mark.parametrize(
    "body, said",
    [
        (b"", "ends early"),
        (b"{", "expected a string"),
        (b"[1]", "no list 'inputs'"),
        (b'{"inputs":[]}', "the input 'input' is missing"),
        (b'{"inputs":[{"name":"input","datatype":"FP32","shape":[1,1],"data":[NaN]}]}', "expected a value"),
        (b"[" * 1000, "nested too deep"),
        (b"[[]," + b"[]," * 1_100_000 + b"[]]", "too many values"),
        (b'{"inputs":"\xff"}', "not text"),
    ],
)
def test_wrong_json_is_one_error(server, body, said):
    status, answer, _ = server.ask("/v2/models/mlp/infer", body)
    assert status == 400 and said in answer["error"]


def test_a_model_that_fails_answers_and_goes_on(server):
    for index, expected in (([1, 20], 400), ([1, 2], 200)):
        assert server.infer("lookup", ("index", "INT64", [2], index))[0] == expected


def test_results_that_json_cannot_say_are_an_error(server, models):
    x = [3e38] * 8
    status, answer, _ = server.infer("mlp", ("input", "FP32", [1, 8], x))
    assert status == 406 and "the output 'output'" in answer["error"] and "binary_data" in answer["error"]
    asked = {"name": "output", "parameters": {"binary_data": True}}
    given = {"name": "input", "datatype": "FP32", "shape": [1, 8], "data": x}
    status, answer, _ = server.ask("/v2/models/mlp/infer", {"inputs": [given], "outputs": [asked]})
    assert status == 200 and not numpy.isfinite(numpy.frombuffer(answer[-20:], "f")).all()
    assert server.infer("mlp", ("input", "FP32", [1, 8], [0.5] * 8))[0] == 200


def test_state_begins_anew_with_each_request_and_methods_have_names(server):
    for _ in range(2):
        assert server.infer("counter", ("x", "FP32", [3], [1, 2, 3]))[1]["outputs"][0]["data"] == [1, 2, 3]
    twice = server.infer("counter", ("x", "FP32", [3], [1, 2, 3]), parameters={"method": "twice"})
    assert twice[1]["outputs"][0]["data"] == [2, 4, 6]
    assert server.infer("counter", ("x", "FP32", [3], [1, 2, 3]), parameters={"method": "none"})[0] == 400


def data_of(answer):
    return answer[1]["outputs"][0]["data"]


def many(server, model, requests):
    """The answers to requests of as many clients at once."""
    answers = [None] * len(requests)
    barrier = threading.Barrier(len(requests))

    def ask(i):
        barrier.wait()
        answers[i] = server.infer(model, requests[i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(requests))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answers


def test_requests_share_batches_and_one_that_fails_fails_alone(models):
    folder, _ = models
    with serving(folder / "lookup.rl", "--delay-ms", "300", "--batch", "16") as server:
        requests = [("index", "INT64", [1 + i % 3], [i % 10] * (1 + i % 3)) for i in range(12)]
        requests[5] = ("index", "INT64", [1], [99])
        answers = many(server, "lookup", requests)
        table = {
            i: server.infer("lookup", ("index", "INT64", [1], [i]))[1]["outputs"][0]["data"]
            for i in range(10)
        }
        for i, (status, answer, _) in enumerate(answers):
            assert status == (400 if i == 5 else 200), answer
            if status == 200:
                assert answer["outputs"][0]["shape"] == [1 + i % 3, 4]
                assert answer["outputs"][0]["data"] == table[i % 10] * (1 + i % 3)
        assert server.metric("rushlight_model_failures_total") == 1


def test_a_batch_is_one_run(models):
    folder, module = models
    with serving(folder / "mlp.rl", "--delay-ms", "500", "--batch", "8") as server:
        x = torch.randn(8, 8)
        answers = many(server, "mlp", [("input", "FP32", [1, 8], row.tolist()) for row in x])
        for row, (status, answer, _) in zip(x, answers, strict=True):
            assert status == 200
            expected = module(row[None]).flatten().tolist()
            assert answer["outputs"][0]["data"] == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert server.metric("rushlight_model_rows_total") == 8
        assert server.metric("rushlight_model_batches_total") <= 5


def switches(pid):
    """How often each thread of a process was switched to, by its number."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found[task.name] = sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())))
    return found


@pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="no /proc with threads")
@pytest.mark.parametrize("options, at_most", [((), 2), (("--delay-ms", "0.1"), 3)])
def test_a_quick_request_that_is_alone_wakes_no_other_thread(models, options, at_most):
    """The threads of connections compute it; not where it has to wait for others."""
    count = 200
    with serving(models[0] / "mlp.rl", "--log", "none", *options) as server:
        connection = server.connect()
        tensor = {"name": "input", "datatype": "FP32", "shape": [1, 8], "data": [1.0] * 8}
        body = json.dumps({"inputs": [tensor]}).encode()

        def ask():
            connection.request("POST", "/v2/models/mlp/infer", body)
            return json.loads(connection.getresponse().read())["outputs"][0]["data"]

        first = [ask() for _ in range(10)][0]
        before = switches(server.process.pid)
        answers = [ask() for _ in range(count)]
        after = switches(server.process.pid)
        connection.close()
        assert answers == [first] * count
        busy = [thread for thread in after if after[thread] - before.get(thread, 0) >= count // 2]
        assert len(busy) <= at_most and (not options or len(busy) == at_most), (before, after)


def test_requests_computed_on_either_thread_keep_apart(models):
    """Alone or beside others, as it happens: each client gets its own rows."""
    folder, mlp = models
    xs = [torch.randn(1, 8) for _ in range(4)]
    expected = [mlp(x).flatten().tolist() for x in xs]
    wrong = []

    def ask(server, i):
        for _ in range(60):
            status, answer, _ = server.infer("mlp", ("input", "FP32", [1, 8], xs[i].flatten().tolist()))
            found = answer["outputs"][0]["data"] if status == 200 else []
            if found != pytest.approx(expected[i], rel=1e-5, abs=1e-6):
                wrong.append((i, status, answer))

    with serving(folder / "mlp.rl", "--log", "none") as server:
        ask(server, 0)
        threads = [threading.Thread(target=ask, args=(server, i)) for i in range(len(xs))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
        assert server.metric("rushlight_model_requests_total") == 60 * (1 + len(xs))


def test_the_client_of_nvidia_talks_to_it(server, models):
    client_library = pytest.importorskip("tritonclient.http")
    client = client_library.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=4)
    try:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("mlp", "1")
        assert client.get_model_metadata("mlp")["outputs"] == [
            {"name": "output", "datatype": "FP32", "shape": [-1, 5]}
        ]
        config = client.get_model_config("mlp", "1")
        assert config["input"] == [{"name": "input", "data_type": "TYPE_FP32", "dims": [-1, 8]}]
        assert config["output"][0]["dims"] == [-1, 5] and config["max_batch_size"] == 0
        assert "model_configuration" in client.get_server_metadata()["extensions"]
        with pytest.raises(Exception, match="there is no model 'none'"):
            client.get_model_config("none")
        assert {m["name"] for m in client.get_model_repository_index()} == {
            "mlp",
            "lookup",
            "types",
            "counter",
        }
        x = numpy.random.default_rng(0).standard_normal((2, 8)).astype("f")
        expected = models[1](torch.from_numpy(x)).detach().numpy()
        for given in (True, False):
            for wanted in (True, False, None):
                tensor = client_library.InferInput("input", x.shape, "FP32")
                tensor.set_data_from_numpy(x, binary_data=given)
                outputs = None
                if wanted is not None:
                    outputs = [client_library.InferRequestedOutput("output", binary_data=wanted)]
                result = client.infer("mlp", [tensor], outputs=outputs, request_id="r", timeout=5_000_000)
                numpy.testing.assert_allclose(result.as_numpy("output"), expected, rtol=1e-5, atol=1e-6)
                assert result.get_response()["id"] == "r"
        with pytest.raises(Exception, match="there is no model 'none'"):
            client.infer("none", [tensor])
        assert client.get_inference_statistics("mlp")["model_stats"][0]["inference_count"] >= 12
    finally:
        client.close()
