"""The files of a package as a tree that prints."""

from typing import Any

from rushlight.package.glob_group import GlobGroup

__all__ = ["Directory"]


class Directory:
    """A folder and what is in it. ``str`` draws the tree."""

    def __init__(self, name, is_dir):
        self.name, self.is_dir, self.children = name, is_dir, {}

    def _add_file(self, path):
        *folders, file = path.split("/")
        folder = self
        for name in folders:
            folder = folder.children.setdefault(name, Directory(name, True))
        folder.children[file] = Directory(file, False)

    def has_file(self, filename):
        """Whether the path of a file is in the tree."""
        found: Any = self
        for name in filename.split("/"):
            found = found.children.get(name)
            if found is None:
                return False
        return not found.is_dir

    def __str__(self):
        lines: list = []
        self._draw(lines, "", "\u2500\u2500\u2500 ", "    ")
        return "".join(lines)

    def _draw(self, lines, before, mark, below):
        lines.append(f"{before}{mark}{self.name}\n")
        # Folders come first, each kind by name.
        children = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for i, child in enumerate(children):
            last = i == len(children) - 1
            marks = ("\u2514\u2500\u2500 ", "    ") if last else ("\u251c\u2500\u2500 ", "\u2502   ")
            child._draw(lines, before + below, *marks)


def _create_directory_from_file_list(filename, file_list, include="**", exclude=()):
    """The tree of those paths that the patterns choose."""
    chosen = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(filename, True)
    for path in file_list:
        if chosen.matches(path):
            top._add_file(path)
    return top
