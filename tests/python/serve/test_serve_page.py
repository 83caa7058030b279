"""The page of rushlight-serve in a browser: models, the form, live figures."""

import json
import re
import subprocess
import urllib.request

import browser
import pytest
from serving import needs_server

import rushlight as torch
from rushlight import nn, serve
from rushlight.export import Dim

pytestmark = needs_server


@pytest.fixture(scope="module")
def server():
    torch.manual_seed(0)
    module = nn.Linear(3, 2).eval()
    options = {"dynamic_shapes": ({0: Dim("N", max=8)},), "log": "none", "name": "a<b>&'\""}
    with serve.Server(module, (torch.zeros(2, 3),), **options) as running:
        yield running


def page_of(server):
    with urllib.request.urlopen(server.url, timeout=60) as answer:
        return answer.read().decode(), answer.headers


def test_the_page_needs_nothing_from_elsewhere(server):
    text, headers = page_of(server)
    assert not re.search(r"(?:src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)|@import", text)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert len(text) < 20_000


def test_its_script_is_one_that_a_parser_takes(server, tmp_path):
    node = browser.shutil.which("node")
    if node is None:
        pytest.skip("no node to parse the script with")
    script = tmp_path / "page.js"
    script.write_text(re.search(r"<script>(.*)</script>", page_of(server)[0], re.DOTALL)[1])
    done = subprocess.run([node, "--check", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Stands for a browser as far as the page needs one: what it does with the document is kept as plain objects.
DOCUMENT = """
class Node {
  constructor(kind) {
    Object.assign(this, {kind, children: [], dataset: {}, style: {}, value: "", attributes: {}});
  }
  append(...more) { this.children.push(...more); }
  setAttribute(name, value) { this.attributes[name] = value; }
  all() { return [this, ...this.children.flatMap(c => c.all())]; }
  find(test) { return this.all().filter(test); }
}
const byId = {};
globalThis.document = {
  createElement: kind => new Node(kind), createElementNS: (_, kind) => new Node(kind),
  getElementById: id => byId[id] ??= new Node(id),
};
const asked = globalThis.fetch;
globalThis.fetch = (path, options) => asked(BASE + "/" + path, options);
"""
ACTIONS = """
const wait = ms => new Promise(done => setTimeout(done, ms));
(async () => {
  const models = document.getElementById("models");
  for (let i = 0; i < 200 && !models.children.length; ++i) await wait(50);
  const form = models.find(n => n.kind === "form")[0];
  form.onsubmit({preventDefault() {}});
  const answer = models.find(n => n.kind === "pre")[0];
  for (let i = 0; i < 200 && !answer.textContent; ++i) await wait(50);
  const good = answer.textContent;
  models.find(n => n.kind === "textarea")[0].value = '{"shape": [1, 9], "data": [1]}';
  answer.textContent = "";
  form.onsubmit({preventDefault() {}});
  for (let i = 0; i < 200 && !answer.textContent; ++i) await wait(50);
  await wait(2500);
  console.log(JSON.stringify({
    good, bad: answer.textContent, kind: answer.className, server: byId.server.textContent,
    title: models.find(n => n.kind === "h2")[0].textContent,
    curves: models.find(n => n.kind === "polyline").map(n => n.attributes.points),
    counts: models.find(n => n.kind === "small").map(n => n.textContent).join("|"),
  }));
  process.exit(0);
})();
"""


def test_its_script_shows_the_models_and_asks_them(server, tmp_path):
    """The script against the real server, on a document of a few lines: no browser is needed for that."""
    node = browser.shutil.which("node")
    if node is None:
        pytest.skip("no node to run the script with")
    page = re.search(r"<script>(.*)</script>", page_of(server)[0], re.DOTALL)[1]
    script = tmp_path / "page.mjs"
    script.write_text(
        DOCUMENT.replace("BASE", json.dumps(server.url)) + page.replace('"use strict";', "") + ACTIONS
    )
    done = subprocess.run([node, script], capture_output=True, text=True, timeout=120)
    if "fetch is not defined" in done.stderr or "options) => undefined" in done.stderr:
        pytest.skip("this node has no fetch")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["title"] == "a<b>&'\"" and seen["good"].startswith("output: FP32[1, 2]\n[")
    assert seen["kind"] == "bad" and "has 1 elements, but its shape says 9" in seen["bad"]
    assert "connections" in seen["server"] and "1 requests, 0 failed" in seen["counts"]
    assert len(seen["curves"]) == 3 and all(points.count(",") >= 2 for points in seen["curves"])


def test_it_shows_in_a_browser(server, tmp_path):
    program = browser.find()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=6000"]
    options += [f"--user-data-dir={tmp_path / 'browser'}", "--window-size=1280,800"]
    done = subprocess.run([program, *options, server.url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "<h2>a&lt;b&gt;&amp;'\"</h2>" in done.stdout and "polyline" in done.stdout
    assert "asking the server" not in done.stdout
