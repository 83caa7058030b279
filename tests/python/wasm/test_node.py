"""The WebAssembly module in Node: models and training give what Python gives, bad input is an error."""

import gzip
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from javascript import MODULE, needs_node, node

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, load_file, save_file

pytestmark = needs_node


class Mixed(nn.Module):
    """Convolutions of all kinds that kernels tell apart, a product, pooling, attention over pixels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.wide = nn.Conv2d(16, 40, 1)
        self.mix = nn.MultiheadAttention(40, 4, batch_first=True)
        self.last = nn.Linear(40, 7)

    def forward(self, images):
        x = torch.relu(self.norm(self.first(images)))
        x = torch.nn.functional.relu6(self.depthwise(x))
        x = torch.nn.functional.max_pool2d(self.wide(x), 2).flatten(2).transpose(1, 2)
        x = x + self.mix(x, x, x, need_weights=False)[0]
        return torch.softmax(self.last(torch.nn.functional.gelu(x)).mean(1), 1)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "mixed.rl"
    images = torch.randn(2, 3, 20, 20)
    save_file(Mixed().eval(), path, (images,), dynamic_shapes={"images": {0: Dim("N", max=8)}})
    return path, images, load_file(path)(images)


def test_what_a_page_loads_is_small():
    files = [MODULE / "rushlight.wasm", *MODULE.glob("*.js"), *MODULE.glob("*.mjs")]
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) <= 4e6


def test_a_model_gives_what_python_gives(mixed, tmp_path):
    path, images, expected = mixed
    images.numpy().tofile(tmp_path / "x")
    described, found, again = node(
        """
        const rl = await init();
        const model = await rl.fetchModel(process.argv[1]);
        give({ methods: model.methods, inputs: model.inputs, outputs: model.outputs });
        const bytes = new Uint8Array(readFileSync(process.argv[2]));
        const numbers = new Float32Array(bytes.buffer);
        const x = rl.tensor(numbers, [2, 3, 20, 20]);
        const { output } = model.run({ images: x });
        give({ dtype: output.dtype, shape: output.shape, data: Array.from(output.data()) });
        give(Array.from(model.run(x).output.data()));
        """,
        path,
        tmp_path / "x",
    )
    assert described["methods"] == ["forward"]
    assert described["inputs"] == [
        {"name": "images", "type": "float32[N, 3, 20, 20]", "dtype": "float32", "sizes": [-1, 3, 20, 20]}
    ]
    assert found["dtype"] == "float32" and found["shape"] == [2, 7] and again == found["data"]
    torch.testing.assert_close(torch.tensor(found["data"]).view(2, 7), expected, rtol=1e-4, atol=1e-5)


def test_the_program_for_node(mixed, tmp_path):
    path, images, expected = mixed
    np.save(tmp_path / "x.npy", images.numpy())
    words = ["node", MODULE / "run.js", path, "--input", f"images={tmp_path / 'x.npy'}"]
    done = subprocess.run([*words, "--output", tmp_path / "y.npy"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    torch.testing.assert_close(torch.from_numpy(np.load(tmp_path / "y.npy")), expected, rtol=1e-4, atol=1e-5)
    done = subprocess.run(["node", MODULE / "run.js", path], capture_output=True, text=True)
    assert "input images: float32[N, 3, 20, 20]" in done.stdout
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-4])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "it should have 9600 bytes" in done.stderr


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def add(self, x):
        self.total += x
        return self.total * 1

    def mean(self):
        return self.total.mean()


def test_sessions_have_their_own_state(tmp_path):
    counter = Counter()
    methods = {"add": counter.add, "mean": counter.mean}
    save_file(methods, tmp_path / "c.rl", {"add": (torch.ones(3),), "mean": ()})
    (found,) = node(
        """
        const rl = await init(), model = await rl.fetchModel(process.argv[1]);
        const one = model.session(), x = new Float32Array([1, 2, 6]);
        one.run("add", x);
        const other = one.clone();
        other.run("add", x);
        const mean = (s) => Object.values(s.run("mean"))[0].item();
        const means = [mean(one), mean(other)];
        one.reset();
        give([...means, mean(one), refused(() => model.run(x))[1]]);
        """,
        tmp_path / "c.rl",
    )
    assert found[:3] == [3, 6, 0] and "run it in a session" in found[3]


TRAINING = """
const rl = await init();
const { nn } = rl;
const net = nn.sequential(nn.linear(2, 8), nn.tanh(), nn.linear(8, 1));
const values = JSON.parse(process.argv[1]);
net.loadStateDict(Object.fromEntries(Object.entries(values).map(
  ([name, [shape, data]]) => [name, { shape, data: Float32Array.from(data), dtype: "float32" }])));
const x = rl.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), y = rl.tensor([[0], [1], [1], [0]]);
const optimizer = rl.optim.adamW(net.parameters(), { lr: 0.05, betas: [0.8, 0.99], weightDecay: 0.1 });
const losses = [];
for (let step = 0; step < 30; ++step)
  losses.push(rl.tidy(() => {
    const loss = nn.mseLoss(net.forward(x), y);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss.item();
  }));
give(losses);
"""


def test_training_goes_as_in_python():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    state = {name: [list(t.shape), t.flatten().tolist()] for name, t in net.state_dict().items()}
    (found,) = node(TRAINING, json.dumps(state))
    x, y = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), torch.tensor([[0.0], [1], [1], [0]])
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05, betas=(0.8, 0.99), weight_decay=0.1)
    losses = []
    for _ in range(30):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert found[-1] < 0.5 * found[0]
    np.testing.assert_allclose(found, losses, rtol=2e-4)


def test_random_numbers_are_the_baselines_of_python():
    (found,) = node("const rl = await init(); rl.manualSeed(7); give(rl.rand(5).tolist());")
    program = "import rushlight as torch; torch.manual_seed(7); print(torch.rand(5).tolist())"
    variables = {**os.environ, "RUSHLIGHT_CPU_CAPABILITY": "baseline"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables)
    assert found == json.loads(done.stdout)


def test_tensors_come_and_go_with_their_types():
    (found,) = node(
        """
        const rl = await init(), out = {};
        for (const [name, data] of Object.entries({
          float32: new Float32Array([1.5, -2]), float64: new Float64Array([0.1, 1e300]),
          int8: new Int8Array([-8, 7]), uint8: new Uint8Array([0, 255]), int16: new Int16Array([-300, 300]),
          int32: new Int32Array([-70000, 1]), int64: new BigInt64Array([-1n, 2n ** 62n]) }))
          out[name] = [rl.tensor(data).dtype, Array.from(rl.tensor(data).add(0).data(), String)];
        out.nested = rl.tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist();
        out.bool = [rl.tensor([1, 2]).gt(1).dtype, Array.from(rl.tensor([1, 2]).gt(1).data())];
        out.several = rl.call("topk", rl.tensor([1, 3, 2]), 2).map((t) => Array.from(t.data(), Number));
        out.cat = rl.call("cat", [rl.tensor([1]), rl.tensor([2])]).tolist();
        out.half = rl.call("_to_copy", rl.tensor([1, 2]), rl.dtype("float16")).dtype;
        const before = rl.memoryBytes;
        for (let i = 0; i < 200; ++i) rl.tidy(() => rl.zeros(1024, 1024).add(1).sum().item());
        out.growth = rl.memoryBytes - before;
        give(out);
        """
    )
    assert found["float32"] == ["float32", ["1.5", "-2"]] and found["float64"] == [
        "float64",
        ["0.1", "1e+300"],
    ]
    assert found["int64"] == ["int64", ["-1", str(2**62)]] and found["int8"] == ["int8", ["-8", "7"]]
    assert found["uint8"] == ["uint8", ["0", "255"]] and found["int16"] == ["int16", ["-300", "300"]]
    assert found["nested"] == [[1, 3], [2, 4]] and found["bool"] == ["bool", [0, 1]]
    assert found["several"] == [[3, 2], [1, 2]] and found["cat"] == [1, 2] and found["half"] == "float16"
    assert found["growth"] < 64e6


def test_damaged_models_are_errors(mixed, tmp_path):
    whole = mixed[0].read_bytes()
    (tmp_path / "cut.rl").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "none.rl").write_bytes(b"<!doctype html>" * 9)
    # The version stands behind the eight bytes by which a model is known.
    (tmp_path / "version.rl").write_bytes(whole[:8] + struct.pack("<I", 99) + whole[12:])
    middle = len(whole) * 3 // 4
    (tmp_path / "changed.rl").write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    names = ["cut", "none", "version", "changed"]
    (found,) = node(
        """
        const rl = await init();
        const told = process.argv.slice(1).map((path) => refused(() => rl.loadModel(readFileSync(path))));
        told.push(refused(() => rl.loadModel(new Uint8Array(0))));
        const missing = await rl.fetchModel("no/such/file.rl").catch((e) => [e.kind, e.message]);
        give([...told, missing]);
        """,
        *(tmp_path / f"{name}.rl" for name in names),
    )
    reasons = ["cut short", "not a file that", "version", "damaged", "cut short", "cannot read"]
    for (kind, message), reason in zip(found, reasons, strict=True):
        assert kind in ("runtime", "network") and reason in message, message


def test_wrong_arguments_are_errors(mixed):
    (found,) = node(
        """
        const rl = await init(), model = await rl.fetchModel(process.argv[1]);
        const t = rl.tensor([1, 2]);
        const gone = rl.tensor([1]);
        gone.dispose();
        give([
          refused(() => model.run(rl.zeros(2, 3, 21, 20))), refused(() => model.run({ pictures: t })),
          refused(() => model.run([t, t])), refused(() => rl.call("no_such_operator", t)),
          refused(() => t.matmul(rl.zeros(3, 3))), refused(() => rl.tensor([[1, 2], [3]])),
          refused(() => rl.tensor(new Float32Array(5), [2, 3])), refused(() => gone.add(1)),
          refused(() => rl.nn.linear(3)), refused(() => rl.nn.linear(3, 4, { depth: 2 })),
          refused(() => rl.optim.sgd([], { lr: 1 })), refused(() => t.backward()),
        ]);
        """,
        mixed[0],
    )
    reasons = [
        "images",
        "no input 'pictures'",
        "takes 1 inputs",
        "no operator 'no_such_operator'",
        "cannot be multiplied",
    ]
    reasons += ["differ in length", "take 6", "disposed", "needs out_features", "no option 'depth'", "empty"]
    reasons += ["grad"]
    for (kind, message), reason in zip(found, reasons, strict=True):
        assert kind not in ("", "none", "stopped") and reason in message, (reason, kind, message)


def test_too_little_memory_is_an_error():
    """One tensor that 32 bits cannot name, and more than there are; afterwards everything works."""
    found = node(
        """
        const rl = await init();
        const kept = [];
        give(refused(() => rl.zeros(1 << 16, 1 << 16)));
        give(refused(() => { for (;;) kept.push(rl.zeros(1 << 28)); }));
        give(kept.length);
        for (const t of kept) t.dispose();
        give(rl.ones(1 << 20).sum().item());
        """
    )
    assert "overflowed" in found[0][1] or "memory" in found[0][1]
    assert "memory" in found[1][1] and 1 <= found[2] <= 4 and found[3] == 2**20


def test_blocks_go_back_whole():
    """Blocks of some size are mappings, of which Emscripten takes back no part."""
    script = """
    const rl = await init();
    for (const megabytes of [600, 700, 800, 900]) rl.call("zeros", [megabytes * 2 ** 18]).dispose();
    give(rl.memoryBytes / 2 ** 20);
    """
    assert 900 < node(script)[0] < 2048


def test_engines_that_lack_something_are_told(tmp_path):
    copy = tmp_path / "module"
    shutil.copytree(MODULE, copy)
    (copy / "rushlight.wasm").write_bytes((MODULE / "rushlight.wasm").read_bytes()[:100_000])
    script = "give(await init().then(() => null, (e) => [e.kind, e.message]));"
    ((kind, message),) = node(script, module=copy)
    assert kind == "engine" and "cut short" in message
    old = "const ask = WebAssembly.validate; WebAssembly.validate = (b) => b.length < 31 && ask(b);"
    ((kind, message),) = node(old + script)
    assert kind == "engine" and "no vectors (SIMD)" in message
    ((kind, message),) = node("delete globalThis.WebAssembly;" + script)
    assert kind == "engine" and "no WebAssembly" in message
