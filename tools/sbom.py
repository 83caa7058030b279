"""A wheel's bill of materials, in CycloneDX's JSON (PEP 770: dist-info/sboms): ``python tools/sbom.py
WHEEL`` prints it, and tools/wheels.py puts it into each wheel.

It names what is in the wheel beside our own sources: libraries that lie there as files, each with its hash,
and those that are linked into ours. Versions are those of the distributions that the build took them from.
"""

import argparse
import hashlib
import importlib.metadata
import json
import re
import subprocess
import uuid
import zipfile
from pathlib import Path

from check_wheel import LICENCES

ROOT = Path(__file__).resolve().parent.parent
# What lies in a wheel, or is linked into it, by the name of the licence that comes with it: the distribution
# on PyPI or Debian's package, and its licence in SPDX's words.
INTEL = "LicenseRef-Intel-Simplified-Software-License"
COMPONENTS = {
    "tbb": ("pypi", "tbb", "Apache-2.0"),
    "onednn-cpu-tbb": ("pypi", "onednn-cpu-tbb", "Apache-2.0"),
    "intel-cmplr-lib-rt": ("pypi", "intel-cmplr-lib-rt", INTEL),
    "mkl-static": ("pypi", "mkl-static", INTEL),
    "scipy-openblas32": ("pypi", "scipy-openblas32", "BSD-3-Clause"),
    "libgloo": ("deb", "libgloo0", "BSD-3-Clause"),
    "libhiredis": ("deb", "libhiredis0.14", "BSD-3-Clause"),
    "libibverbs": ("deb", "libibverbs1", "GPL-2.0-only OR BSD-2-Clause"),
    "libnl-": ("deb", "libnl-3-200", "LGPL-2.1-only"),
}


def pinned(distribution):
    """The version that pyproject.toml pins, or else the installed one."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    if match := re.search(rf'"{re.escape(distribution)}==([\w.]+)', text):
        return match[1]
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def debian_version(package):
    """Of the installed package, without what only that package's revision says."""
    asked = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def component(key):
    kind, name, licence = COMPONENTS[key]
    version = pinned(name) if kind == "pypi" else debian_version(name)
    place = f"pypi/{name}" if kind == "pypi" else f"deb/debian/{name}"
    found = {
        "type": "library",
        "bom-ref": key,
        "name": name,
        "licenses": [{"expression": licence} if " " in licence else {"license": _licence(licence)}],
        "purl": f"pkg:{place}@{version}" if version else f"pkg:{place}",
    }
    return {**found, "version": version} if version else found


def _licence(name):
    return {"name": name.removeprefix("LicenseRef-")} if name.startswith("LicenseRef-") else {"id": name}


def of_wheel(archive):
    """The bill of an open wheel."""
    names = sorted(name for name in archive.namelist() if "/sboms/" not in name)
    (info,) = {name.split("/")[0] for name in names if re.match(r"[^/]+\.dist-info/", name)}
    name, version = info.removesuffix(".dist-info").split("-")
    licences = {Path(n).stem for n in names if "/licenses/" in n}
    found, files = set(), {}
    for path in names:
        if not re.search(r"\.so(\.\d+)*$", path):
            continue
        for prefix, key in LICENCES.items():
            if key and re.match(rf"{prefix}[-_.\d]", Path(path).name):
                found.add(key)
                files.setdefault(key, []).append(path)
    # What is linked into ours comes with its licence.
    found |= {key for key in COMPONENTS if any(text.startswith(key) for text in licences)}
    parts = []
    for key in sorted(found):
        part = component(key)
        if key in files:
            part["components"] = [_file(archive, path) for path in files[key]]
        parts.append(part)
    own = {
        "type": "library", "bom-ref": name, "name": name, "version": version,
        "licenses": [{"license": {"id": "MIT"}}], "purl": f"pkg:pypi/{name}@{version}",
    }  # fmt: skip
    said = json.dumps([own, parts], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, said)}",  # the same for the same contents
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": name, "dependsOn": sorted(found)}],
    }


def _file(archive, path):
    digest = hashlib.sha256(archive.read(path)).hexdigest()
    return {"type": "file", "name": path, "hashes": [{"alg": "SHA-256", "content": digest}]}


def text_of(archive):
    return json.dumps(of_wheel(archive), indent=1, sort_keys=True) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    with zipfile.ZipFile(parser.parse_args().wheel) as archive:
        print(text_of(archive), end="")


if __name__ == "__main__":
    main()
