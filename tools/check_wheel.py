"""Checks a wheel: ``python tools/check_wheel.py WHEEL``, by the interpreter that the wheel is for.

It holds what it should, with the licences of all that it bundles, in at most 33 MB; and installed without a
network in an environment that has nothing else, it trains a network, and its programs run a model:
rushlight-run, rushlight-serve, and `python -m rushlight` a program that imports torch.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MEGABYTES = 33  # a little more than README says: what makes a wheel grow shall be noticed
# One file of each kind that programs need; libraries are in contents() by what they are.
NEEDED = """
    rushlight/py.typed rushlight/__init__.pyi rushlight/_C/__init__.pyi rushlight/return_types.pyi
    rushlight/include/rushlight/rushlight.h rushlight/include/torch/torch.h rushlight/include/core/tensor.h
    rushlight/share/cmake/Torch/TorchConfig.cmake rushlight/_command/torch_path/torch/__init__.py
    rushlight/lib/librushlight.so rushlight/_errors/advice.txt
    rushlight/_command/torch_path/torch-2.13.0.egg-info/PKG-INFO
""".split()
# How the name of the licence begins that goes with a bundled library; None is our own.
LICENCES = {
    "librushlight": None,
    "libtbb": "tbb",
    "libdnnl": "onednn-cpu-tbb",
    "libimf": "intel-cmplr-lib-rt",
    "libintlc": "intel-cmplr-lib-rt",
    "libscipy_openblas": "scipy-openblas32",
    "libgloo": "libgloo",
    "libhiredis": "libhiredis",
    "libibverbs": "libibverbs",
    "libnl": "libnl-",
}
# What takes the place: the first pattern that a file's name matches.
PARTS = {
    "core with MKL": r"lib/librushlight",
    "oneDNN": r"lib/libdnnl",
    "oneTBB": r"lib/libtbb",
    "Gloo and its libraries": r"rushlight\.libs/|_gloo\.",
    "extension module and programs": r"\.so$|/bin/",
    "headers": r"\.h$",
    "stubs": r"\.pyi$",
    "licences": r"/licenses/|LICENSE",
    "Python": r"\.py$",
    "all else": "",
}
TRAINS = """
import importlib.util, sys
import rushlight as torch
from rushlight import nn
if importlib.util.find_spec("rushlight._gloo"):
    import rushlight._gloo
assert "site-packages" in torch.__file__, torch.__file__
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(16, 1, 8, 8), torch.arange(16) % 2
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.3 * losses[0], losses
torch.save(model.state_dict(), sys.argv[1])
model.load_state_dict(torch.load(sys.argv[1]))
torch.linalg.solve(torch.eye(3), torch.ones(3))
torch.fft.fft(torch.ones(8))
torch.randn(64, 64) @ torch.ones(64, 64)
print(f"trained: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
"""

# The programs that come with it, each on the same model; without rushlight-serve where that was not built.
RUNS = """
import json, pathlib, struct, subprocess, sys, urllib.request
import rushlight as torch
from rushlight.export import save_file
folder, programs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.executable).parent
x = [1.0, 2.0, 3.0, 4.0]
model = torch.nn.Linear(4, 2).eval()
expected = model(torch.tensor([x])).flatten()
save_file(model, folder / "model.rl", (torch.ones(1, 4),))

def same(values):
    assert torch.allclose(torch.tensor(values), expected, atol=1e-5), (values, expected)

header = str({"descr": "<f4", "fortran_order": False, "shape": (1, 4)}).ljust(117) + "\\n"
magic = b"\\x93NUMPY\\1\\0" + struct.pack("<H", 118)
(folder / "x.npy").write_bytes(magic + header.encode() + struct.pack("<4f", *x))
files = ["--input", folder / "x.npy", "--output", folder / "y.npy"]
subprocess.run([programs / "rushlight-run", folder / "model.rl", *files], check=True)
same(struct.unpack("<2f", (folder / "y.npy").read_bytes()[-8:]))

program = "import torch; x = torch.ones(2, requires_grad=True); x.sum().backward(); "
program += "print(x.grad, torch.__file__)"
(folder / "program.py").write_text(program)
words = [sys.executable, "-m", "rushlight", folder / "program.py"]
done = subprocess.run(words, capture_output=True, text=True)
assert done.stdout.startswith("tensor([1., 1.]) ") and "/rushlight/" in done.stdout, done

ran = "rushlight-run, python -m rushlight"
if (pathlib.Path(torch.__file__).parent / "bin" / "rushlight-serve").exists():
    words = [programs / "rushlight-serve", folder / "model.rl", "--port", "0", "--log", "none"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[1]
            tensor = {"name": "input", "datatype": "FP32", "shape": [1, 4], "data": x}
            body = json.dumps({"inputs": [tensor]}).encode()
            with urllib.request.urlopen(url + "/v2/models/model/infer", body, timeout=60) as answer:
                same(json.load(answer)["outputs"][0]["data"])
        finally:
            server.terminate()
    assert server.returncode == 0, server.returncode
    ran += ", rushlight-serve"
print("ran:", ran)
"""


def contents(names):
    """What is wrong with a package of these files, as sentences."""
    files = set(names)
    wrong = [f"{name} is missing" for name in NEEDED if name not in files]
    if not any(re.fullmatch(r"rushlight/_C\.[\w-]+\.so", name) for name in files):
        wrong.append("the extension module is missing")
    if not any(re.fullmatch(r"[^/]+\.dist-info/sboms/rushlight\.cdx\.json", name) for name in files):
        wrong.append("the bill of materials is missing")
    texts = {Path(name).stem for name in files if "/licenses/" in name}
    for name in sorted(files):
        if not re.search(r"\.so(\.\d+)*$", name) or "/lib" not in name:
            continue
        stem = re.match(r"lib[a-z]+(_[a-z]+)?", Path(name).name)
        stem = stem.group() if stem else Path(name).name
        if stem not in LICENCES:
            wrong.append(f"nobody says under which licence {name} comes (LICENCES in tools/check_wheel.py)")
        elif LICENCES[stem] and not any(text.startswith(LICENCES[stem]) for text in texts):
            wrong.append(f"{name} comes without the licence of {LICENCES[stem]}")
    strangers = {name.split("/")[0] for name in files} - {"rushlight", "rushlight.libs"}
    strangers = {name for name in strangers if not re.fullmatch(r"rushlight-[\w.]+\.dist-info", name)}
    return wrong + [f"{name} would be installed beside the package" for name in sorted(strangers)]


def sizes(entries):
    """Packed and unpacked bytes of each part of a wheel."""
    found = {part: [0, 0] for part in PARTS}
    for entry in entries:
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, entry.filename))
        found[part][0] += entry.compress_size
        found[part][1] += entry.file_size
    return found


def try_out(wheel):
    """Install the wheel where nothing else is, without a network; train, and run its programs."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-index", wheel], check=True)
        alone = {"PATH": os.defpath, "HOME": folder}
        saved = Path(folder, "model.pt")
        subprocess.run([python, "-I", "-c", TRAINS, saved], check=True, env=alone, cwd=folder)
        subprocess.run([python, "-I", "-c", RUNS, folder], check=True, env=alone, cwd=folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    with zipfile.ZipFile(wheel) as archive:
        wrong = contents(archive.namelist())
        parts = sizes(archive.infolist())
    for part, (packed, unpacked) in parts.items():
        print(f"{packed / 1e6:8.2f} MB of {unpacked / 1e6:6.2f}  {part}")
    size = wheel.stat().st_size / 1e6
    if size > MEGABYTES:
        wrong.append(f"{size:.1f} MB are more than {MEGABYTES}")
    if wrong:
        sys.exit("\n".join(f"{wheel.name}: {text}" for text in wrong))
    try_out(wheel)
    print(f"{wheel.name}: {size:.1f} MB, checked")


if __name__ == "__main__":
    main()
