"""A page that trains and runs networks in the browser.

`./dev wasm`, then this program, then open the address that it prints."""

import argparse
import gzip
import http.server
import json
import shutil
from pathlib import Path

from mobilenet import MobileNetV2

import rushlight as torch
from rushlight.demo import digits
from rushlight.export import save_file

HERE = Path(__file__).resolve().parent
MODULE = HERE.parents[1] / "build" / "wasm" / "rushlight-js"
PAGE = ("index.html", "page.css", "page.js", "curve.js", "worker.js", "digits.js")


def write_model(path, weights=None):
    torch.manual_seed(0)
    model = MobileNetV2()
    if weights:
        model.load_state_dict(torch.load(weights, weights_only=True))
    save_file(model.eval(), path, (torch.randn(1, 3, 224, 224),))


def write_site(folder, module=MODULE, weights=None, classes=None):
    """Everything that the page needs, in one folder, as any web server may serve it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGE:
        shutil.copy2(HERE / name, folder / name)
    shutil.copytree(module, folder / "rushlight", dirs_exist_ok=True)
    (folder / "digits.bin").write_bytes(gzip.decompress(digits.PATH.read_bytes()))
    write_model(folder / "mobilenet.rl", weights)
    told = (
        f"Its weights are those of {Path(weights).name}."
        if weights
        else (
            "Its weights are random, so its answers mean nothing: "
            "serve.py --weights takes torchvision's checkpoint."
        )
    )
    names = Path(classes).read_text().splitlines() if classes else []
    (folder / "about.json").write_text(json.dumps({"weights": told, "classes": names}))


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    isolated = True  # from other origins: such a page gets memory that its workers share, and so threads

    def end_headers(self):
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *_):
        pass


def make_server(folder, port=0):
    def handler(*args):
        return Handler(*args, directory=str(folder))

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--module", type=Path, default=MODULE, help="the folder that ./dev wasm made")
    parser.add_argument(
        "--out", type=Path, default=Path("out/browser"), help="where the page is put together"
    )
    parser.add_argument("--weights", help="torchvision's checkpoint of MobileNetV2")
    parser.add_argument("--classes", help="a file with the name of each class in a line")
    given = parser.parse_args()
    if not (given.module / "rushlight.wasm").exists():
        parser.error(f"there is no rushlight.wasm in {given.module}: run ./dev wasm first")
    write_site(given.out, given.module, given.weights, given.classes)
    with make_server(given.out, given.port) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
