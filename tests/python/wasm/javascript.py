"""Runs JavaScript on the module that `./dev wasm` built, in Node."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULE = Path(os.environ.get("RUSHLIGHT_JS") or ROOT / "build" / "wasm" / "rushlight-js")
EXAMPLE = ROOT / "examples" / "browser"

needs_node = [
    pytest.mark.skipif(not (MODULE / "rushlight.wasm").exists(), reason="no rushlight.wasm (./dev wasm)"),
    pytest.mark.skipif(not shutil.which("node"), reason="no Node.js (apt install nodejs)"),
]

PRELUDE = """
import {{ readFileSync }} from "node:fs";
import {{ init, RushlightError }} from {module};
process.argv.splice(1, 1); // the arguments begin at 1
const give = (value) => console.log("RESULT " + JSON.stringify(value));
const refused = (f) => {{
  try {{
    f();
  }} catch (e) {{
    return e instanceof RushlightError ? [e.kind, e.message] : ["", String(e.stack)];
  }}
  return ["none", ""];
}};
"""


def node(script, *arguments, module=MODULE, options=()):
    """What the script handed to give(), once for each call."""
    text = PRELUDE.format(module=json.dumps(f"{module}/rushlight.js")) + script
    with tempfile.NamedTemporaryFile(
        "w", suffix=".mjs"
    ) as file:  # workers take no script from the command line
        file.write(text)
        file.flush()
        words = ["node", *options, file.name, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    return [json.loads(line.removeprefix("RESULT ")) for line in lines if line.startswith("RESULT ")]
