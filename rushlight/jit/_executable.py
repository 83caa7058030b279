"""The text of a script as Python runs it: where the two mean different things, a helper is called."""

import ast
import builtins
import copy
import functools
import re

from rushlight import Size, Tensor
from rushlight.jit._arithmetic import CALLS, INPLACE, OPERATORS
from rushlight.jit._operator_match import operator_schemas, returned
from rushlight.jit._value_text import formatted, printed, text_of

__all__ = ["BUILTINS", "HELPERS", "broadcast_length", "executable"]

# What the library itself loads on its first use is imported by the builtins of the frame that is running. No
# script can say this name: the compiler knows what each name stands for.
BUILTINS = {"__import__": __import__}


def executable(tree, names):
    """A copy of a function's tree for execution: annotations name types, which nothing reads at run time.
    ``names`` tells what names from outside stand for."""
    tree = copy.deepcopy(tree)
    result = _number_kind(tree.returns)
    tree.returns, tree.decorator_list = None, []
    first = []
    for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
        name = argument.arg
        if (length := broadcast_length(argument.annotation)) is not None:
            first += ast.parse(f"{name} = __broadcast__({name}, {length})").body
        elif (kind := _number_kind(argument.annotation)) is not None:
            first += ast.parse(f"{name} = __as_{kind}__({name})").body
        argument.annotation = None
    tree.body = [*(ast.copy_location(statement, tree.body[0]) for statement in first), *tree.body]
    return ast.fix_missing_locations(_Executable(names, tree, result).visit(tree))


def _number_kind(annotation):
    """The kind of number that a tensor becomes where this type is asked for; None where it stays one."""
    text = "" if annotation is None else ast.unparse(annotation)
    found = re.fullmatch(r"(?:(?:typing\.)?Optional\[)?(int|float|complex)\]?", text.strip("'\""))
    return found and found[1]


def broadcast_length(annotation):
    """The length of ``BroadcastingList3[int]``, or of ``_size_3_t``; None of another type."""
    text = "" if annotation is None else ast.unparse(annotation)
    found = re.search(r"\bBroadcastingList(\d+)\b|\b_size_(\d)_t\b", text)
    return found and int(found[1] or found[2])


class _Executable(ast.NodeTransformer):
    """``names`` tells what names from outside stand for; ``result`` is the kind of number that the function
    returns, if it says one."""

    def __init__(self, names, tree, result):
        self.names = names
        self.result = result
        self.sizes = {  # names that stand for what is a list in scripts alone
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and _of_sizes(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_Return(self, node):
        self.generic_visit(node)
        if self.result is not None and node.value is not None and not isinstance(node.value, ast.Constant):
            node.value = _helped(f"__as_{self.result}__", [node.value], node.value)
        return node

    def visit_BinOp(self, node):
        kind, sides = type(node.op).__name__, (node.left, node.right)
        listed = any(
            isinstance(side, ast.Tuple) or _of_sizes(side) or getattr(side, "id", None) in self.sizes
            for side in sides
        )
        self.generic_visit(node)
        if kind == "Add" and listed:
            return _helped("__joined__", [node.left, node.right], node)
        if kind not in OPERATORS or kind in _WRAPPING and any(map(_no_number, sides)):
            return node
        return _helped(f"__{kind}__", [node.left, node.right], node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.USub) or isinstance(node.operand, ast.Constant):
            return node
        return _helped("__USub__", [node.operand], node)

    def visit_Compare(self, node):
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        name = _EQUALS.get(type(node.ops[0]))
        if name is None or len(sides) > 2 or any(isinstance(side, ast.Constant) for side in sides):
            return node
        return _helped(name, sides, node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        kind, plain = type(node.op).__name__, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
        parts = [part for part in ast.walk(node.target) if isinstance(part, ast.expr)]
        if kind not in INPLACE or not all(isinstance(part, plain) for part in parts):
            return node
        read = copy.deepcopy(node.target)
        read.ctx = ast.Load()
        made = _helped(f"__i{kind}__", [read, node.value], node)
        return ast.copy_location(ast.Assign([node.target], made), node)

    def visit_JoinedStr(self, node):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = _helped("__text__", [self.visit(part.value)], part.value)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr == "shape" and isinstance(node.ctx, ast.Load):
            return _helped("__listed__", [node], node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        function, words = node.func, bool(node.keywords)
        if isinstance(function, ast.Attribute):
            if function.attr in _VIEWING and not node.args and not words:
                return _helped("__listed__", [node], node)
            if function.attr == "format" and not words:
                return _helped("__format__", [function.value, *node.args], node)
            if (function.attr not in _SIZES or not node.args) and gives_lists(function.attr):
                arguments = [function.value, ast.Constant(function.attr)]
                node.func = _helped("__method__", arguments, function)
        elif isinstance(function, ast.Name) and (value := self.names.get(function.id)) is not None:
            if function.id in _CALLS and value is getattr(builtins, function.id):
                if function.id != "str" or len(node.args) == 1:
                    function.id = f"__{function.id}__"
            elif gives_lists(_operator_name(function.id)):
                return _helped("__list__", [node], node)
        return node


def _of_sizes(node):
    """Whether an expression is a tensor's shape, or a part of one."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    if isinstance(node, ast.Call) and not node.args:
        return getattr(node.func, "attr", None) in _SIZES
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _no_number(node):
    """Whether what is computed with this cannot be a whole number."""
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), (float, complex, str))


_WRAPPING = ("Add", "Sub", "Mult")  # which are Python's but for whole numbers that 64 bits do not hold
_EQUALS = {ast.Eq: "__equal__", ast.NotEq: "__differ__"}
_VIEWING = ("keys", "values", "items")
_SIZES = ("size", "stride")  # of all dimensions, where none is given
_CALLS = ("print", "str", *CALLS)


def _operator_name(name):
    """What an operator is called of which `torch` has a function of this name; "" of others."""
    space, _, last = name.rpartition(".")
    return last if space in ("torch", "torch.functional") else ""


@functools.cache
def gives_lists(name):
    """Whether an operator of `torch` gives a list in scripts; Python's gives a tuple."""
    kinds = [returned(schema).kind for schema in operator_schemas(name)] if name else []
    return name in _SIZES or "List" in kinds and set(kinds) <= {"List", "Tensor"}


def _helped(name, arguments, node):
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), node)


def _broadcast(value, length):
    """One number stands for so many."""
    if value is None or isinstance(value, list):
        return value
    return list(value) if isinstance(value, tuple) else [value] * length


_VIEWS = (type({}.keys()), type({}.values()), type({}.items()), Size)


def _listed(value):
    """What is a list in scripts, and in Python a view of a dictionary or a size."""
    return list(value) if type(value) in _VIEWS else value


def _joined(left, right):
    """``left + right``, where a tuple becomes a list that a list is added to."""
    left, right = _alike(left, right)
    return left + right


def _alike(left, right):
    """Both as lists, where one of them is: a tuple that a list is compared with becomes one."""
    if isinstance(left, tuple) and isinstance(right, list):
        return list(left), right
    return (left, list(right)) if isinstance(left, list) and isinstance(right, tuple) else (left, right)


def _equal(left, right):
    if isinstance(left, list) or isinstance(right, list):
        left, right = _alike(left, right)
    return left == right


def _differ(left, right):
    if isinstance(left, list) or isinstance(right, list):
        left, right = _alike(left, right)
    return left != right


def _results(value):
    """What an operator of tensors gives, a list in scripts and a tuple in Python."""
    return list(value) if type(value) in (tuple, Size) else value


def _method(value, name):
    """A method, which gives a list where it is a tensor's."""
    found = getattr(value, name)
    return (lambda *args, **words: _results(found(*args, **words))) if isinstance(value, Tensor) else found


def _as_number(cls):
    """What makes a number of a tensor that stands where one is asked for, as the compiler puts it there."""

    def convert(value):
        if not isinstance(value, Tensor):
            return value
        if value.requires_grad:
            raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
        if value.dim():
            raise RuntimeError("Cannot input a tensor of dimension other than 0 as a scalar argument")
        if cls is int and (value.is_floating_point() or value.is_complex()):
            kind = value.type().rpartition(".")[2].removesuffix("Tensor")
            raise RuntimeError(f"Cannot input a tensor of type {kind} as an integral argument")
        return cls(value.item())

    return convert


HELPERS = {
    "__as_int__": _as_number(int),
    "__as_float__": _as_number(float),
    "__as_complex__": _as_number(complex),
    "__broadcast__": _broadcast,
    "__listed__": _listed,
    "__list__": _results,
    "__joined__": _joined,
    "__equal__": _equal,
    "__differ__": _differ,
    "__method__": _method,
    "__text__": text_of,
    "__str__": text_of,
    "__print__": printed,
    "__format__": formatted,
    **{f"__{name}__": function for name, function in CALLS.items()},
    **{f"__{name}__": function for name, function in OPERATORS.items()},
    **{f"__i{name}__": function for name, function in INPLACE.items()},
}
