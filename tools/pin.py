"""Writes requirements/build-linux-x86_64.txt: ``python tools/pin.py``.

The packages that build Rushlight there, and what they need, each with one version and the hash of its file,
as pip finds them for this Python. ``./dev`` installs from the file, so that nothing else can be installed.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from dev import environment  # noqa: E402

# mkl-static asks for Intel's OpenMP and what that needs; nothing here is linked with them.
UNUSED = {"intel-openmp", "intel-cmplr-lib-ur", "umf", "tcmlib"}
HEAD = "# Written by tools/pin.py. Installed with: pip install --require-hashes --no-deps -r FILE\n"


def pins(report):
    """A line for each package of what `pip install --report` says."""
    lines = []
    for item in report["install"]:
        name = item["metadata"]["name"].replace("_", "-").lower()
        if name not in UNUSED:
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={item['metadata']['version']} --hash=sha256:{digest}\n")
    return sorted(lines)


def main():
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--only-binary", ":all:", "--report", "-", *environment.requirements("build")]
    asked = subprocess.run(command, check=True, capture_output=True, text=True)
    environment.LOCK.write_text(HEAD + "".join(pins(json.loads(asked.stdout))))


if __name__ == "__main__":
    main()
