"""Hooks of MkDocs (`./dev docs`): what the site shows beyond the files of docs/.

Pages from other folders are taken in under names of their own, each operator of the printed pages gets a
page, and links to files that the site does not show become plain text.
"""

import os
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "examples.md": "examples/README.md",
    "measuring.md": "benchmarks/README.md",
}
SHOWN_AS = {source: page for page, source in OUTSIDE.items()} | {"README.md": "index.md"}
# GitHub wants bars in a table's code escaped, MkDocs would show the backslash.
CODE_IN_ROW, CODE = re.compile(r"^\|.*`.*$", re.M), re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files, config):
    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for family in sorted((ROOT / "docs/operators").glob("*.md")):
        _, entries, _ = split(family.read_text(encoding="utf-8"))
        for name, text in entries.items():
            page = f"operators/{family.stem}/{name}.md"
            files.append(File.generated(config, page, content=operator_page(family.stem, name, text)))
    return files


def on_page_markdown(markdown, page, config, files):
    name = page.file.src_uri
    if posixpath.dirname(name) == "operators":
        markdown = family_page(posixpath.basename(name)[:-3], markdown)
    markdown = CODE_IN_ROW.sub(
        lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )
    return LINK.sub(lambda link: shown_link(link, name), markdown)


def split(text):
    """(what comes before the operators, {operator: its text}, what comes after) of a family's page."""
    head, *parts = re.split(r"^## ", text, flags=re.M)
    entries, rest = {}, ""
    for part in parts:
        name, _, body = part.partition("\n")
        if name.startswith("For C++"):
            rest = f"## {part}"
        else:
            entries[name] = body.strip()
    return head, entries, rest


def operator_page(family, name, text):
    links = f"[Operators of this family](../{family}.md), [all operators](../../operators.md)"
    return f"# {name}\n\n{text}\n\n{links}\n"


def family_page(family, text):
    """A line for each operator instead of its whole entry."""
    head, entries, rest = split(text)
    lines = [head, "| operator | what it does |", "|---|---|"]
    for name, body in entries.items():
        said = re.sub(r"```.*?```", "", body, flags=re.S).strip().split("\n")[0].replace("|", "\\|")
        lines.append(f"| [{name}]({family}/{name}.md) | {said if not said.startswith('- ') else ''} |")
    return "\n".join([*lines, "", rest])


def shown_link(link, page):
    """A link from one page of the site to another; its text where only the repository has the file."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if page.startswith("operators/"):  # made above, with links of the site
        return link[0]
    source = OUTSIDE.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path in SHOWN_AS:
        found = SHOWN_AS[path]
    elif path.startswith("docs/") and (ROOT / path).is_file():
        found = path.removeprefix("docs/")
    elif (ROOT / path).exists():
        return text
    else:
        return link[0]  # MkDocs will complain
    return f"[{text}]({os.path.relpath(found, posixpath.dirname(page) or '.')}{anchor})"
