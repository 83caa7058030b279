"""The documentation: its programs say what the pages promise, its links lead somewhere, its site builds."""

import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_programs import assert_says, said_by

import rushlight

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# Pages whose programs run here, in their order, one after the other; others have tests of their own or none.
PAGES = ["../README", "index", "from_pytorch", "numpy", "one_file", "onnx", "pictures", "scaling"]
PAGES += sorted(f"tutorials/{p.stem}" for p in DOCS.glob("tutorials/*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.M | re.S)


def blocks(page):
    """(language, title, text, what it is said to print) of the page's programs and commands."""
    found = [match.groups() for match in BLOCK.finditer((DOCS / f"{page}.md").read_text())]
    for i, (language, title, text) in enumerate(found):
        says = found[i + 1][2] if found[i + 1 : i + 2] and found[i + 1][0] == "text" else None
        if language in ("python", "sh"):
            yield language, title, text, says


def run_command(line, folder, monkeypatch):
    words = line.split()
    assert words[0] == "python"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=200
    )
    return done.stdout if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_programs_of_pages(page, tmp_path, monkeypatch):
    if page == "tutorials/distributed" and not rushlight.distributed.is_gloo_available():
        pytest.skip("this build has no Gloo")
    if page == "onnx":
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    program = types.ModuleType("program")
    monkeypatch.setitem(sys.modules, "program", program)
    for language, title, text, says in blocks(page):
        if title:
            (tmp_path / title).write_text(text)
            continue
        if says is None:  # nothing is promised but that it runs; commands install, or start other programs
            if language == "python":
                exec(compile(text, page, "exec"), program.__dict__)
            continue
        got = said_by(text, program) if language == "python" else run_command(text, tmp_path, monkeypatch)
        assert_says(says, got, text)


# Printed ones, and tables of patterns, links and counts.
WIDE_PAGES = {"errors.md", "sweep.md", "differences.md", "packages.md", "decisions/index.md"}


def test_lines_of_pages_are_short():
    pages = [p for p in ROOT.glob("*.md")] + [p for p in DOCS.rglob("*.md")]
    wide = []
    for page in pages:
        if page.is_relative_to(DOCS) and page.relative_to(DOCS).as_posix() in WIDE_PAGES:
            continue
        text = re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), page.read_text(), flags=re.M | re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > 120 and max(map(len, line.split())) < 100:  # what cannot be broken may be longer
                wide.append(f"{page.relative_to(ROOT)}:{number}: {len(line)}")
    assert wide == []


def lines_of(*paths):
    files = [f for p in paths for f in ([ROOT / p] if (ROOT / p).is_file() else (ROOT / p).rglob("*"))]
    suffixes = (".cpp", ".h", ".cu", ".cuh", ".js")
    return sum(len(f.read_bytes().splitlines()) for f in files if f.suffix in suffixes)


def test_readme_counts_the_lines_of_the_sources():
    text = (ROOT / "README.md").read_text()

    def number(pattern):
        return [int(n.replace(",", "")) for n in re.findall(pattern, text)]

    folders = re.findall(r"^\| `(src/\w+)` \| [\d,]+ \|", text, re.M)
    assert len(folders) == 5
    counted = [lines_of(folder) for folder in folders]
    core, whole = number(r"five folders: ([\d,]+) of")[0], number(r"of the ([\d,]+) lines")[0]
    reading = text[text.index("Read these files") : text.index("`./dev docs` builds")]
    paths = re.findall(r"`((?:src/)?[\w/]+\.(?:h|cpp))`", reading)
    read = [p if p.startswith("src/") else f"src/dispatch/{p}" for p in paths]
    said = [*number(r"\| `src/\w+` \| ([\d,]+) \|"), core, whole, number(r"order \(([\d,]+) lines\)")[0]]
    found = [*counted, sum(counted), lines_of("src", "include"), lines_of(*read)]
    assert said == [pytest.approx(n, rel=0.05) for n in found]


def test_the_program_in_cpp(tmp_path):
    from test_cpp_frontend import CMAKE, build, run

    if CMAKE is None or shutil.which("c++") is None:
        pytest.skip("no CMake or C++ compiler: programs cannot be built")
    found = [match.groups() for match in BLOCK.finditer((DOCS / "tutorials/cpp.md").read_text())]
    for _, title, text in found:
        if title:
            (tmp_path / title).write_text(text)
    says = next(text for language, _, text in found if language == "text")
    assert run(build(tmp_path, tmp_path / "build") / "train", cwd=tmp_path) == says
    assert sorted(rushlight.load(tmp_path / "net.pt")) == [
        "hidden.bias",
        "hidden.weight",
        "out.bias",
        "out.weight",
    ]


def test_every_operator_has_an_example(monkeypatch):
    """That they run, the test finds out that prints the pages."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from reference import examples

    records = rushlight._C._operator_records()
    public = {
        examples.key(r["name"], r["space"])
        for r in records
        if (r["function"] or r["method"]) and not r["name"].startswith("_")
    }
    assert public - examples.programs().keys() == set(), "add them to tools/reference/examples.txt"
    assert examples.programs().keys() <= public


# --- links

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OUTSIDE = {"build", "third_party", ".venv"}


@pytest.fixture(scope="module")
def prose():
    """The text of each page by its path: of the committed ones, and of those that the site prints."""
    paths = [path for path in ROOT.rglob("*.md") if not OUTSIDE & set(path.relative_to(ROOT).parts)]
    assert len(paths) > 40
    return {path: path.read_text() for path in paths} | printed_pages()


def printed_pages():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        from reference import pages
    return {DOCS / name: text for name, text in pages.pages(rushlight._C._operator_records()).items()}


def anchors(text):
    """The anchors that headings of a page make, as sites and GitHub spell them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    plain = [re.sub(r"[`*]", "", heading).lower() for heading in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def test_links_lead_somewhere(prose):
    dead = []
    for page, text in prose.items():
        for link in LINK.findall(re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S)):
            if re.match(r"\w+:", link):
                continue
            target, _, anchor = link.partition("#")
            path = (page.parent / target).resolve() if target else page
            exists = path in prose or path.exists()
            if not exists or (anchor and anchor not in anchors(prose[path])):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert not dead


def test_pages_outside_of_the_site_link_to_committed_files(prose):
    """Where the repository is read, what the site prints is not there."""
    printed = prose.keys() - set(ROOT.rglob("*.md"))
    for page, text in prose.items():
        if page.is_relative_to(DOCS):
            continue
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text)}
        assert not targets & printed, page


def test_every_page_is_in_the_navigation(prose):
    shown = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {p.relative_to(DOCS).as_posix() for p in prose if p.is_relative_to(DOCS)}
    assert pages <= shown
    assert shown - pages == {"architecture.md", "contributing.md", "examples.md", "measuring.md"}


# --- pictures and the site


def test_drawings_are_complete():
    for path in DOCS.rglob("*.svg"):
        ElementTree.parse(path)
    for name in ("architecture", "gate", "engine", "allocator"):
        root = ElementTree.parse(DOCS / f"pictures/{name}.svg").getroot()
        _, _, width, height = map(float, root.get("viewBox").split())
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert float(box.get("x")) + float(box.get("width")) <= width
            assert float(box.get("y")) + float(box.get("height")) <= height


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", ROOT / "mkdocs.yml", "--site-dir", tmp_path / "site"]
    # Pages about operators are printed from the module under test.
    package_root = str(Path(rushlight.__file__).parents[1])
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": package_root}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr[-3000:]
    pages = {p.relative_to(tmp_path / "site").as_posix() for p in (tmp_path / "site").rglob("*.html")}
    assert {"index.html", "architecture.html", "operators/pointwise/abs.html"} <= pages
    family = (tmp_path / "site/operators/pointwise.html").read_text()
    assert 'href="pointwise/abs.html"' in family
