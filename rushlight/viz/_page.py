"""Traces and memory timelines as one HTML file that shows them: no network, no other program."""

import json
import re
from html import escape
from pathlib import Path

__all__ = ["trace", "write_page"]

_PARTS = Path(__file__).parent / "page"
_SCRIPTS = ("model.js", "canvas.js", "trace.js", "memory.js", "main.js")


def _read(name):
    return (_PARTS / name).read_text(encoding="utf-8")


def write_page(path, content, title):
    """Writes the page that shows a trace in Chrome's format, with `memory` as the profiler describes it."""
    # "<" stands in strings only, and an escaped one can end no script.
    data = json.dumps(content, separators=(",", ":"), default=str).replace("<", "\\u003c")
    parts = {
        "@STYLE@": _read("viewer.css"),
        "@SCRIPT@": "\n".join(map(_read, _SCRIPTS)),
        "@TITLE@": escape(title),
        "@DATA@": data,
    }
    text = re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], _read("viewer.html"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _load(path):
    import gzip

    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    return content if isinstance(content, dict) else {"traceEvents": content}


def trace(source, path, *, title=None):
    """Writes an HTML file that shows a profile: a time line to zoom and search, sums by operator, and the
    memory by category if it was recorded.

    Args:
        source: a finished profile (`torch.profiler.profile` or `torch.autograd.profiler.profile`), or the
            name of a Chrome trace (`.json`, `.json.gz`), also one that PyTorch wrote.
        path: where to write.
        title: what stands above.
    """
    if hasattr(source, "_page_content"):
        content, name = source._page_content(), "profile"
    else:
        content, name = _load(source), Path(source).name
    write_page(path, content, title or name)
