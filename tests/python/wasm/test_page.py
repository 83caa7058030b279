"""examples/browser in headless Chromium: it trains, reads a drawn digit, and classifies a picture."""

import importlib.util
import threading

import pytest
from chromium import PROGRAM, Page
from javascript import EXAMPLE, MODULE, needs_node

pytestmark = [
    *needs_node,
    pytest.mark.skipif(not PROGRAM, reason="no Chromium (apt install chromium, or RUSHLIGHT_CHROMIUM)"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("browser_example", EXAMPLE / "serve.py")
    example = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        spec.loader.exec_module(example)
    folder = tmp_path_factory.mktemp("site")
    example.write_site(folder, MODULE)
    with example.make_server(folder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", folder
        server.shutdown()


def test_the_page(address, tmp_path):
    with Page(address[0], tmp_path) as page:
        page.wait_for("document.getElementById('train')?.disabled === false")
        page.evaluate("document.getElementById('train').click()")
        page.wait_for("document.getElementById('progress').textContent")
        page.wait_for("document.getElementById('state').dataset.trained", seconds=300)
        assert float(page.evaluate("document.getElementById('progress').dataset.accuracy")) >= 0.98
        # The curve is there: some pixels have its colours.
        ink = """(() => { const c = document.getElementById('curve');
          const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
          let loss = 0, accuracy = 0;
          for (let i = 0; i < p.length; i += 4) {
            loss += p[i + 3] > 128 && p[i] > 150 && p[i + 2] < 80;
            accuracy += p[i + 3] > 128 && p[i] < 80 && p[i + 2] > 120; }
          return [loss, accuracy]; })()"""
        loss, accuracy = page.evaluate(ink)
        assert loss > 100 and accuracy > 100

        box = "JSON.stringify(document.getElementById('pad').getBoundingClientRect())"
        page.evaluate("document.getElementById('pad').scrollIntoView({block: 'center'})")
        x, y = (page.evaluate(f"JSON.parse({box}).{side}") for side in "xy")
        oval = [
            (80, 20),
            (110, 35),
            (120, 80),
            (110, 125),
            (80, 140),
            (50, 125),
            (40, 80),
            (50, 35),
            (80, 20),
        ]
        page.stroke([(x + u, y + v) for u, v in oval])
        assert page.wait_for("document.getElementById('digit').dataset.digit") == "0"
        page.evaluate("document.getElementById('clear').click()")
        page.evaluate("delete document.getElementById('digit').dataset.digit")
        page.stroke([(x + u, y + v) for u, v in [(60, 40), (85, 20), (85, 60), (85, 100), (85, 140)]])
        assert page.wait_for("document.getElementById('digit').dataset.digit") == "1"

        page.wait_for("!document.getElementById('classify').disabled")
        page.evaluate("document.getElementById('classify').click()")
        page.wait_for("document.getElementById('took').dataset.milliseconds")
        assert page.evaluate("document.getElementById('classes').children.length") == 5
        assert page.evaluate("document.getElementById('state').className") == ""
        assert page.errors == []


@pytest.mark.parametrize("damage", ["rushlight/rushlight.wasm", "mobilenet.rl"])
def test_a_download_that_was_cut_short(address, tmp_path, damage):
    path = address[1] / damage
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        with Page(address[0], tmp_path) as page:
            page.wait_for("document.getElementById('state')?.className == 'error'")
            assert "cut short" in page.evaluate("document.getElementById('state').textContent")
    finally:
        path.write_bytes(whole)
