"""Hooks of MkDocs (`./dev docs`): what the site shows beyond the files of docs/.

Pages from other folders are taken in under names of their own. Pages about operators, one for each among
them, are printed from the built module, which must be on the path. Links to files that the site does not show
become plain text.
"""

import functools
import os
import posixpath
import re
import sys
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
    for page, text in printed_pages().items():
        files.append(File.generated(config, page, content=text))
        if posixpath.dirname(page) == "operators":
            family = posixpath.basename(page)[:-3]
            for name, entry in split(text)[1].items():
                own = operator_page(family, name, entry)
                files.append(File.generated(config, f"operators/{family}/{name}.md", content=own))
    return files


@functools.cache
def printed_pages():
    """Once a process: `serve` builds the site again after each edit."""
    sys.path.insert(0, str(ROOT / "tools"))
    from reference import pages

    import rushlight

    return pages.pages(rushlight._C._operator_records())


def on_page_markdown(markdown, page, config, files):
    name = page.file.src_uri
    if posixpath.dirname(name) == "operators":
        markdown = family_page(posixpath.basename(name)[:-3], markdown)
    markdown = CODE_IN_ROW.sub(
        lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )
    return LINK.sub(lambda link: shown_link(link, name, files), markdown)


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


def shown_link(link, page, files):
    """A link from one page of the site to another; its text where only the repository has the file."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if page.startswith("operators/"):  # made above, with links of the site
        return link[0]
    source = OUTSIDE.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path in SHOWN_AS:
        found = SHOWN_AS[path]
    elif path.startswith("docs/") and files.get_file_from_path(path.removeprefix("docs/")):
        found = path.removeprefix("docs/")
    elif (ROOT / path).exists():
        return text
    else:
        return link[0]  # MkDocs will complain
    return f"[{text}]({os.path.relpath(found, posixpath.dirname(page) or '.')}{anchor})"
