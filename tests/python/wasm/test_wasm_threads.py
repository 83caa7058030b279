"""The WebAssembly module with threads: the same numbers, and an error where memory cannot be shared."""

import functools
import http.server
import subprocess
import sys
import threading

import numpy as np
import pytest
from chromium import PROGRAM, Page
from javascript import MODULE, needs_node, node

import rushlight as torch
from rushlight import nn
from rushlight.export import save_file

pytestmark = [
    *needs_node,
    pytest.mark.skipif(
        not (MODULE / "rushlight-threads.wasm").exists(), reason="no rushlight-threads.wasm (./dev wasm)"
    ),
]
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "m.rl"
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.Flatten(), nn.LazyLinear(9)
    )
    x = torch.randn(4, 3, 64, 64)
    net(x)
    save_file(net.eval(), path, (x,))
    return path


def test_results_are_those_of_one_thread(model):
    """Models, pointwise operators, sums, products, sorting and a backward pass, to the last bit."""
    (found,) = node(
        """
        const all = [];
        for (const threads of [1, 2, 4]) {
          const rl = await init({ threads }), given = [];
          rl.manualSeed(1);
          const x = rl.randn(4, 3, 64, 64), model = await rl.fetchModel(process.argv[1]);
          for (let i = 0; i < 20; ++i) given.push(model.run(x).output.sum().item());
          const a = rl.randn(300, 400).requiresGrad(), big = rl.randn(700, 1000);
          a.matmul(a.transpose(0, 1)).tanh().mean().backward();
          given.push(a.grad.sum().item(), big.sum().item(), big.softmax(1).max().item(), rl.threads);
          given.push(...rl.call("sort", big)[0].data().slice(0, 9));
          all.push(given);
          rl.close();
        }
        give(all);
        """,
        model,
    )
    threads = [given.pop(23) for given in found]
    assert threads == [1, 2, 4] and found[0] == found[1] == found[2]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("threads", [1, 3])
def test_workers_take_their_share(threads):
    """Threads that computed at least a fifth of what the busiest one did, once all code is compiled."""
    (found,) = node(
        """
        const { readdirSync } = await import("node:fs");
        const used = () => new Map(readdirSync("/proc/self/task").map((id) => {
          const fields = readFileSync(`/proc/self/task/${id}/stat`, "utf8").split(") ")[1].split(" ");
          return [id, Number(fields[11])]; }));
        const rl = await init({ threads: Number(process.argv[1]) });
        const x = rl.randn(512, 1024), w = rl.randn(1024, 1024);
        const work = (times) => { for (let i = 0; i < times; ++i) x.matmul(w).dispose(); };
        work(20);
        await new Promise((done) => setTimeout(done, 500));
        const before = used();
        work(40);
        const spent = Array.from(used(), ([id, ticks]) => ticks - (before.get(id) ?? 0));
        give(spent.filter((ticks) => ticks > Math.max(...spent) / 5).length);
        rl.close();
        """,
        threads,
    )
    assert found == threads


def test_memory_that_workers_made_grow_is_seen(model):
    (found,) = node(
        """
        const rl = await init({ threads: 2 }), before = rl.memoryBytes, kept = [];
        for (let i = 0; i < 6; ++i) kept.push(rl.ones(1 << 24).add(i));
        give([rl.memoryBytes - before >= 6 * 2 ** 26, ...kept.map((t) => t.data()[(1 << 24) - 1])]);
        give(refused(() => { for (;;) kept.push(rl.zeros(1 << 28)); }));
        rl.close();
        """
    )[:1]
    assert found == [True, 1, 2, 3, 4, 5, 6]


def test_the_program_for_node_takes_threads(model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 3, 64, 64), np.float32))
    words = ["node", MODULE / "run.js", model, "--input", tmp_path / "x.npy"]
    for threads in "12":
        given = [*words, "--threads", threads, "--output", tmp_path / f"y{threads}.npy"]
        done = subprocess.run(given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "y1.npy").read_bytes() == (tmp_path / "y2.npy").read_bytes()
    done = subprocess.run([*words, "--threads", "many"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--threads needs a number" in done.stderr


def test_a_closed_instance_tells_so():
    """Its workers end, else Node would not; what it held is of no more use."""
    (found,) = node(
        """
        const rl = await init({ threads: 3 }), x = rl.randn(300, 300);
        x.matmul(x);
        rl.close();
        give(refused(() => x.add(1)));
        """
    )
    assert found[0] == "stopped" and "closed" in found[1]


def test_what_cannot_have_threads_is_told():
    found = node(
        """
        const told = (options) => init(options).then(() => ["none", ""], (e) => [e.kind, e.message]);
        give(await told({ threads: 0 }));
        give(await told({ threads: 1.5 }));
        """
    )
    assert [kind for kind, _ in found] == ["value", "value"]
    without = """
    delete globalThis.SharedArrayBuffer;
    const { init: again } = await import(process.argv[1]);
    give(await again({ threads: 2 }).then(() => ["none", ""], (e) => [e.kind, e.message]));
    give((await again()).ones(3).sum().item());
    """
    found = node(without, (MODULE / "rushlight.js").as_uri() + "?again")
    assert found[0][0] == "engine" and "Cross-Origin-Opener-Policy" in found[0][1] and found[1] == 3


class _Handler(http.server.SimpleHTTPRequestHandler):
    headers_to_add = {}
    extensions_map = {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        "": "text/html",
    }

    def end_headers(self):
        for name, value in self.headers_to_add.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.skipif(not PROGRAM, reason="no Chromium (apt install chromium, or RUSHLIGHT_CHROMIUM)")
@pytest.mark.parametrize("headers", [ISOLATED, {}], ids=["isolated", "not isolated"])
def test_a_page_with_and_without_isolation(tmp_path, headers):
    site = tmp_path / "site"
    site.mkdir()
    (site / "rushlight").symlink_to(MODULE)
    (site / "index.html").write_text(
        """<!doctype html><title>threads</title><script type="module">
        import { init, canShareMemory } from "./rushlight/rushlight.js";
        const told = await init({ threads: 2 }).then(
          (rl) => ["ran", String(rl.randn(300, 300).matmul(rl.zeros(300, 300)).sum().item())],
          (e) => [e.kind, e.message]);
        const one = (await init()).ones(5).sum().item();
        globalThis.told = JSON.stringify([canShareMemory, ...told, one]);
        </script>"""
    )
    handler = type("Handler", (_Handler,), {"headers_to_add": headers})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Page(f"http://127.0.0.1:{server.server_address[1]}/", tmp_path / "profile") as page:
            told = page.wait_for("globalThis.told")
        server.shutdown()
    if headers:
        assert told == '[true,"ran","0",5]'
    else:
        assert told.startswith('[false,"engine","threads need memory') and told.endswith(",5]")
