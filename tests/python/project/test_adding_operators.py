"""The worked examples of docs/adding_operators.md: they apply to the sources, are few edits, and compile."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/adding_operators.md").read_text(encoding="utf-8")
LIMITS = {
    "A pointwise operator with a derivative": 5,
    "A composite": 3,
    "A fused operator with a CPU kernel": 7,
}
EDIT = re.compile(
    r"^\d+\. `(?P<file>[^`]+)`, (?:(?P<where>after|before) `(?P<anchor>[^`]+)`|a new file):\n"
    r"   ```\w+\n(?P<text>.*?)^   ```$",
    re.MULTILINE | re.DOTALL,
)


def edits(title):
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    found = [m.groupdict() for m in EDIT.finditer(section)]
    assert len(found) == len(re.findall(r"^\d+\. ", section, re.MULTILINE)), "an edit that is not understood"
    return found


def apply(edit, root):
    path = root / edit["file"]
    text = "".join(line[3:] if line.strip() else line for line in edit["text"].splitlines(keepends=True))
    if edit["anchor"] is None:
        assert not path.exists()
        path.write_text(text)
        return path
    lines = path.read_text().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.startswith(edit["anchor"])]
    assert len(at) == 1, f"{edit['file']} has {len(at)} lines that start with {edit['anchor']!r}"
    lines.insert(at[0] + (edit["where"] == "after"), text)
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("title", LIMITS)
def test_an_example_is_few_edits(title):
    assert 0 < len(edits(title)) <= LIMITS[title]


@pytest.mark.parametrize("title", LIMITS)
def test_an_example_compiles(title, tmp_path):
    compiler = os.environ.get("CXX", "g++")
    if not shutil.which(compiler):
        pytest.skip("there is no C++ compiler")
    for folder in ("src", "include", "tests/python/ops", "tools/reference"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    changed = dict.fromkeys(apply(edit, tmp_path) for edit in edits(title))
    for path in changed:
        if path.suffix == ".py":
            compile(path.read_text(), path, "exec")
    sources = [path for path in changed if path.suffix == ".cpp"]
    assert sources
    include = [f"-I{tmp_path / 'src'}", f"-I{tmp_path / 'include'}"]
    options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DRUSHLIGHT_CORE"]
    subprocess.run([compiler, *options, *include, *sources], check=True, timeout=240)
