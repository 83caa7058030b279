"""Places in a program's source as TorchScript's errors show them: the culprit underlined among its lines."""

_AROUND = 2


class Source:
    """The lines of a function, the number of its first line in its file, and how far they were shifted."""

    def __init__(self, filename, lines, first=1, shift=0):
        self.filename, self.lines, self.first, self.shift = filename, lines, first, shift

    @classmethod
    def of_text(cls, filename, text):
        return cls(filename, text.splitlines())

    def shown(self, node, until=None):
        """The text of a node's place: file, line, the lines around it and a mark under it."""
        begin = getattr(node, "lineno", None)
        if begin is None:
            return f'  File "{self.filename}"\n'
        end = getattr(until or node, "end_lineno", None) or begin
        start = node.col_offset + self.shift
        stop = getattr(until or node, "end_col_offset", None)
        stop = None if stop is None else stop + self.shift
        text = [f'  File "{self.filename}", line {begin}']
        for number in range(begin - _AROUND, end + _AROUND + 1):
            if not 0 <= number - self.first < len(self.lines):
                continue
            line = self.lines[number - self.first].rstrip("\n")
            text.append(line)
            if begin <= number <= end:
                first = start if number == begin else len(line) - len(line.lstrip())
                last = stop if number == end and stop is not None else len(line)
                mark = " " * first + "~" * max(last - first, 1)
                text.append(f"{mark} <--- HERE" if number == end else mark)
        return "\n".join(text) + "\n"
