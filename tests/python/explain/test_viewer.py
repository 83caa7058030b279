"""The pages that show profiles, in a real browser: they draw what was recorded and answer keys and mouse."""

import json
import re

import browser
import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.profiler import profile, record_function

INK = """
function ink(canvas) {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < pixels.length; i += 4) colours.add(pixels.slice(i, i + 3).join());
  return colours.size;
}
"""


@pytest.fixture(scope="module")
def recorded():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 64)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as prof:
        for _ in range(2):
            optimizer.zero_grad()
            with record_function("</script><b>forward"):
                loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
    return prof


@pytest.fixture
def page(recorded, tmp_path):
    recorded.export_html(tmp_path / "page.html", title="a <run>")
    return tmp_path / "page.html"


def events_of(page):
    data = re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1]
    return json.loads(data)


def test_the_trace_is_drawn(page, recorded, tmp_path):
    body, text = browser.body_of(
        page, tmp_path, script=INK + "document.body.dataset.ink = ink($('#trace canvas'));"
    )
    assert body["ready"] == "yes" and body["tab"] == "trace"
    assert int(body["events"]) == int(body["drawn"]) == len(recorded.events())
    assert int(body["threads"]) == 1 and int(body["arrows"]) > 5
    assert int(body["ink"]) > 20  # colours on the canvas
    assert "<title>a &lt;run&gt;</title>" in text and "<b>forward" not in text.split("</style>")[1]


def test_it_needs_nothing_else(page):
    text = page.read_text()
    assert not re.search(r"(src|href)=\"(?!data:)", text) and "import(" not in text and "fetch(" not in text


def test_search_details_and_arrows(page, tmp_path):
    body, text = browser.body_of(page, tmp_path, "#search=aten::addmm")
    assert body["found"] == "4" and body["selected"] == "aten::addmm"
    assert "4 found" in text and "Input Dims" in text and "test_viewer.py" in text
    assert "backward: AddmmBackward0" in text
    assert int(body["arrows"]) == 1  # of the selected event


def test_keys_and_mouse(page, tmp_path):
    script = """
    const canvas = $("#trace canvas"), view = page.trace, seen = [];
    const key = (k) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
    const note = () => {
      view.drawNow();
      seen.push([view.to - view.from, view.from, Number(document.body.dataset.drawn)]);
    };
    note(); key("w"); key("w"); note(); key("d"); note(); key("0"); note();
    const turn = { deltaY: -400, clientX: 300, clientY: 200, bubbles: true };
    canvas.dispatchEvent(new WheelEvent("wheel", turn)); note();
    const target = page.model.events.find((e) => e.name === "AddmmBackward0");
    key("0"); view.drawNow();
    const box = canvas.getBoundingClientRect();
    const middle = (target.start + target.end) / 2;
    const at = { clientX: box.left + view.x(middle), clientY: box.top + view.y(target) + 8,
                 pointerId: 1, bubbles: true };
    canvas.setPointerCapture = () => {};
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    document.body.dataset.tip = $("#tip").textContent;
    canvas.dispatchEvent(new PointerEvent("pointerdown", at));
    canvas.dispatchEvent(new PointerEvent("pointerup", at));
    key("f"); note();
    document.body.dataset.seen = JSON.stringify(seen);
    document.body.dataset.lasts = target.duration;
    $("#theme").click();
    document.body.dataset.theme = document.documentElement.dataset.theme;
    """
    body, _ = browser.body_of(page, tmp_path, "#theme=light", script)
    whole, zoomed, moved, again, wheel, fitted = json.loads(body["seen"])
    assert zoomed[0] == pytest.approx(whole[0] * 0.49) and zoomed[2] < whole[2]
    assert moved[1] > zoomed[1] and moved[0] == pytest.approx(zoomed[0])
    assert again == whole and wheel[0] < whole[0]
    assert body["tip"].startswith("AddmmBackward0") and body["selected"] == "AddmmBackward0"
    assert fitted[0] == pytest.approx(1.2 * float(body["lasts"]), rel=1e-3)
    assert body["theme"] == "dark"


def test_operators_are_summed_and_sorted(page, recorded, tmp_path):
    script = """
    document.querySelectorAll("#operators th")[1].click();
    document.body.dataset.most = document.querySelector("#operators tbody tr").cells[1].textContent;
    document.body.dataset.rows = document.querySelectorAll("#operators tbody tr").length;
    """
    body, _ = browser.body_of(page, tmp_path, "#tab=operators", script)
    sums = recorded.key_averages()
    assert body["tab"] == "operators"
    assert int(body["rows"]) == len({total.key for total in sums})
    assert int(body["most"]) == max(total.count for total in sums)


def test_memory_is_drawn(page, recorded, tmp_path):
    script = INK + "document.body.dataset.ink = ink($('#memory canvas'));"
    body, text = browser.body_of(page, tmp_path, "#tab=memory", script)
    assert body["tab"] == "memory" and int(body["ink"]) > 5
    assert int(body["steps"]) > 20 and int(body["alive"]) > 4
    for category in ("parameter", "activation", "gradient", "optimizer state"):
        assert f">{category}, at most" in text
    assert "1 (ReLU)" in text  # the module that made a block


def test_a_memory_timeline_is_a_page_of_its_own(recorded, tmp_path):
    recorded.export_memory_timeline(str(tmp_path / "memory.html"))
    body, text = browser.body_of(tmp_path / "memory.html", tmp_path)
    assert body["tab"] == "memory" and body["events"] == "0" and int(body["steps"]) > 20


def test_traces_of_files(recorded, tmp_path):
    for name in ("trace.json", "trace.json.gz"):
        recorded.export_chrome_trace(str(tmp_path / name))
        viz.trace(tmp_path / name, tmp_path / "page.html")
        body, text = browser.body_of(tmp_path / "page.html", tmp_path)
        assert int(body["drawn"]) == len(recorded.events())
        assert f"<title>{name}</title>" in text


def test_traces_of_pytorch(tmp_path):
    oracle = pytest.importorskip("torch")
    x = oracle.randn(8, 8, requires_grad=True)
    with oracle.profiler.profile() as prof:
        (x @ x).sum().backward()
    prof.export_chrome_trace(str(tmp_path / "theirs.json"))
    viz.trace(tmp_path / "theirs.json", tmp_path / "page.html")
    body, text = browser.body_of(tmp_path / "page.html", tmp_path, "#search=aten::mm")
    assert int(body["events"]) >= len(prof.events()) and int(body["found"]) == 3
