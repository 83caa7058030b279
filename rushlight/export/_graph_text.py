"""The text of a graph as lines that can be read and changed (`src/jit/text.h` has the grammar)."""

import re
from dataclasses import dataclass, field

_RESULT = re.compile(r"%([\w.]+)(?:: (.*))?|_")


def split(text):
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


@dataclass
class Call:
    """A node: `results = name(arguments)`, its results as (name, type) or None."""

    results: list
    name: str
    arguments: list
    comment: str = ""

    @property
    def value(self):
        return self.results[0][0] if self.results and self.results[0] else None

    @property
    def base(self):
        """The operator without its overload."""
        return self.name.partition(".")[0]

    @property
    def constant(self):
        return self.arguments[0][1:-1] if self.name == "constant" else None

    def positional(self, i, default=None):
        given = [a for a in self.arguments if not re.match(r"[a-z_]\w*=", a)]
        return given[i] if i < len(given) else default

    def uses(self):
        return [name for a in self.arguments for name in used(a)]

    def __str__(self):
        results = ", ".join(
            "_" if r is None else f"%{r[0]}: {r[1]}" if r[1] else f"%{r[0]}" for r in self.results
        )
        call = f"{self.name}({', '.join(self.arguments)})"
        return f"  {results} = {call}{self.comment}" if results else f"  {call}{self.comment}"


def used(argument):
    """Names of the values in an argument."""
    return [] if argument.startswith('"') else re.findall(r"%([\w.]+)", argument)


@dataclass
class Text:
    """A graph: the lines before its nodes, the nodes, and its outputs as (name, value)."""

    head: list
    calls: list = field(default_factory=list)
    outputs: list = field(default_factory=list)

    @classmethod
    def of(cls, graph):
        lines = str(graph).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("graph("))
        text = cls(lines[: start + 1])
        for line in lines[start + 1 :]:
            if line.startswith("  return ("):
                for part in split(line.strip()[len("return (") : -1]):
                    name, _, value = part.rpartition(": ")
                    text.outputs.append((name, value[1:]))
            elif line.startswith("  "):
                text.calls.append(_call(line.strip()))
        return text

    @property
    def inputs(self):
        """Types by name."""
        inner = self.head[-1][len("graph(") :].rpartition(")")[0]
        return dict(part[1:].split(": ", 1) for part in split(inner))

    def constants(self):
        """What constants values stand for."""
        return {c.value: c.constant for c in self.calls if c.constant is not None}

    def types(self):
        return dict(self.inputs) | {r[0]: r[1] for c in self.calls for r in c.results if r}

    def users(self):
        found = {}
        for call in self.calls:
            for name in call.uses():
                found.setdefault(name, []).append(call)
        return found

    def drop_unread(self):
        """Leave out constants, and transposed ones, that nothing reads."""
        read, kept = {value for _, value in self.outputs}, []
        for call in reversed(self.calls):
            if call.name in ("constant", "t") and call.value not in read:
                continue
            read.update(call.uses())
            kept.append(call)
        self.calls = kept[::-1]

    def __str__(self):
        returned = ", ".join(f"{name}: %{value}" if name else f"%{value}" for name, value in self.outputs)
        return "\n".join([*self.head, *map(str, self.calls), f"  return ({returned})", "}", ""])


def _call(line):
    code, comment = _without_comment(line)
    head, _, rest = code.partition("(")
    results, equals, name = head.rpartition(" = ")
    if not equals:  # the type of a result may have no parenthesis, so that a call without results begins so
        results, name = "", head
    made = []
    for part in split(results):
        match = _RESULT.fullmatch(part)
        if not match:
            raise ValueError(f"unexpected result '{part}' in the graph")
        made.append((match[1], match[2] or "") if match[1] else None)
    return Call(made, name, split(rest.rstrip()[:-1]), comment)


def _without_comment(line):
    quoted, i = False, 0
    while i < len(line):
        c = line[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c == "#":
            return line[:i].rstrip(), "  " + line[i:]
        i += 1
    return line, ""
