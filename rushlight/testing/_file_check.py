"""`FileCheck`: patterns that must be found in a text, in order."""

import re
import sys
from typing import NoReturn

_KINDS = {
    "CHECK": "check",
    "CHECK-NEXT": "check_next",
    "CHECK-SAME": "check_same",
    "CHECK-NOT": "check_not",
    "CHECK-COUNT": "check_count",
    "CHECK-DAG": "check_dag",
    "CHECK-SOURCE-HIGHLIGHTED": "check_source_highlighted",
    "CHECK-REGEX": "check_regex",
}
_LINE = re.compile(
    r"^[ \t]*#[ \t]*(CHECK(?:-NEXT|-SAME|-NOT|-COUNT|-DAG|-SOURCE-HIGHLIGHTED|-REGEX)?)"
    r"(?:-(EXACTLY-)?(\d+))?:[ \t]?(.*)$",
    re.MULTILINE,
)


class FileCheck:
    """Patterns in a text, in order: ``FileCheck().check("a").check_not("b").check("c").run(text)``.

    Example:
        >>> torch.testing.FileCheck().check("one").check_next("two").run("one\\ntwo")
    """

    def __init__(self):
        self._checks, self._has_run = [], False

    def __del__(self):
        if not self._has_run and self._checks:
            shown = "".join(f"\t{_name(kind, n)}: {text}\n" for kind, text, n in self._checks)
            print(
                f"You have not run this instance of FileCheck!\nFileCheck checks:\n{shown}", file=sys.stdout
            )

    def _add(self, kind, text, count=None):
        self._checks.append((kind, text, count))
        return self

    def check(self, test_string):
        """The text comes next, anywhere behind what was found before."""
        return self._add("CHECK", test_string)

    def check_not(self, test_string):
        """The text does not come before what is checked next."""
        return self._add("CHECK-NOT", test_string)

    def check_same(self, test_string):
        """The text comes behind what was found before, on its line."""
        return self._add("CHECK-SAME", test_string)

    def check_next(self, test_string):
        """The text comes on the line after."""
        return self._add("CHECK-NEXT", test_string)

    def check_count(self, str, count, exactly=False):
        """The text comes `count` times; exactly so many, if asked."""
        self._add("CHECK-COUNT", str, count)
        return self._add("CHECK-NOT", str) if exactly else self

    def check_dag(self, test_string):
        """Neighbouring checks of this kind may match in any order."""
        return self._add("CHECK-DAG", test_string)

    def check_source_highlighted(self, test_string):
        """The text comes, and is underlined by ``~`` on the next line."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", test_string)

    def check_regex(self, test_string):
        """A match of the regular expression comes next."""
        return self._add("CHECK-REGEX", test_string)

    def run(self, checks_file, test_file=None):
        """Look into a text or a graph; the first of two arguments has the checks, in ``# CHECK:`` lines."""
        checks_or_text, text = checks_file, test_file
        self._has_run = True
        if text is not None:
            self._read(str(checks_or_text))
            checks_or_text = text
        searched = checks_or_text.decode() if isinstance(checks_or_text, bytes) else str(checks_or_text)
        if not self._checks:
            raise RuntimeError(
                "No checks have been specified: call .check(...) or pass a text with '# CHECK:' lines"
            )
        _Run(searched, self._checks).run()

    def _read(self, source):
        found = list(_LINE.finditer(source))
        for match in found:
            kind, exactly, count, text = match.groups()
            text = text.strip()
            if kind == "CHECK-COUNT":
                if count is None:
                    raise RuntimeError("CHECK-COUNT needs a number: '# CHECK-COUNT-2: text'")
                self.check_count(text, int(count), exactly=bool(exactly))
            else:
                getattr(self, _KINDS[kind])(text)
        if not found:
            raise RuntimeError(f"Could not parse check: no '# CHECK:' line in\n{source}")


def _name(kind, count):
    return f"{kind}-{count}" if count is not None else kind


class _Run:
    """One search: `position` is the end of what was found last, `begun` its start."""

    def __init__(self, text, checks):
        self.text, self.checks, self.position, self.begun = text, checks, 0, 0

    def run(self):
        waiting, i = [], 0
        while i < len(self.checks):
            kind, pattern, count = self.checks[i]
            if kind == "CHECK-NOT":
                waiting.append(pattern)
                i += 1
                continue
            before = self.position
            if kind == "CHECK-DAG":
                group = []
                while i < len(self.checks) and self.checks[i][0] == "CHECK-DAG":
                    group.append(self.checks[i][1])
                    i += 1
                first = self._dag(group)
            else:
                first = self._one(kind, pattern, count)
                i += 1
            for unwanted in waiting:
                self._absent(unwanted, before, first)
            waiting = []
        for unwanted in waiting:
            self._absent(unwanted, self.position, len(self.text))

    def _dag(self, patterns):
        """Find all patterns behind the position, each at a place of its own."""
        start, taken = self.position, []
        for pattern in patterns:
            at = self._find("CHECK-DAG", pattern, start)
            while any(a < at + len(pattern) and at < b for a, b in taken):
                at = self._find("CHECK-DAG", pattern, at + 1)
            taken.append((at, at + len(pattern)))
        self.begun, self.position = min(taken)[0], max(b for _, b in taken)
        return self.begun

    def _one(self, kind, pattern, count):
        if kind == "CHECK-REGEX":
            match = re.compile(pattern, re.MULTILINE).search(self.text, self.position)
            if match is None:
                self._missing(kind, pattern, self.position)
            return self._took(match.start(), match.end())
        if kind == "CHECK-COUNT":
            first = None
            for _ in range(count):
                at = self._took(self._find(_name(kind, count), pattern, self.position), None, pattern)
                first = at if first is None else first
            return self.position if first is None else first
        if kind == "CHECK-SOURCE-HIGHLIGHTED":
            return self._highlighted(pattern)
        start, end = self.position, None
        if kind == "CHECK-SAME":
            end = self._line_end(start)
        elif kind == "CHECK-NEXT":
            start = self._line_end(start) + 1
            end = self._line_end(start)
        return self._took(self._find(kind, pattern, start, end), None, pattern)

    def _highlighted(self, pattern):
        start = self.position
        while True:
            at = self._find("CHECK-SOURCE-HIGHLIGHTED", pattern, start)
            column = at - (self.text.rfind("\n", 0, at) + 1)
            below = self._line_end(at) + 1
            marks = self.text[below : self._line_end(below)][column : column + len(pattern)]
            if marks and set(marks) == {"~"} and len(marks) == len(pattern):
                return self._took(at, below + column + len(pattern))
            start = at + 1

    def _took(self, at, end, pattern=""):
        self.begun, self.position = at, at + len(pattern) if end is None else end
        return at

    def _line_end(self, start):
        end = self.text.find("\n", min(start, len(self.text)))
        return len(self.text) if end < 0 else end

    def _find(self, kind, pattern, start, end=None):
        at = self.text.find(pattern, start, len(self.text) if end is None else end)
        if at < 0:
            self._missing(kind, pattern, start)
        return at

    def _missing(self, kind, pattern, start) -> NoReturn:
        raise RuntimeError(
            f'Expected to find "{pattern}" but did not find it\nSearched string:\n{self.text[start:]}\n'
            f"From {kind}: {pattern}"
        )

    def _absent(self, pattern, start, end):
        at = self.text.find(pattern, start, end)
        if at >= 0:
            line = self.text[self.text.rfind("\n", 0, at) + 1 : self._line_end(at)]
            raise RuntimeError(
                f'Expected to not find "{pattern}" but found it\n{line}\nFrom CHECK-NOT: {pattern}'
            )
