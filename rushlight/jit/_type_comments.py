"""``# type: (int, Tensor) -> Tensor`` comments, which say the types of functions without annotations."""

import ast
import re

__all__ = ["apply_type_comment"]

_WHOLE = re.compile(r"#\s*type:\s*(?P<arguments>\(.*?\))\s*(->\s*(?P<returns>.+?)\s*)?(#.*)?$")
_MISSPELT = re.compile(r"#\s*type\s*:\s*\(")
_ONE = re.compile(r"#\s*type:\s*(?P<type>(?!ignore\b).+?)\s*(#.*)?$")


def apply_type_comment(tree, lines, source, before=0):
    """Write the types of a comment into a function's tree; `source` is where errors show it."""
    last = max(tree.body[0].lineno - before, 1)
    if not any("# type:" in line for line in lines):
        wrong = next((i for i, line in enumerate(lines[:last]) if _MISSPELT.search(line)), None)
        if wrong is not None:
            raise RuntimeError(
                f"The annotation prefix in line {wrong + 1} is probably invalid.\nIt must be '# type:':\n"
                f"{lines[wrong].strip()}"
            )
        return
    said = [line.strip() for line in lines[:last] if "# type:" in line and _ONE.search(line)]
    if len(said) > 1 and not any("# type: (...) ->" in line for line in said):
        raise RuntimeError(
            "Return type line '# type: (...) -> ...' not found on multiline type annotation\n"
            "for type lines:\n" + "\n".join(said)
        )
    arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    matches = ((i, _WHOLE.search(line)) for i, line in enumerate(lines[:last]))
    number, found = next((m for m in matches if m[1]), (0, None))
    if found is None:
        return
    given = ast.parse(found["arguments"].replace("...", "_Each", 1), mode="eval").body
    kinds = list(given.elts) if isinstance(given, ast.Tuple) else [given]
    if len(kinds) == 1 and isinstance(kinds[0], ast.Name) and kinds[0].id == "_Each":
        kinds = _one_each(lines[:number])
    if len(kinds) == len(arguments) - 1 and arguments[0].arg in ("self", "cls"):
        arguments = arguments[1:]
    if len(kinds) != len(arguments):
        raise RuntimeError(
            f"Number of type annotations ({len(kinds)}) did not match the number of function parameters "
            f"({len(arguments)}):\n{source.shown(_head(tree, source.first - 1))}"
        )
    places = [(argument, "annotation", kind) for argument, kind in zip(arguments, kinds, strict=True)]
    if found["returns"]:
        places.append((tree, "returns", ast.parse(found["returns"], mode="eval").body))
    for owner, field, kind in places:
        for node in ast.walk(kind):
            if not isinstance(node, ast.expr):
                continue
            node.lineno = node.end_lineno = before + number + 1
            node.col_offset, node.end_col_offset = 0, len(lines[number].rstrip())
        setattr(owner, field, kind)


def _head(tree, shift):
    """The line that begins a function, `shift` lines further down in its file."""
    head, line = ast.Pass(), tree.lineno + shift
    head.lineno, head.end_lineno, head.col_offset, head.end_col_offset = line, line, tree.col_offset, None
    return head


def _one_each(lines):
    found = [_ONE.search(line) for line in lines]
    return [ast.parse(f["type"], mode="eval").body for f in found if f]
