"""The server compiles without TLS, as wheels have it and machines without OpenSSL's headers."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADERS = [Path("/usr/include"), ROOT / ".venv/debian/usr/include"]


def test_the_server_compiles_without_tls():
    found = [folder for folder in HEADERS if (folder / "boost/beast.hpp").exists()]
    if not found or shutil.which("g++") is None:
        pytest.skip("no g++ or no headers of Boost are here")
    flags = ["-std=c++20", "-O0", "-fsyntax-only", "-DRUSHLIGHT_CORE", "-DBOOST_ASIO_NO_DEPRECATED"]
    folders = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
    folders += ["-idirafter", found[0]]
    words = ["g++", *flags, *folders, ROOT / "src/serve/server.cpp"]
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=250)
    assert ran.returncode == 0, ran.stderr
